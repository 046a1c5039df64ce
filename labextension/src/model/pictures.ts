/**
 * What the panel shows, as immutable values: a run is what its messages add up to.
 */
import type { Outputs } from './outputs';
import type {
  Approval,
  IAnswerNumber,
  IAsk,
  IContextPart,
  IFileChange,
  IFilesWanted,
  IKernelMeter,
  IRefused,
  KernelChoice
} from '../protocol.gen';
import type { IRunSummary } from '../channel/rest';

export type RunState = 'running' | 'answered' | 'stopped' | 'failed' | 'undone';

/** How far a turn has come; once its cell has ended, the cell's own status. */
export type StepStatus =
  | 'thinking'
  | 'waiting'
  | 'files_wait'
  | 'running'
  | 'answer'
  | 'void'
  | 'unfinished'
  | (string & {});

/** One turn of the model, with the cell it wrote. */
export interface IStepPicture {
  readonly step: number;
  readonly openedAt: number;
  /** The text of the turn while it is being sampled. */
  readonly text: string;
  readonly thought: string;
  /** What the model thought beside the turn; shown folded. */
  readonly reasoning: string;
  readonly cellId: string | null;
  readonly language: string;
  readonly status: StepStatus;
  readonly waitsBecause: string;
  readonly isEdited: boolean;
  readonly message: string;
  readonly isStateLost: boolean;
  /** Bytes of the cell's output that were not kept. */
  readonly cutBytes: number;
  /** What the cell did to the data, a line each, where that is worth a look. */
  readonly facts: readonly string[];
  /** What the cell did to files of the notebook's folder, or is to do once the person agrees. */
  readonly files: readonly IFileChange[];
  /** Paths of those that were dropped because nobody said yes to them. */
  readonly discarded: readonly string[];
  readonly tokens: number;
  readonly sampleSeconds: number;
  readonly cellSeconds: number;
}

/** The most that a run may use. */
export interface IRunLimits {
  readonly turns: number;
  readonly tokens: number;
  readonly seconds: number;
  readonly cells: number;
}

/** What a run has used. */
export interface IRunTotals {
  readonly turns: number;
  readonly tokens: number;
  readonly cells: number;
  /** `null` while the run goes on: then it is counted from `openedAt`. */
  readonly seconds: number | null;
}

/** One question and all that came of it. */
export interface IRunPicture {
  readonly runId: string;
  /** The last message that this picture holds. */
  readonly seq: number;
  readonly requestId: string;
  readonly notebookPath: string;
  readonly question: string;
  readonly files: readonly string[];
  readonly variables: readonly string[];
  readonly model: string;
  /** Where the model answers; empty for the server's machine. */
  readonly endpoint: string;
  readonly approval: Approval;
  readonly kernel: KernelChoice;
  /** How often the question is tried: above one, in fresh kernels first. */
  readonly tries: number;
  readonly openedAt: number;
  readonly limits: IRunLimits;
  readonly state: RunState;
  readonly isStopping: boolean;
  readonly phase: string;
  /** What the model was told beside the question. */
  readonly told: readonly IContextPart[];
  readonly steps: readonly IStepPicture[];
  /** The text of the run's cells, by cell id. */
  readonly sources: { readonly [cellId: string]: string };
  /** What they showed, short, by cell id. */
  readonly outputs: Outputs;
  readonly totals: IRunTotals;
  readonly stop: string | null;
  readonly detail: string;
  /** As people read it, not as the model stated it. */
  readonly answer: string | null;
  /** Tries that say what the answer says. */
  readonly agreeing: number;
  /** Tries that ran: fewer than `tries` where two agreed before. */
  readonly tried: number;
  /** What tries say that say something else, shortened. */
  readonly others: readonly string[];
  readonly unsupported: readonly string[];
  /** Which data the answer rests on that are not there, in a sentence; empty for none. */
  readonly restsOn: string;
  /** What stands below the answer of a cleaning or a chart, a sentence each. */
  readonly ending: readonly string[];
  /** The numbers of the answer, with the cells that they come from. */
  readonly numbers: readonly IAnswerNumber[];
}

/** Something to tell the person about a notebook, until they put it away. */
export interface INotice {
  readonly id: number;
  readonly text: string;
}

/** Everything that the panel knows of one notebook. */
export interface INotebookPicture {
  readonly path: string;
  readonly runs: readonly IRunPicture[];
  /** Runs of former sessions, newest first, as the server lists them. */
  readonly past: readonly IRunSummary[];
  /** The past runs whose messages were fetched. */
  readonly reopened: { readonly [runId: string]: IRunPicture };
  /** A question that the server has not answered for yet. */
  readonly pending: IAsk | null;
  /** What is done before it is sent; empty where it is on its way. */
  readonly preparing: string;
  /** Ends that; `null` where it can't be ended. */
  readonly stopPreparing: (() => void) | null;
  readonly refusal: IRefused | null;
  /** Files that code in the kernel wants read, which only the person can allow. */
  readonly wanted: IFilesWanted | null;
  /** What code asked for meanwhile: what a person is about to press never changes under them. */
  readonly nextWanted: IFilesWanted | null;
  /** What code wrote outside of a run and the folder did not take, until it is put away. */
  readonly leftOut: readonly IFileChange[];
  /** `null` until the server has said so. */
  readonly isOwner: boolean | null;
  readonly isShared: boolean;
  readonly meter: IKernelMeter | null;
  readonly notices: readonly INotice[];
}

export function emptyNotebook(path: string): INotebookPicture {
  return {
    path,
    runs: [],
    past: [],
    reopened: {},
    pending: null,
    preparing: '',
    stopPreparing: null,
    refusal: null,
    wanted: null,
    nextWanted: null,
    leftOut: [],
    isOwner: null,
    isShared: false,
    meter: null,
    notices: []
  };
}

export function emptyStep(step: number, openedAt: number): IStepPicture {
  return {
    step,
    openedAt,
    text: '',
    thought: '',
    reasoning: '',
    cellId: null,
    language: '',
    status: 'thinking',
    waitsBecause: '',
    isEdited: false,
    message: '',
    isStateLost: false,
    cutBytes: 0,
    facts: [],
    files: [],
    discarded: [],
    tokens: 0,
    sampleSeconds: 0,
    cellSeconds: 0
  };
}

/** The run that goes on in a notebook; a notebook has one at most. */
export function runningRun(notebook: INotebookPicture): IRunPicture | null {
  return notebook.runs.find(run => run.state === 'running') ?? null;
}

const OPEN_STATUSES: readonly StepStatus[] = [
  'thinking',
  'waiting',
  'running',
  'files_wait'
];

/** Whether more is to come of a turn that stands so. */
export function isOpenStatus(status: StepStatus): boolean {
  return OPEN_STATUSES.includes(status);
}

/** Whether the step goes on only when the person has decided. */
export function waits(step: IStepPicture): boolean {
  return step.status === 'waiting' || step.status === 'files_wait';
}

/** The step whose cell, or what it did to files, waits for the person, if one does. */
export function waitingStep(run: IRunPicture): IStepPicture | null {
  return run.steps.find(waits) ?? null;
}

/**
 * Returns the run below which the next one goes: the last one, unless the person has moved since.
 *
 * @param isThere Whether the person is where they asked the question of a request.
 */
export function followed(
  { past, runs }: INotebookPicture,
  place: number,
  isThere: (requestId: string) => boolean
): string | null {
  const last = runs[runs.length - 1];
  if (!last) {
    // Nobody has moved yet in a notebook whose first cell is active.
    return place > 0 ? null : (past[0]?.run_id ?? null);
  }
  return isThere(last.requestId) ? last.runId : null;
}
