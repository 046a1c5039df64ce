/**
 * Brings the document and its file together after the server has written the file.
 */
import type { Contents } from '@jupyterlab/services';
import type { IDisposable } from '@lumino/disposable';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

import { differsFromDisk, saveOver } from './disk';
import type { NotebookContext } from './disk';

/** How long to wait for operations that the file is said to hold before saving without them. */
const PATIENCE_MS = 5000;

/**
 * Waits until the document holds what the server has put into the file, then saves the document
 * over it. Nobody is asked whether to overwrite or to reload: the document has all that the file
 * has, and the person's edits besides.
 */
export class FileReconciler implements IDisposable {
  constructor(
    private readonly _context: NotebookContext,
    private readonly _contents: Contents.IManager,
    private readonly _applied: () => ReadonlyMap<string, number>
  ) {}

  /** Whether the file may be ahead; then no other save may happen. */
  get isPending(): boolean {
    return this._isPending;
  }

  /** Emits when the document may be saved as usual again; `false` if it could not be saved here. */
  get settled(): ISignal<this, boolean> {
    return this._settled;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** The file may have been written; how far it holds the runs is not known yet. */
  begin(): void {
    this._isPending = true;
  }

  /** Another tab writes the file from now on. */
  end(): void {
    this._isPending = false;
    this._awaited = null;
    this._stopWaiting();
  }

  /** The file holds the runs up to these messages. */
  expect(inFile: { readonly [runId: string]: number }): void {
    this._isPending = true;
    this._awaited = { ...this._awaited, ...inFile };
    this._stopWaiting();
    this._patience = window.setTimeout(() => {
      this._awaited = {};
      void this.check();
    }, PATIENCE_MS);
    void this.check();
  }

  /** The document holds more than before. */
  async check(): Promise<void> {
    const awaited = this._awaited;
    const applied = this._applied();
    const isBehind = Object.entries(awaited ?? {}).some(
      ([runId, seq]) => (applied.get(runId) ?? 0) < seq
    );
    if (awaited === null || isBehind || this._isDisposed) {
      return;
    }
    this._awaited = null;
    this._stopWaiting();
    let isSaved = true;
    try {
      if (await differsFromDisk(this._context, this._contents)) {
        await saveOver(this._context, this._contents);
      }
    } catch (error) {
      console.warn('The notebook could not be saved', error);
      isSaved = false;
    }
    if (this._awaited === null && !this._isDisposed) {
      this._isPending = false;
      this._settled.emit(isSaved);
    }
  }

  dispose(): void {
    this._isDisposed = true;
    this._stopWaiting();
    Signal.clearData(this);
  }

  private _stopWaiting(): void {
    if (this._patience !== null) {
      clearTimeout(this._patience);
      this._patience = null;
    }
  }

  private _isPending = false;
  private _isDisposed = false;
  private _patience: number | null = null;
  private _awaited: { readonly [runId: string]: number } | null = null;
  private _settled = new Signal<this, boolean>(this);
}
