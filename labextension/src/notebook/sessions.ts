/**
 * The sessions of all open notebooks, by path.
 */
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { Contents, ServerConnection } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

import type { ChannelClient } from '../channel/client';
import type { NotebookContext } from './disk';
import type { AnalystModel } from '../model/model';
import type { RunMessage, ServerMessage } from '../protocol.gen';
import type { AnalystRest } from '../channel/rest';
import { NotebookSession } from './session';

/** The server's answers on a run that it can't give, however often it is asked. */
const DAMAGED = 410;
const FINAL = [404, DAMAGED];

/** Keeps one session for each open document and hands it its messages. */
export class NotebookSessions {
  constructor(
    private readonly _tracker: INotebookTracker,
    private readonly _client: ChannelClient,
    private readonly _model: AnalystModel,
    private readonly _rest: AnalystRest,
    private readonly _contents: Contents.IManager,
    private readonly _trans: TranslationBundle
  ) {
    _tracker.forEach(panel => this._add(panel));
    _tracker.widgetAdded.connect((_, panel) => this._add(panel));
    _contents.fileChanged.connect(this._onFileChanged, this);
  }

  /** Emits the path of a notebook that was opened or renamed. */
  get opened(): ISignal<this, string> {
    return this._opened;
  }

  /** Returns a view of the notebook at the path, if one is open. */
  panel(path: string): NotebookPanel | null {
    return this._tracker.find(one => one.context.localPath === path) ?? null;
  }

  /** Hands a message to the notebook that it is about. */
  receive(message: ServerMessage): void {
    if (message.kind === 'attached') {
      this._at(message.notebook_path)?.receiveAttached(message);
    } else if (message.kind === 'file_written') {
      this._at(message.notebook_path)?.receiveFileWritten(message);
    } else if (isKept(message)) {
      const path = this._model.pathOf(message.run_id);
      this._at(path ?? '')?.receiveRun(message);
    }
  }

  /** Resolves when the notebook shows all that this tab has of its runs. */
  async caughtUp(path: string): Promise<void> {
    await this._at(path)?.caughtUp();
  }

  private async _replay(runId: string): Promise<readonly RunMessage[]> {
    try {
      const messages = await this._rest.messages(runId);
      messages.forEach(message => this._model.receive(message));
      return messages;
    } catch (error) {
      const { message, response } = error as ServerConnection.ResponseError;
      const status = response?.status ?? 0;
      if (!FINAL.includes(status)) {
        throw error;
      }
      if (status === DAMAGED) {
        this._tellDamaged(runId, message);
      }
      this._model.lose(runId);
      return [];
    }
  }

  private _tellDamaged(runId: string, why: string): void {
    const path = this._model.pathOf(runId) ?? '';
    const words = this._trans.__(
      '“%1”: %2. What this page missed of that run can’t be shown here. If cells of it are missing in the notebook, “Reload Notebook from Disk” in the menu “File” shows those that its file has.',
      this._model.run(runId)?.question ?? runId,
      why
    );
    this._model.notify(path, words);
  }

  /** What waits for a notebook that is not open goes with its file; an open one tells by itself. */
  private _onFileChanged(
    _: Contents.IManager,
    { newValue, oldValue, type }: Contents.IChangedArgs
  ): void {
    if (type === 'rename' && newValue?.type === 'notebook') {
      const [from, to] = [oldValue, newValue].map(file =>
        this._contents.localPath(file?.path ?? '')
      );
      if (!this._at(from) && !this._at(to)) {
        this._model.rename(from, to);
      }
    }
  }

  private _at(path: string): NotebookSession | undefined {
    for (const [context, session] of this._sessions) {
      if (context.localPath === path) {
        return session;
      }
    }
    return undefined;
  }

  private _add(panel: NotebookPanel): void {
    const { context } = panel;
    panel.disposed.connect(() => this._replaceView(panel, context));
    if (this._sessions.has(context)) {
      return;
    }
    const session = new NotebookSession({
      panel,
      client: this._client,
      contents: this._contents,
      replay: runId => this._replay(runId)
    });
    this._sessions.set(context, session);
    let path = context.localPath;
    context.pathChanged.connect(() => {
      this._model.rename(path, context.localPath);
      session.renamed();
      path = context.localPath;
      this._opened.emit(path);
    });
    context.disposed.connect(() => {
      this._sessions.delete(context);
      session.dispose();
      this._model.forget(path);
    });
    this._opened.emit(path);
  }

  /** A document may have several views; its session shows new cells in one that is open. */
  private _replaceView(closed: NotebookPanel, context: NotebookContext): void {
    const session = this._sessions.get(context);
    const other = this._tracker.find(
      one => one !== closed && one.context === context
    );
    if (session?.panel === closed && other) {
      session.panel = other;
    }
  }

  private readonly _sessions = new Map<NotebookContext, NotebookSession>();
  private _opened = new Signal<this, string>(this);
}

/** Whether a message belongs to a run's record; `seq` 0 marks what only passes by. */
function isKept(message: ServerMessage): message is RunMessage {
  return 'seq' in message && message.seq > 0;
}
