import type { Operation } from '../protocol.gen';
import { OperationQueue } from '../notebook/queue';
import type { IBatch } from '../notebook/queue';
import { RUN, insertCell, printed } from './messages';

/** Frames that come when the test says so. */
class Frames {
  private _waiting: (() => void)[] = [];

  readonly schedule = (callback: () => void) => {
    this._waiting.push(callback);
    return () => {
      this._waiting = this._waiting.filter(one => one !== callback);
    };
  };

  next(): void {
    this._waiting.splice(0).forEach(callback => callback());
  }

  get isIdle(): boolean {
    return this._waiting.length === 0;
  }
}

describe('OperationQueue', () => {
  let frames: Frames;
  let applied: Operation[];
  let batches: IBatch[];
  let cost: number;
  let now: number;
  let queue: OperationQueue;

  beforeEach(() => {
    frames = new Frames();
    applied = [];
    batches = [];
    cost = 0;
    now = 1000;
    jest.spyOn(performance, 'now').mockImplementation(() => now);
    queue = new OperationQueue(operation => {
      applied.push(operation);
      now += cost;
    }, frames.schedule);
    queue.advanced.connect((_, batch) => batches.push(batch));
  });

  afterEach(() => {
    queue.dispose();
    jest.restoreAllMocks();
  });

  function push(seq: number, operation: Operation | null): void {
    queue.push({ runId: RUN, seq, operation, isClosing: operation === null });
  }

  it('applies in order, a frame’s worth at a time', () => {
    cost = 5;
    for (let seq = 1; seq <= 4; seq += 1) {
      push(seq, insertCell(`cell-${seq}`));
    }
    frames.next();
    expect(queue.applied.get(RUN)).toBe(2);
    frames.next();
    expect(queue.applied.get(RUN)).toBe(4);
    expect(applied.map(one => one.cell_id)).toEqual([
      'cell-1',
      'cell-2',
      'cell-3',
      'cell-4'
    ]);
    expect(frames.isIdle).toBe(true);
  });

  it('joins the pieces of a stream, but not past another output', () => {
    push(1, printed('a', '1'));
    push(2, printed('a', '2'));
    push(3, { op: 'clear_outputs', cell_id: 'a' });
    push(4, printed('a', '3'));
    push(5, printed('b', '4'));
    frames.next();
    expect(
      applied.map(one =>
        one.op === 'append_output' ? one.output.text : one.op
      )
    ).toEqual(['12', 'clear_outputs', '3', '4']);
    expect(batches[0].applied.get(RUN)).toBe(5);
  });

  it('lets a stream that is slow to draw gather, until something follows', () => {
    cost = 100;
    push(1, printed('a', '1'));
    frames.next();
    push(2, printed('a', '2'));
    frames.next();
    expect(applied).toHaveLength(1);
    now += 500;
    frames.next();
    expect(applied).toHaveLength(2);
    push(3, printed('a', '3'));
    push(4, null);
    frames.next();
    expect(applied).toHaveLength(3);
    frames.next();
    expect(batches.pop()?.isClosing).toBe(true);
  });

  it('skips what the document holds', () => {
    queue.skipTo(RUN, 1);
    push(1, insertCell('cell-1'));
    push(2, insertCell('cell-2'));
    frames.next();
    expect(applied.map(one => one.cell_id)).toEqual(['cell-2']);
  });

  it('goes on after an operation that can’t be applied, and tries it once', () => {
    const error = jest.spyOn(console, 'error').mockImplementation();
    const tried: string[] = [];
    const strict = new OperationQueue(({ cell_id: cellId }) => {
      tried.push(cellId);
      if (cellId === 'bad') {
        throw new Error('no such output');
      }
    }, frames.schedule);
    strict.advanced.connect((_, batch) => batches.push(batch));
    ['first', 'bad', 'last'].forEach((cellId, index) =>
      strict.push({
        runId: RUN,
        seq: index + 1,
        operation: insertCell(cellId),
        isClosing: false
      })
    );
    frames.next();
    frames.next();
    expect(tried).toEqual(['first', 'bad', 'last']);
    expect(strict.applied.get(RUN)).toBe(3);
    expect(batches[0].operations).toHaveLength(2);
    expect(error).toHaveBeenCalledTimes(1);
    strict.dispose();
  });

  it('waits while it is paused', () => {
    queue.pause();
    push(1, insertCell('cell-1'));
    frames.next();
    expect(applied).toEqual([]);
    queue.resume();
    frames.next();
    expect(applied).toHaveLength(1);
  });
});
