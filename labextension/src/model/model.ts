/**
 * What the panel knows of every notebook. No DOM: the view reads pictures, commands change them.
 */
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

import { emptyNotebook } from './pictures';
import type { INotebookPicture, INotice, IRunPicture } from './pictures';
import type {
  IAsk,
  IFileChange,
  IFilesWanted,
  IKernelMeter,
  IPhase,
  IRefused,
  ITextDelta,
  RunMessage,
  ServerMessage
} from '../protocol.gen';
import { lost, reduceRun } from './reduce';
import type { IRunSummary } from '../channel/rest';

const NOTICES_KEPT = 3;
/** Code can write any number of files. */
const LEFT_OUT_KEPT = 200;

/** A notebook's file got another name. */
export interface IRenaming {
  readonly from: string;
  readonly to: string;
}

/** Reduces the server's messages to a picture of each notebook. */
export class AnalystModel {
  /** Emits the path of the notebook whose picture is another one now. */
  get changed(): ISignal<this, string> {
    return this._changed;
  }

  /** Emits a notebook's old path and its new one. */
  get renamed(): ISignal<this, IRenaming> {
    return this._renamed;
  }

  /** Returns the picture of a notebook; the same object as long as nothing changed. */
  notebook(path: string): INotebookPicture {
    let picture = this._notebooks.get(path);
    if (!picture) {
      picture = emptyNotebook(path);
      this._notebooks.set(path, picture);
    }
    return picture;
  }

  /** Returns the notebook that a run writes to, if this tab knows the run. */
  pathOf(runId: string): string | null {
    return this._paths.get(runId) ?? null;
  }

  /** Returns a run of this tab's notebooks, or one that was reopened. */
  run(runId: string): IRunPicture | null {
    const path = this._paths.get(runId);
    if (path === undefined) {
      return null;
    }
    const { runs, reopened } = this.notebook(path);
    return runs.find(run => run.runId === runId) ?? reopened[runId] ?? null;
  }

  /** Takes in one message of the server. */
  receive(message: ServerMessage): void {
    switch (message.kind) {
      case 'attached':
        this._update(message.notebook_path, {
          isOwner: message.is_owner,
          isShared: message.is_shared
        });
        return;
      case 'file_written':
        return;
      case 'kernel_meter':
        this._takeMeter(message);
        return;
      case 'files_wanted':
        this._want(message);
        return;
      case 'kernel_ended':
        this.notify(message.notebook_path, message.message);
        return;
      case 'refused':
        this._refuse(message);
        return;
      default:
        this._reduce(message);
    }
  }

  /** A question is on its way. */
  asked(ask: IAsk): void {
    const part = { pending: ask, preparing: '', stopPreparing: null };
    this._update(ask.notebook_path, { ...part, refusal: null });
  }

  /** A question waits for its kernel; the line says how far that is, and `stop` ends it. */
  preparing(ask: IAsk, line: string, stop: () => void): void {
    const part = { pending: ask, preparing: line, stopPreparing: stop };
    this._update(ask.notebook_path, { ...part, refusal: null });
  }

  /** Returns the question that a request asked, while it is unanswered. */
  pendingAsk(requestId: string): IAsk | null {
    for (const { pending } of this._notebooks.values()) {
      if (pending?.request_id === requestId) {
        return pending;
      }
    }
    return null;
  }

  /** The person has seen why a question was refused, or it can't be sent. */
  settle(path: string): void {
    this._update(path, { pending: null, stopPreparing: null, refusal: null });
  }

  /** The person wants the run to end; shown at once, before the server knows. */
  stopping(runId: string): void {
    this._changeRun(runId, run =>
      run.state === 'running' ? { ...run, isStopping: true } : run
    );
  }

  /** The server does not have the run: nothing more comes of it. */
  lose(runId: string): void {
    this._changeRun(runId, run => (run.state === 'running' ? lost(run) : run));
  }

  /** Returns the runs that the person wants to end and that have not ended yet. */
  stoppingRuns(): readonly string[] {
    return [...this._paths.keys()].filter(runId => this.run(runId)?.isStopping);
  }

  /** Shows a sentence above the notebook's runs until it is dismissed. */
  notify(path: string, text: string): void {
    const notice: INotice = { id: ++this._noticeId, text };
    const notices = [...this.notebook(path).notices, notice];
    this._update(path, { notices: notices.slice(-NOTICES_KEPT) });
  }

  dismiss(path: string, id: number): void {
    const notices = this.notebook(path).notices.filter(one => one.id !== id);
    this._update(path, { notices });
  }

  /** The person has decided on the files that code wanted read. */
  unwant(path: string): void {
    const { nextWanted } = this.notebook(path);
    this._update(path, { wanted: nextWanted, nextWanted: null });
  }

  /** The person has seen which files were not taken. */
  dismissLeftOut(path: string): void {
    this._update(path, { leftOut: [] });
  }

  /** The runs of former sessions, as the server lists them. */
  setPast(path: string, past: readonly IRunSummary[]): void {
    // A past run can be undone: then its messages name it by its id alone.
    past.forEach(run => this._paths.set(run.run_id, path));
    this._update(path, { past });
  }

  /** A past run's messages were fetched. */
  reopen(path: string, messages: readonly RunMessage[]): void {
    const run = messages.reduce<IRunPicture | null>(reduceRun, null);
    if (run) {
      this._paths.set(run.runId, path);
      const reopened = { ...this.notebook(path).reopened, [run.runId]: run };
      this._update(path, { reopened });
    }
  }

  /** A past run is deleted. */
  remove(path: string, runId: string): void {
    const { past, reopened, runs } = this.notebook(path);
    const others = { ...reopened };
    delete others[runId];
    this._update(path, {
      past: past.filter(run => run.run_id !== runId),
      runs: runs.filter(run => run.runId !== runId),
      reopened: others
    });
  }

  /** The notebook's file has another name now. */
  rename(from: string, to: string): void {
    const picture = this.notebook(from);
    this._notebooks.delete(from);
    for (const [runId, path] of this._paths) {
      if (path === from) {
        this._paths.set(runId, to);
      }
    }
    const pending = picture.pending && {
      ...picture.pending,
      notebook_path: to
    };
    this._renamed.emit({ from, to });
    this._update(to, { ...picture, path: to, pending });
  }

  /** The notebook is closed: nothing of it is shown any more. */
  forget(path: string): void {
    this._notebooks.delete(path);
    for (const [runId, owner] of this._paths) {
      if (owner === path) {
        this._paths.delete(runId);
      }
    }
    this._changed.emit(path);
  }

  private _reduce(message: RunMessage | ITextDelta | IPhase): void {
    if (message.kind !== 'run_opened') {
      this._changeRun(message.run_id, run => reduceRun(run, message) ?? run);
      return;
    }
    // The record of a run names the notebook as it was called when the run began.
    const path = this._paths.get(message.run_id) ?? message.notebook_path;
    const picture = this.notebook(path);
    if (picture.runs.some(run => run.runId === message.run_id)) {
      return;
    }
    this._paths.set(message.run_id, path);
    const run = reduceRun(null, message);
    const runs = run ? [...picture.runs, run] : picture.runs;
    const isOurs = picture.pending?.request_id === message.request_id;
    this._update(path, isOurs ? { runs, pending: null } : { runs });
  }

  private _changeRun(
    runId: string,
    change: (run: IRunPicture) => IRunPicture
  ): void {
    const path = this._paths.get(runId);
    if (path === undefined) {
      return;
    }
    const { runs, reopened } = this.notebook(path);
    const known = this.run(runId);
    const next = known && change(known);
    if (!next || next === known) {
      return;
    }
    if (reopened[runId] === known) {
      this._update(path, { reopened: { ...reopened, [runId]: next } });
    } else {
      this._update(path, {
        runs: runs.map(run => (run === known ? next : run))
      });
    }
  }

  /** Keeps what was left out: the next meter tells only of what came since. */
  private _takeMeter(meter: IKernelMeter): void {
    const { notebook_path: path, files_left_out: news } = meter;
    if (news.length === 0) {
      this._update(path, { meter });
      return;
    }
    const isNews = (old: IFileChange) =>
      news.some(file => file.path === old.path);
    const known = this.notebook(path).leftOut.filter(old => !isNews(old));
    const leftOut = [...known, ...news].slice(-LEFT_OUT_KEPT);
    this._update(path, { meter, leftOut });
  }

  /** Code in a kernel decides when it asks, so what is shown stays until the person has decided. */
  private _want(message: IFilesWanted): void {
    const { wanted } = this.notebook(message.notebook_path);
    const part = wanted ? { nextWanted: message } : { wanted: message };
    this._update(message.notebook_path, part);
  }

  private _refuse(message: IRefused): void {
    for (const [path, picture] of this._notebooks) {
      if (picture.pending?.request_id === message.request_id) {
        this._update(path, { pending: null, refusal: message });
        return;
      }
    }
    // What is asked of a run that has ended (to undo it, say) goes by the run's id.
    const path = this._paths.get(message.request_id);
    const isRunning = this.run(message.request_id)?.state === 'running';
    if (isRunning && message.reason === 'unknown') {
      this.lose(message.request_id);
    } else if (path !== undefined) {
      this.notify(path, message.message);
    }
  }

  private _update(path: string, part: Partial<INotebookPicture>): void {
    this._notebooks.set(path, { ...this.notebook(path), ...part });
    this._changed.emit(path);
  }

  private _notebooks = new Map<string, INotebookPicture>();
  private _paths = new Map<string, string>();
  private _noticeId = 0;
  private _changed = new Signal<this, string>(this);
  private _renamed = new Signal<this, IRenaming>(this);
}
