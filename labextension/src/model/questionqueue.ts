/**
 * Questions that wait for the run that works in their notebook, in the order in which they were
 * asked. The next one is sent by itself after an answer, and after nothing else.
 */
import { UUID } from '@lumino/coreutils';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

import type { AnalystModel } from './model';
import { runningRun } from './pictures';
import type { IRunPicture } from './pictures';
import { TabMemory } from './tabmemory';
import type { IQuestion } from './tokens';

/** Why questions wait until the person sends them. */
export type HoldReason =
  'stopped' | 'unanswered' | 'kernel' | 'refused' | 'left';

export interface IWaitingQuestion {
  readonly id: string;
  readonly question: IQuestion;
}

/** The questions that wait in one notebook. */
export interface IQueuePicture {
  readonly waiting: readonly IWaitingQuestion[];
  /** `null` while the next one is sent by itself. */
  readonly held: HoldReason | null;
  /** The question that the person is changing; it is not sent meanwhile. */
  readonly edited: string | null;
}

/** How questions leave. */
export interface IQueueOptions {
  readonly model: AnalystModel;
  /** Resolves when the notebook shows all that its runs wrote. */
  readonly caughtUp: (path: string) => Promise<void>;
  /** Sends a question now; returns whether it left. */
  readonly send: (path: string, question: IQuestion) => Promise<boolean>;
  /** Where the questions outlast a reload of the page, and under which name. */
  readonly storage: Storage;
  readonly storageKey: string;
}

/** A notebook's path, and what waits in it. */
type KeptQueue = readonly [string, IQueuePicture];

const EMPTY: IQueuePicture = { waiting: [], held: null, edited: null };

/** Keeps the waiting questions of each notebook, and sends them in their turn. */
export class QuestionQueue {
  constructor(private readonly _options: IQueueOptions) {
    const { storage, storageKey } = _options;
    this._memory = new TabMemory(storage, storageKey);
    this._memory.read(kept => this._restore(kept));
    _options.model.changed.connect((_, path) => this._follow(path));
    _options.model.renamed.connect((_, { from, to }) => this._rename(from, to));
  }

  /** Emits the path of a notebook whose queue is another one now. */
  get changed(): ISignal<this, string> {
    return this._changed;
  }

  /** Returns the same object as long as nothing changed. */
  get(path: string): IQueuePicture {
    return this._queues.get(path) ?? EMPTY;
  }

  /** Whether a question that is asked now has to wait. */
  isBusy(path: string): boolean {
    const { held, waiting } = this.get(path);
    return this._isAtWork(path) || (held === null && waiting.length > 0);
  }

  /** Puts a question at the end. */
  add(path: string, question: IQuestion): void {
    const { waiting } = this.get(path);
    const last = { id: UUID.uuid4(), question };
    this._update(path, { waiting: [...waiting, last] });
  }

  /** Puts a question that could not be sent before the others, which wait for the person then. */
  putFirst(path: string, question: IQuestion, why: HoldReason): void {
    const { waiting } = this.get(path);
    const first = { id: UUID.uuid4(), question };
    this._update(path, { waiting: [first, ...waiting] });
    this.hold(path, why);
  }

  /** A question is on its way, and waits for something else than a run: a reload puts it first. */
  setAside(id: string, path: string, question: IQuestion): void {
    this._aside.set(id, { path, question });
    this._keep();
  }

  /** The question has left, or is kept elsewhere. */
  dropAside(id: string): void {
    this._aside.delete(id);
    this._keep();
  }

  /** Takes a question out; returns it, or `null` where it was sent meanwhile. */
  takeBack(path: string, id: string): IQuestion | null {
    const { waiting } = this.get(path);
    const found = waiting.find(one => one.id === id);
    this._update(path, { waiting: waiting.filter(one => one !== found) });
    void this._advance(path);
    return found?.question ?? null;
  }

  /** The person begins to change a question. */
  edit(path: string, id: string): void {
    this._update(path, { edited: id });
  }

  /** The person has changed the question, or with `null` left it as it was. */
  endEdit(path: string, text: string | null): void {
    const { edited, waiting } = this.get(path);
    const change = (one: IWaitingQuestion): IWaitingQuestion =>
      one.id === edited && text
        ? { ...one, question: { ...one.question, text } }
        : one;
    this._update(path, { edited: null, waiting: waiting.map(change) });
    void this._advance(path);
  }

  /** Sends none by itself any more, until the person says so. */
  hold(path: string, why: HoldReason): void {
    if (this.get(path).waiting.length > 0) {
      this._due.delete(path);
      this._update(path, { held: why });
    }
  }

  /** The person sends what was held: the first one now, each other after the answer before. */
  release(path: string): void {
    this._update(path, { held: null });
    if (!this._isAtWork(path)) {
      this._due.add(path);
      void this._advance(path);
    }
  }

  private _isAtWork(path: string): boolean {
    const notebook = this._options.model.notebook(path);
    return notebook.pending !== null || runningRun(notebook) !== null;
  }

  /** Sees when a run has ended, and how. */
  private _follow(path: string): void {
    const { model } = this._options;
    const running = runningRun(model.notebook(path));
    const before = this._running.get(path);
    if (running) {
      this._running.set(path, running.runId);
    } else if (before !== undefined) {
      this._running.delete(path);
      this._ended(path, model.run(before));
    }
  }

  private _ended(path: string, run: IRunPicture | null): void {
    const why = reasonToHold(run);
    if (why) {
      this.hold(path, why);
    } else {
      this._due.add(path);
      void this._advance(path);
    }
  }

  private async _advance(path: string): Promise<void> {
    if (!this._next(path)) {
      return;
    }
    // The question is about the notebook with all that the run before wrote.
    await this._options.caughtUp(path).catch(() => undefined);
    const next = this._next(path);
    if (!next) {
      return;
    }
    this._due.delete(path);
    const { waiting } = this.get(path);
    this._update(path, { waiting: waiting.slice(1) });
    if (!(await this._sent(path, next.question))) {
      this.putFirst(path, next.question, 'refused');
    }
  }

  /** Sends a question; whatever goes wrong, it is not lost and keeps no other one waiting. */
  private async _sent(path: string, question: IQuestion): Promise<boolean> {
    const { model, send } = this._options;
    try {
      return await send(path, question);
    } catch (error) {
      model.settle(path);
      model.notify(path, (error as Error).message ?? String(error));
      return false;
    }
  }

  /** The question that is to be sent now. */
  private _next(path: string): IWaitingQuestion | null {
    const { edited, held, waiting } = this.get(path);
    const isDue = this._due.has(path) && held === null;
    const [next] = waiting;
    return isDue && next && next.id !== edited && !this._isAtWork(path)
      ? next
      : null;
  }

  private _rename(from: string, to: string): void {
    const queue = this._queues.get(from);
    if (queue) {
      this._queues.delete(from);
      this._update(to, queue);
    }
    for (const [id, { path, question }] of this._aside) {
      if (path === from) {
        this.setAside(id, to, question);
      }
    }
    const running = this._running.get(from);
    if (running !== undefined) {
      this._running.delete(from);
      this._running.set(to, running);
    }
    if (this._due.delete(from)) {
      this._due.add(to);
      void this._advance(to);
    }
  }

  private _update(path: string, part: Partial<IQueuePicture>): void {
    const queue = { ...this.get(path), ...part };
    if (queue.waiting.length === 0) {
      this._queues.delete(path);
    } else {
      this._queues.set(path, queue);
    }
    this._keep();
    this._changed.emit(path);
  }

  private _keep(): void {
    const aside = [...this._aside].map(
      ([id, { path, question }]): KeptQueue => [
        path,
        { ...EMPTY, waiting: [{ id, question }] }
      ]
    );
    const kept = [...aside, ...this._queues];
    this._memory.write(kept.length > 0 ? kept : null);
  }

  /** Nothing that was left behind is sent by itself. */
  private _restore(kept: readonly KeptQueue[]): void {
    for (const [path, { edited, waiting }] of kept) {
      const all = [...this.get(path).waiting, ...waiting];
      this._queues.set(path, { waiting: all, held: 'left', edited });
    }
  }

  private readonly _memory: TabMemory<readonly KeptQueue[]>;
  /** What `setAside` got, by its id. */
  private readonly _aside = new Map<
    string,
    { readonly path: string; readonly question: IQuestion }
  >();
  private readonly _queues = new Map<string, IQueuePicture>();
  /** The run that works in a notebook, by the notebook's path. */
  private readonly _running = new Map<string, string>();
  /** The notebooks in which the next question may be sent. */
  private readonly _due = new Set<string>();
  private readonly _changed = new Signal<this, string>(this);
}

/** Why nothing follows a run by itself; `null` where the next question does. */
function reasonToHold(run: IRunPicture | null): HoldReason | null {
  if (!run) {
    return 'left';
  }
  if (run.steps.some(step => step.isStateLost)) {
    return 'kernel';
  }
  if (run.state === 'answered') {
    return null;
  }
  return run.stop === 'cancelled' ? 'stopped' : 'unanswered';
}
