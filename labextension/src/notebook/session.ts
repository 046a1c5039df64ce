/**
 * One open notebook's side of the channel: attaches it, applies what runs do to it, says how far
 * the document and its file have come.
 */
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { Contents } from '@jupyterlab/services';
import type { IDisposable } from '@lumino/disposable';

import type { ChannelClient } from '../channel/client';
import { differsFromDisk, isWhollyOnDisk } from './disk';
import type { NotebookContext } from './disk';
import { nextFrame } from './frame';
import type { Schedule } from './frame';
import { MissedRuns } from './missed';
import type { IPositions } from './missed';
import { applyOperation } from './operations';
import type {
  IAttached,
  IFileWritten,
  Operation,
  RunMessage
} from '../protocol.gen';
import { OperationQueue } from './queue';
import type { IBatch } from './queue';
import { FileReconciler } from './reconciler';
import { QuietSaver } from './saving';
import { markRunning, showInserted } from './showing';

/** Messages after which nothing more comes of a run, unless it is undone. */
const ENDS: readonly RunMessage['kind'][] = ['run_closed', 'run_undone'];

/** Messages after which the file should hold what the document holds. */
const CLOSING: readonly RunMessage['kind'][] = ['cell_closed', ...ENDS];

/** What a run wrote last may take long to draw; nobody waits longer for it. */
const CATCH_UP_MS = 10_000;

export interface ISessionOptions {
  readonly panel: NotebookPanel;
  readonly client: Pick<
    ChannelClient,
    'clientId' | 'connectionChanged' | 'isConnected' | 'send'
  >;
  readonly contents: Contents.IManager;
  /** Fetches all messages of a run; none where the run is not kept any more, or can't be read. */
  readonly replay: (runId: string) => Promise<readonly RunMessage[]>;
  readonly schedule?: Schedule;
}

/** Attaches a notebook and keeps its document, its file and the server in step. */
export class NotebookSession implements IDisposable {
  constructor(options: ISessionOptions) {
    const { client, contents, panel, replay, schedule = nextFrame } = options;
    this.panel = panel;
    this._client = client;
    this._contents = contents;
    this._replay = replay;
    this._context = panel.context;
    this._queue = new OperationQueue(
      operation => applyOperation(operation, this._context.model),
      schedule
    );
    this._reconciler = new FileReconciler(
      this._context,
      contents,
      () => this._queue.applied
    );
    this._saver = new QuietSaver(
      this._context,
      () => this._queue.applied,
      () => this._writes && !this._reconciler.isPending && client.isConnected
    );
    this._queue.advanced.connect(this._onAdvanced, this);
    this._saver.saved.connect(this._onSaved, this);
    this._reconciler.settled.connect((_, isSaved) =>
      isSaved ? this._saver.retry() : this._saver.request()
    );
    client.connectionChanged.connect(this._onConnection, this);
    this._context.ready.then(
      () => {
        this._isLoaded = true;
        this._attach();
      },
      () => {
        // The document could not be loaded, and has told the person.
      }
    );
  }

  /** The view of the notebook in which new cells are shown. */
  panel: NotebookPanel;

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** The notebook has another name: a run that goes on must write it under that one. */
  renamed(): void {
    this._attach();
  }

  /** The server answers `attach`, or says that another tab writes from now on. */
  receiveAttached(message: IAttached): void {
    const isGained = message.is_owner && !this._isOwner;
    const isFirst = !this._isAttached;
    const cutOff = this._wasCutOff ? [...this._open] : [];
    const isBack = this._wasCutOff;
    this._isAttached = true;
    this._names = new Set([message.notebook_path]);
    this._wasCutOff = false;
    this._isRewinding = false;
    this._isOwner = message.is_owner;
    this._isShared = message.is_shared;
    if (!this._writes) {
      this._queue.clear();
      this._reconciler.end();
      void this._missed.fetch(cutOff);
      return;
    }
    if (isGained) {
      void this._settle(message, isFirst, cutOff);
      if (!isFirst) {
        this._rewind();
      }
      return;
    }
    for (const [runId, seq] of Object.entries(message.in_file)) {
      // Of a run that this tab knows nothing of, its document holds what the file held.
      if (!this._received.has(runId)) {
        this._queue.skipTo(runId, seq);
      }
    }
    this._acknowledge(this._queue.applied, false);
    this._acknowledge(this._saved, true);
    if (isBack) {
      void this._catchUp(cutOff);
    }
    this._saver.retry();
  }

  /** Takes a message of a run of this notebook. */
  receiveRun(message: RunMessage): void {
    if (!this._isRewinding) {
      this._take(message);
    }
  }

  /** The server has written the file; the document must come to hold it, and be saved over it. */
  receiveFileWritten(message: IFileWritten): void {
    if (this._writes) {
      this._reconciler.expect(message.in_file);
    }
  }

  /** Resolves when the document holds all that was received of its runs, or it takes too long. */
  async caughtUp(): Promise<void> {
    const deadline = performance.now() + CATCH_UP_MS;
    while (
      !this._isDisposed &&
      this._writes &&
      this._isBehind() &&
      performance.now() < deadline
    ) {
      await new Promise(resolve => nextFrame(() => resolve(null)));
    }
  }

  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    this._client.connectionChanged.disconnect(this._onConnection, this);
    this._queue.dispose();
    this._reconciler.dispose();
    this._saver.dispose();
    this._missed.dispose();
    if (this._isAttached) {
      const { localPath } = this._context;
      this._client.send({ kind: 'detach', notebook_path: localPath });
    }
  }

  /** Whether this tab applies operations and saves. */
  private get _writes(): boolean {
    return this._isOwner && !this._isShared;
  }

  private _isBehind(): boolean {
    const { applied } = this._queue;
    return [...this._received].some(
      ([runId, seq]) => seq > (applied.get(runId) ?? 0)
    );
  }

  private _take(message: RunMessage): void {
    if (message.seq <= (this._received.get(message.run_id) ?? 0)) {
      return;
    }
    this._received.set(message.run_id, message.seq);
    if (message.kind === 'operated') {
      this._remember(message.operation);
    }
    if (ENDS.includes(message.kind)) {
      this._open.delete(message.run_id);
    } else {
      this._open.add(message.run_id);
    }
    if (!this._writes) {
      return;
    }
    this._queue.push({
      runId: message.run_id,
      seq: message.seq,
      operation: message.kind === 'operated' ? message.operation : null,
      isClosing: CLOSING.includes(message.kind)
    });
  }

  /** Keeps what runs write into cells, to tell it from what the person writes there. */
  private _remember(operation: Operation): void {
    if (operation.op === 'insert_cell' || operation.op === 'set_source') {
      const { cell_id: cellId, source } = operation;
      const sources = this._written.get(cellId) ?? new Set();
      this._written.set(cellId, sources.add(source));
    }
  }

  private _attach(): void {
    if (!this._isLoaded || this._isDisposed) {
      return;
    }
    const { clientId: client_id } = this._client;
    const { localPath } = this._context;
    this._names.delete(localPath);
    for (const old_path of this._names) {
      const message = { kind: 'renamed', old_path, client_id } as const;
      this._client.send({ ...message, new_path: localPath });
    }
    this._names.add(localPath);
    this._client.send({
      kind: 'attach',
      notebook_path: localPath,
      client_id,
      seen: Object.fromEntries(this._received)
    });
  }

  /** Has what came while another tab wrote, and was not applied here, sent again. */
  private _rewind(): void {
    this._received = new Map(this._queue.applied);
    this._isRewinding = true;
    this._attach();
  }

  /**
   * Finds out, for a tab that has come to write, what its document holds. Of the runs that were
   * open when the tab was cut off, a file that is read again holds all that the server has put away.
   */
  private async _settle(
    message: IAttached,
    isFirst: boolean,
    cutOff: readonly string[]
  ): Promise<void> {
    if (isFirst && Object.keys(message.in_file).length === 0) {
      return;
    }
    this._queue.pause();
    try {
      if (await this._agreesWithFile()) {
        const put = await this._missed.fetch(cutOff, message.in_file);
        const inFile = Object.entries({ ...put, ...message.in_file });
        inFile.forEach(([runId, seq]) => this._queue.skipTo(runId, seq));
        this._saved = new Map([...this._saved, ...inFile]);
      } else if (!isFirst) {
        // The document has edits of the person's, so it is not read again but filled up.
        await this._missed.fetch([...cutOff, ...this._unsaved()]);
      }
    } catch (error) {
      console.warn('The notebook could not be compared with its file', error);
    } finally {
      this._queue.resume();
    }
    await this._reconciler.check();
  }

  /** Whether the document is what the file is, read again if that loses nothing. */
  private async _agreesWithFile(): Promise<boolean> {
    if (!(await differsFromDisk(this._context, this._contents))) {
      return true;
    }
    const isRuns = (cellId: string, source: string) =>
      this._written.get(cellId)?.has(source) ?? false;
    if (!(await isWhollyOnDisk(this._context, this._contents, isRuns))) {
      return false;
    }
    await this._context.revert();
    // What the file holds wholly is not sent again, nor must it be fetched.
    this._received.clear();
    return true;
  }

  /**
   * After a break: gets what was missed of runs that had not ended, and of those that the file was
   * not known to hold. The server may have written the file meanwhile, and forgets what it owes a
   * tab when the file holds it.
   */
  private async _catchUp(cutOff: readonly string[]): Promise<void> {
    const runIds = [...cutOff, ...this._unsaved()];
    if (runIds.length > 0) {
      this._reconciler.begin();
      await this._missed.catchUp(runIds);
    }
  }

  private _expect(reached: IPositions): void {
    if (!this._reconciler.isPending) {
      // Another tab may have written meanwhile.
      return;
    }
    if (Object.values(reached).includes(0)) {
      // The file may hold what nobody has any more: the document asks before it goes over that.
      this._reconciler.end();
      this._saver.retry();
    } else {
      this._reconciler.expect(reached);
    }
  }

  /** The runs of which this tab has messages that the file is not known to hold. */
  private _unsaved(): string[] {
    return [...this._received]
      .filter(([runId, seq]) => seq > (this._saved.get(runId) ?? 0))
      .map(([runId]) => runId);
  }

  /**
   * Fetches all messages of a run; returns how far it has come.
   *
   * @param inFile What the document holds of runs, if it is what the file is: of other runs all.
   */
  private async _fetchRun(
    runId: string,
    inFile: IPositions | null
  ): Promise<number> {
    const messages = await this._replay(runId);
    const last = messages[messages.length - 1]?.seq ?? 0;
    if (last === 0) {
      this._open.delete(runId);
      this._received.delete(runId);
    }
    if (inFile !== null) {
      this._queue.skipTo(runId, inFile[runId] ?? last);
    }
    messages.forEach(message => this._take(message));
    return last;
  }

  private _onConnection(_: unknown, isConnected: boolean): void {
    if (isConnected) {
      this._attach();
    } else {
      this._wasCutOff = this._isAttached;
      this._missed.forget();
    }
  }

  private _onAdvanced(_: OperationQueue, batch: IBatch): void {
    this._acknowledge(batch.applied, false);
    if (!this.panel.isDisposed) {
      showInserted(this.panel, batch.operations);
    }
    markRunning(batch.operations);
    if (batch.isClosing) {
      this._saver.request();
    }
    void this._reconciler.check();
  }

  private _onSaved(_: QuietSaver, held: ReadonlyMap<string, number>): void {
    this._saved = held;
    if (this._writes) {
      this._acknowledge(held, true);
    }
  }

  private _acknowledge(
    reached: ReadonlyMap<string, number>,
    isSaved: boolean
  ): void {
    for (const [runId, seq] of reached) {
      const message = { kind: 'ack', run_id: runId, seq } as const;
      this._client.send({ ...message, is_saved: isSaved });
    }
  }

  private readonly _client: ISessionOptions['client'];
  private readonly _contents: Contents.IManager;
  private readonly _replay: ISessionOptions['replay'];
  private readonly _context: NotebookContext;
  private readonly _queue: OperationQueue;
  private readonly _reconciler: FileReconciler;
  private readonly _saver: QuietSaver;
  private readonly _missed = new MissedRuns(
    (runId, inFile) => this._fetchRun(runId, inFile),
    reached => this._expect(reached)
  );
  /** The paths by which the server may know the notebook: it has answered under the first. */
  private _names = new Set<string>();
  private _isLoaded = false;
  private _isAttached = false;
  private _isOwner = false;
  private _isShared = false;
  private _isRewinding = false;
  private _isDisposed = false;
  private _wasCutOff = false;
  private _received = new Map<string, number>();
  /** The runs whose end has not been seen. */
  private _open = new Set<string>();
  private _saved: ReadonlyMap<string, number> = new Map();
  /** Cell id to the sources that runs gave it. */
  private readonly _written = new Map<string, Set<string>>();
}
