/**
 * What the person is writing: a question for each notebook, and the text of what waits.
 */
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

import type { IAsk } from '../protocol.gen';
import type { TabMemory } from './tabmemory';
import type { IQuestion } from './tokens';

/** A question that is not sent yet. */
export interface IDraft {
  readonly text: string;
  readonly files: readonly string[];
  readonly variables: readonly string[];
}

/** All that is being written. */
export interface IWritings {
  readonly drafts: readonly (readonly [string, IDraft])[];
  readonly kept: readonly (readonly [string, string])[];
}

const EMPTY: IDraft = { text: '', files: [], variables: [] };

/** Keeps drafts, so that neither looking at another notebook nor a reload loses any. */
export class Drafts {
  /** @param _memory Where they outlast a reload of the page; nowhere without it. */
  constructor(private readonly _memory?: TabMemory<IWritings>) {
    _memory?.read(({ drafts, kept }) => {
      this._drafts = new Map(drafts);
      this._kept = new Map(kept);
    });
  }

  get changed(): ISignal<this, string> {
    return this._changed;
  }

  get(path: string): IDraft {
    return this._drafts.get(path) ?? EMPTY;
  }

  change(path: string, part: Partial<IDraft>): void {
    this._drafts.set(path, { ...this.get(path), ...part });
    this._write();
    this._changed.emit(path);
  }

  /** A question was not sent: it need not be written again, unless another one is by now. */
  putBack(path: string, ask: IAsk): void {
    if (!this.get(path).text) {
      const { files = [], question, variables = [] } = ask;
      this.change(path, { text: question, files, variables });
    }
  }

  addFile(path: string, file: string): void {
    const { files } = this.get(path);
    if (!files.includes(file)) {
      this.change(path, { files: [...files, file] });
    }
  }

  addVariable(path: string, variable: string): void {
    const { variables } = this.get(path);
    if (!variables.includes(variable)) {
      this.change(path, { variables: [...variables, variable] });
    }
  }

  /** The notebook's file has another name now. */
  rename(from: string, to: string): void {
    const draft = this._drafts.get(from);
    if (draft) {
      this._drafts.delete(from);
      this._drafts.set(to, draft);
      this._write();
      this._changed.emit(to);
    }
  }

  clear(path: string): void {
    this._drafts.delete(path);
    this._write();
    this._changed.emit(path);
  }

  /**
   * The text that a cell or a question that waits is being given; `null` where it is left as is. The
   * id of a cell is its run's and its own, with a space between.
   */
  kept(id: string): string | null {
    return this._kept.get(id) ?? null;
  }

  /** Changes that; nobody else follows it. */
  keep(id: string, text: string | null): void {
    if (text === null) {
      this._kept.delete(id);
    } else {
      this._kept.set(id, text);
    }
    this._write();
  }

  /** The run has ended: none of its cells waits any more. */
  dropKept(runId: string): void {
    for (const id of [...this._kept.keys()]) {
      if (id.startsWith(`${runId} `)) {
        this.keep(id, null);
      }
    }
  }

  private _write(): void {
    const [drafts, kept] = [[...this._drafts], [...this._kept]];
    const isEmpty = drafts.length + kept.length === 0;
    this._memory?.write(isEmpty ? null : { drafts, kept });
  }

  private _drafts = new Map<string, IDraft>();
  private _kept = new Map<string, string>();
  private _changed = new Signal<this, string>(this);
}

/** A question as it was asked, to be asked again later. */
export function questionOf(ask: IAsk, cursor: string | undefined): IQuestion {
  const { approval = 'risky', model = '' } = ask;
  const { dialect, temperature, turn_tokens } = ask;
  return {
    text: ask.question,
    files: ask.files,
    variables: ask.variables,
    withoutData: ask.without_data,
    tries: ask.tries,
    agreed: ask.agreed,
    chosen: { model, approval, dialect, temperature, turn_tokens },
    cursor
  };
}
