/** A notebook document with a file and a server that the test plays, around a real model. */
import type { DocumentRegistry } from '@jupyterlab/docregistry';
import { NotebookModel } from '@jupyterlab/notebook';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { Contents } from '@jupyterlab/services';
import { Signal } from '@lumino/signaling';

import type { ClientMessage, IAck } from '../protocol.gen';
import { PATH } from './messages';

/** Stands for the file: its hash changes with each write. */
export class FakeFile {
  version = 1;
  renames = 0;
  cells: unknown[] = [];

  readonly fileChanged = new Signal<this, Contents.IChangedArgs>(this);
  readonly contents = {
    fileChanged: this.fileChanged,
    localPath: (path: string) => path,
    get: async () => ({
      hash: `v${this.version}`,
      last_modified: '',
      content: { cells: this.cells }
    }),
    rename: async () => {
      this.renames += 1;
      this.context?.takeOver();
    }
  } as unknown as Contents.IManager;

  context: FakeContext | null = null;
}

/** A document context; a save over a file that another hand wrote is a conflict. */
export class FakeContext {
  constructor(private readonly _file: FakeFile) {
    _file.context = this;
    this._known = _file.version;
  }

  readonly model = new NotebookModel();
  readonly path = PATH;
  localPath = PATH;
  readonly ready = Promise.resolve();
  readonly saveState = new Signal<this, DocumentRegistry.SaveState>(this);
  readonly isDisposed = false;
  readonly canSave = true;
  lastModifiedCheckMargin = 500;
  saves = 0;
  /** How many saves fail from now on. */
  failures = 0;
  conflicts = 0;
  reverts = 0;

  get contentsModel(): Partial<Contents.IModel> {
    return { hash: this._known === null ? undefined : `v${this._known}` };
  }

  async save(): Promise<void> {
    this.saveState.emit('started');
    await Promise.resolve();
    if (this.failures > 0) {
      this.failures -= 1;
      this.saveState.emit('failed');
      throw new Error('Bad gateway');
    }
    if (this._known !== null && this._known !== this._file.version) {
      this.conflicts += 1;
    }
    this._file.version += 1;
    this._known = this._file.version;
    this.saves += 1;
    this.model.dirty = false;
    this.saveState.emit('completed');
  }

  async revert(): Promise<void> {
    this.reverts += 1;
    this._known = this._file.version;
  }

  /** The context saw the file being renamed: it knows its time, but no hash. */
  takeOver(): void {
    this._known = null;
  }

  private _known: number | null;
}

/** The channel as a session sees it. */
export class FakeClient {
  readonly clientId = 'tab-1';
  readonly connectionChanged = new Signal<this, boolean>(this);
  isConnected = true;
  sent: ClientMessage[] = [];

  send(message: ClientMessage): boolean {
    this.sent.push(message);
    return this.isConnected;
  }

  setConnected(isConnected: boolean): void {
    this.isConnected = isConnected;
    this.connectionChanged.emit(isConnected);
  }

  acks(isSaved: boolean): IAck[] {
    return this.sent.filter(
      (one): one is IAck => one.kind === 'ack' && one.is_saved === isSaved
    );
  }

  attaches(): ClientMessage[] {
    return this.sent.filter(one => one.kind === 'attach');
  }
}

/** A view of the document that is not on the screen. */
export function panelOf(context: FakeContext): NotebookPanel {
  return {
    context,
    content: { model: context.model },
    isDisposed: false,
    isVisible: false,
    node: document.createElement('div')
  } as unknown as NotebookPanel;
}
