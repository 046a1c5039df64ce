/**
 * Saves a notebook after its cells have run, so that the file is never far behind.
 */
import type { DocumentRegistry } from '@jupyterlab/docregistry';
import type { IDisposable } from '@lumino/disposable';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

import { saveAlone } from './disk';
import type { NotebookContext } from './disk';

const INTERVAL_MS = 1000;
/** A save that the person cancels in a dialog never says that it ended. */
const LONGEST_SAVE_MS = 15_000;

/**
 * Coalesces requests to save, at most one a second and never two at a time: two saves at once
 * look like a conflict to the document.
 */
export class QuietSaver implements IDisposable {
  /**
   * @param context The document.
   * @param snapshot What the document holds now; a save that starts now will have it on disk.
   * @param maySave Whether this tab is the one to save, now.
   */
  constructor(
    private readonly _context: NotebookContext,
    private readonly _snapshot: () => ReadonlyMap<string, number>,
    private readonly _maySave: () => boolean
  ) {
    _context.saveState.connect(this._onSaveState, this);
  }

  /** Emits what the file holds, after any save, the person's too. */
  get saved(): ISignal<this, ReadonlyMap<string, number>> {
    return this._saved;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Saves soon. */
  request(): void {
    this._isWanted = true;
    if (this._timer === null && !this._isDisposed) {
      const sinceLast = Date.now() - this._lastStart;
      const delay = Math.max(0, INTERVAL_MS - sinceLast);
      this._timer = window.setTimeout(() => void this._flush(), delay);
    }
  }

  /** This tab may save again: does what was asked for before. */
  retry(): void {
    if (this._isWanted) {
      this.request();
    }
  }

  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    if (this._timer !== null) {
      clearTimeout(this._timer);
    }
    this._context.saveState.disconnect(this._onSaveState, this);
    Signal.clearData(this);
  }

  private async _flush(): Promise<void> {
    this._timer = null;
    if (!this._isWanted || this._isDisposed || this._context.isDisposed) {
      return;
    }
    const isBusy =
      this._atStart !== null && Date.now() - this._lastStart < LONGEST_SAVE_MS;
    if (isBusy || !this._maySave()) {
      // Tried again when the save ends, or by `retry`.
      return;
    }
    this._isWanted = false;
    if (this._context.canSave === false || this._context.model.readOnly) {
      return;
    }
    try {
      await saveAlone(this._context);
    } catch (error) {
      // The document has told the person already: the next try is that of `retry`.
      console.warn('The notebook could not be saved', error);
      this._isWanted = true;
    }
  }

  private _onSaveState(
    _: NotebookContext,
    state: DocumentRegistry.SaveState
  ): void {
    if (state === 'started') {
      this._lastStart = Date.now();
      this._atStart = new Map(this._snapshot());
      this._fileAtStart = this._context.contentsModel;
      return;
    }
    if (state === 'completed' && this._atStart && this._isFileWritten()) {
      this._saved.emit(this._atStart);
    }
    if (state === 'completed' || state === 'failed') {
      this._atStart = null;
      this.retry();
    }
  }

  /** *Save Notebook As…* says that it starts and ends as a save does, and writes another file. */
  private _isFileWritten(): boolean {
    const [before, now] = [this._fileAtStart, this._context.contentsModel];
    return (
      before?.hash !== now?.hash || before?.last_modified !== now?.last_modified
    );
  }

  private _fileAtStart: NotebookContext['contentsModel'] = null;
  private _atStart: ReadonlyMap<string, number> | null = null;
  private _isWanted = false;
  private _isDisposed = false;
  private _lastStart = 0;
  private _timer: number | null = null;
  private _saved = new Signal<this, ReadonlyMap<string, number>>(this);
}
