import type { NotebookPanel } from '@jupyterlab/notebook';
import type { Contents } from '@jupyterlab/services';
import { Token } from '@lumino/coreutils';
import type { ISignal } from '@lumino/signaling';

import type { Choices, IChosen } from './choices';
import type { Drafts } from './draft';
import type { AnalystModel } from './model';
import type { Approval, Decision } from '../protocol.gen';
import type { QuestionQueue } from './questionqueue';
import type { AnalystRest, IStatus, IToldPart } from '../channel/rest';

/** A question, before the notebook's cells and the kernel's name are known. */
export interface IQuestion {
  readonly text: string;
  readonly files?: readonly string[];
  readonly variables?: readonly string[];
  /** Whether the person says that it is about none of their data. */
  readonly withoutData?: boolean;
  /** How often to try it; once without a number. */
  readonly tries?: number;
  /** Where links among the files lead, of which the person has said that they may be read. */
  readonly agreed?: readonly string[];
  /** Which cells wait; as chosen below the field without it. */
  readonly approval?: Approval;
  /** What was chosen for it; what is chosen when it is sent, without it. */
  readonly chosen?: IChosen;
  /** The cell at which the person asked it; the active one without it. */
  readonly cursor?: string;
}

/** The analyst of this browser tab. */
export interface IAnalyst {
  /** What is known of each notebook. */
  readonly model: AnalystModel;
  readonly drafts: Drafts;
  /** Questions that wait for the run that works. */
  readonly queue: QuestionQueue;
  readonly choices: Choices;
  readonly rest: AnalystRest;
  readonly contents: Contents.IManager;

  readonly isConnected: boolean;
  /** How the server stands; `null` until it has answered. */
  readonly status: IStatus | null;
  /** Why the server's state can't be read; empty when it can. */
  readonly statusError: string;
  /** Emits when the connection or the server's state is another one. */
  readonly stateChanged: ISignal<IAnalyst, void>;

  /** The notebook that the person looks at; the panel shows its runs. */
  readonly currentPanel: NotebookPanel | null;
  /** Its path below the server's root, or an empty text. */
  readonly currentPath: string;
  readonly currentChanged: ISignal<IAnalyst, void>;

  /** Returns a view of the notebook at the path, if one is open. */
  panel(path: string): NotebookPanel | null;

  /**
   * Asks a question about a notebook that is open; while a run works there, it waits in the queue.
   *
   * @returns Whether it was sent, or waits.
   */
  ask(path: string, question: IQuestion): Promise<boolean>;

  /** Emits when another cell of any notebook is selected. */
  readonly cellSelected: ISignal<unknown, unknown>;

  /** The selected cell of a notebook by its id; empty for none. */
  selectedCell(path: string): string;

  /** Says what the next question of the notebook would tell the model besides its files. */
  preview(path: string): Promise<readonly IToldPart[]>;

  /** Which cells of the next question wait in the notebook. */
  approvalIn(path: string): Approval;

  /** Changes that: for the notebook's kernel where it is not restricted, else for all. */
  setApproval(path: string, approval: Approval): void;

  stop(runId: string): void;

  /**
   * Says whether a cell that waits shall run.
   *
   * @param source The text that the person was shown and that is to run; none for a cell that is
   * left out.
   */
  decide(
    runId: string,
    cellId: string,
    decision: Decision,
    source?: string
  ): void;

  /** Says whether what a cell did to files may reach the person's folder. */
  decideFiles(runId: string, cellId: string, allows: boolean): void;

  /**
   * Asks what code in the notebook's kernel wants asked, about the files that it can't read itself.
   *
   * @returns Whether it was sent.
   */
  askWanted(path: string): Promise<boolean>;

  undo(runId: string): void;

  /** Runs the notebook's own cells again, after their kernel has ended. */
  rebuild(runId: string): Promise<void>;

  takeOver(path: string): void;

  /** Reads the server's state again. */
  refreshStatus(): Promise<void>;

  /** Reads the list of a notebook's former runs again. */
  refreshPast(path: string): Promise<void>;

  /** Fetches a past run's messages, so that it can be shown whole. */
  reopen(path: string, runId: string): Promise<void>;
}

export const IAnalyst = new Token<IAnalyst>(
  'dm-jupyter:IAnalyst',
  'The data analyst of this browser tab: its runs, and what can be said to them.'
);
