/**
 * What a tab missed of runs: it is fetched, and fetched again where that failed.
 */
import type { IDisposable } from '@lumino/disposable';

/** How long to wait before what could not be fetched is fetched again; longer each time. */
const FIRST_DELAY_MS = 1000;
const LONGEST_DELAY_MS = 30_000;

/** How far runs have come, by their ids. */
export interface IPositions {
  readonly [runId: string]: number;
}

/** Fetches runs on one connection; the next one begins anew. */
export class MissedRuns implements IDisposable {
  /**
   * @param _fetchRun Fetches all messages of a run; returns how far it has come. It gets what the
   * document holds of runs, if that is what the file holds, else `null`.
   * @param _onCaughtUp Gets how far the runs have come that `catchUp` was given, once all are here.
   */
  constructor(
    private readonly _fetchRun: (
      runId: string,
      inFile: IPositions | null
    ) => Promise<number>,
    private readonly _onCaughtUp: (reached: IPositions) => void
  ) {}

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Fetches runs; returns how far those have come that could be fetched at once. */
  async fetch(
    runIds: readonly string[],
    inFile: IPositions | null = null
  ): Promise<IPositions> {
    const failed = this._failed;
    const reached: { [runId: string]: number } = {};
    for (const runId of new Set(runIds)) {
      try {
        reached[runId] = await this._fetchRun(runId, inFile);
      } catch (error) {
        console.warn(`The run ${runId} could not be fetched`, error);
        if (failed === this._failed && !this._isDisposed) {
          failed.set(runId, inFile);
          this._fetchLater();
        }
      }
    }
    if (failed === this._failed && this._reached) {
      this._reached = { ...this._reached, ...reached };
    }
    return reached;
  }

  /** Fetches runs, all of which must be here before the file is written again. */
  async catchUp(runIds: readonly string[]): Promise<void> {
    const failed = this._failed;
    this._reached ??= {};
    await this.fetch(runIds);
    this._tell(failed);
  }

  /** The connection broke: what has not been fetched is fetched when it is back. */
  forget(): void {
    this._failed = new Map();
    this._reached = null;
    clearTimeout(this._retry ?? undefined);
    this._retry = null;
    this._delay = FIRST_DELAY_MS;
  }

  dispose(): void {
    this._isDisposed = true;
    this.forget();
  }

  /** Later and later. */
  private _fetchLater(): void {
    this._retry ??= window.setTimeout(() => {
      this._retry = null;
      this._delay = Math.min(this._delay * 2, LONGEST_DELAY_MS);
      void this._fetchFailed();
    }, this._delay);
  }

  private async _fetchFailed(): Promise<void> {
    const failed = this._failed;
    const again = [...failed];
    failed.clear();
    for (const [runId, inFile] of again) {
      await this.fetch([runId], inFile);
      if (failed !== this._failed) {
        return;
      }
    }
    this._tell(failed);
  }

  private _tell(failed: ReadonlyMap<string, unknown>): void {
    const reached = this._reached;
    if (failed === this._failed && failed.size === 0 && reached) {
      this._reached = null;
      this._onCaughtUp(reached);
    }
  }

  /** The runs to fetch again, with what the document holds of them where it is known. */
  private _failed = new Map<string, IPositions | null>();
  /** How far runs have come, while `_onCaughtUp` is due. */
  private _reached: IPositions | null = null;
  private _retry: number | null = null;
  private _delay = FIRST_DELAY_MS;
  private _isDisposed = false;
}
