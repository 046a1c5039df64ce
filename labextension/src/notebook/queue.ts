/**
 * The operations that wait to be applied: a frame's worth at a time, in order.
 */
import type { IDisposable } from '@lumino/disposable';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

import { nextFrame } from './frame';
import type { Schedule } from './frame';
import type { IAppendOutput, Operation } from '../protocol.gen';

/** Half of a frame of 16 ms; the other half is for drawing what changed. */
const BUDGET_MS = 8;
/**
 * JupyterLab draws the whole text of a stream for each piece that is added to it. After a piece
 * that took longer than its share of a frame, the next waits this many times as long, and pieces
 * gather meanwhile.
 */
const PAUSE_FACTOR = 4;
const LONGEST_PAUSE_MS = 2000;

/** A message of a run in its turn; `null` where it changes nothing in the notebook. */
export interface IQueued {
  readonly runId: string;
  readonly seq: number;
  readonly operation: Operation | null;
  /** Whether the notebook should be saved after it. */
  readonly isClosing: boolean;
}

/** What one frame applied. */
export interface IBatch {
  readonly applied: ReadonlyMap<string, number>;
  readonly operations: readonly Operation[];
  readonly isClosing: boolean;
}

/** Applies operations in order, as many a frame as fit in it. */
export class OperationQueue implements IDisposable {
  constructor(
    private readonly _apply: (operation: Operation) => void,
    private readonly _schedule: Schedule = nextFrame
  ) {}

  /** Run id to the last `seq` that is applied. */
  get applied(): ReadonlyMap<string, number> {
    return this._applied;
  }

  /** Emits what a frame applied. */
  get advanced(): ISignal<this, IBatch> {
    return this._advanced;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  push(item: IQueued): void {
    this._waiting.push(item);
    this._wake();
  }

  /** The document holds the run's operations up to `seq` already. */
  skipTo(runId: string, seq: number): void {
    this._applied.set(runId, Math.max(seq, this._applied.get(runId) ?? 0));
  }

  /** Stops applying until `resume`; what is pushed meanwhile waits. */
  pause(): void {
    this._isPaused = true;
  }

  resume(): void {
    this._isPaused = false;
    this._wake();
  }

  /** Drops what waits. */
  clear(): void {
    this._waiting = [];
  }

  dispose(): void {
    this._isDisposed = true;
    this._cancel?.();
    this._waiting = [];
    Signal.clearData(this);
  }

  private _wake(): void {
    if (this._cancel || this._isPaused || this._waiting.length === 0) {
      return;
    }
    this._cancel = this._schedule(() => {
      this._cancel = null;
      if (this._isDisposed || this._isPaused) {
        return;
      }
      if (!this._isGathering()) {
        this._drain();
      }
      this._wake();
    });
  }

  /** Whether more pieces of a stream are waited for; what follows on the stream ends the wait. */
  private _isGathering(): boolean {
    return (
      performance.now() < this._pauseEnd &&
      this._waiting.every(item => isStream(item.operation))
    );
  }

  private _drain(): void {
    const start = performance.now();
    const deadline = start + BUDGET_MS;
    const applied = new Map<string, number>();
    const operations: Operation[] = [];
    let isClosing = false;
    let index = 0;
    while (index < this._waiting.length && performance.now() < deadline) {
      const item = this._waiting[index];
      if (item.seq <= (this._applied.get(item.runId) ?? 0)) {
        index += 1;
        continue;
      }
      const [operation, length] = this._merged(index);
      if (operation) {
        try {
          this._apply(operation);
          operations.push(operation);
        } catch (error) {
          // Tried again it would fail again, and keep all that follows waiting.
          console.error('A change of the notebook could not be made', error);
        }
      }
      const last = this._waiting[index + length - 1];
      this._applied.set(last.runId, last.seq);
      applied.set(last.runId, last.seq);
      isClosing ||= item.isClosing;
      index += length;
    }
    this._waiting = this._waiting.slice(index);
    const end = performance.now();
    if (end > deadline) {
      const pause = Math.min((end - start) * PAUSE_FACTOR, LONGEST_PAUSE_MS);
      this._pauseEnd = end + pause;
    }
    this._advanced.emit({ applied, operations, isClosing });
  }

  /** Joins neighbouring pieces of one stream: a cell that floods is drawn once a frame. */
  private _merged(start: number): [Operation | null, number] {
    const first = this._waiting[start];
    if (!isStream(first.operation)) {
      return [first.operation, 1];
    }
    const pieces: string[] = [];
    let end = start;
    while (end < this._waiting.length) {
      const { operation, runId } = this._waiting[end];
      if (
        runId !== first.runId ||
        !isStream(operation) ||
        operation.cell_id !== first.operation.cell_id ||
        operation.output.name !== first.operation.output.name
      ) {
        break;
      }
      const { text } = operation.output;
      pieces.push(Array.isArray(text) ? text.join('') : text);
      end += 1;
    }
    const output = { ...first.operation.output, text: pieces.join('') };
    return [{ ...first.operation, output }, end - start];
  }

  private _waiting: IQueued[] = [];
  private _applied = new Map<string, number>();
  private _isPaused = false;
  private _pauseEnd = 0;
  private _isDisposed = false;
  private _cancel: (() => void) | null = null;
  private _advanced = new Signal<this, IBatch>(this);
}

function isStream(operation: Operation | null): operation is IAppendOutput {
  return (
    operation?.op === 'append_output' &&
    operation.output.output_type === 'stream'
  );
}
