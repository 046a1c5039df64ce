/**
 * A run's picture after one more message.
 */
import { withOutput } from './outputs';
import { emptyStep, isOpenStatus } from './pictures';
import type { IRunPicture, IStepPicture, RunState } from './pictures';
import type {
  ICellClosed,
  ICellOpened,
  IPhase,
  IRunClosed,
  IRunOpened,
  IStepClosed,
  ITextDelta,
  Operation,
  RunMessage
} from '../protocol.gen';

const STATE_OF_STOP: { readonly [stop: string]: RunState } = {
  answered: 'answered',
  turn_limit: 'stopped',
  budget: 'stopped',
  cancelled: 'stopped',
  void: 'failed',
  fault: 'failed'
};

/** How a run that ended for this reason stands. */
export function stateOfStop(stop: string | null): RunState {
  return stop === null ? 'running' : (STATE_OF_STOP[stop] ?? 'failed');
}

/**
 * Returns the run with the message taken in. A message that the picture holds already, and one of
 * a run whose opening was never seen, change nothing.
 */
export function reduceRun(
  run: IRunPicture | null,
  message: RunMessage | ITextDelta | IPhase
): IRunPicture | null {
  if (message.kind === 'run_opened') {
    return run ?? opened(message);
  }
  if (run === null) {
    return null;
  }
  if (message.kind === 'text_delta') {
    return streamed(run, message);
  }
  if (message.kind === 'phase') {
    return { ...run, phase: message.text };
  }
  if (message.seq <= run.seq) {
    return run;
  }
  return { ...advanced(run, message), seq: message.seq };
}

function opened(message: IRunOpened): IRunPicture {
  return {
    runId: message.run_id,
    seq: message.seq,
    requestId: message.request_id,
    notebookPath: message.notebook_path,
    question: message.question,
    files: message.files,
    variables: message.variables,
    model: message.model,
    endpoint: message.endpoint,
    approval: message.approval,
    kernel: message.kernel,
    tries: message.tries,
    openedAt: message.at,
    limits: {
      turns: message.max_turns,
      tokens: message.max_tokens,
      seconds: message.max_seconds,
      cells: message.max_cells
    },
    state: 'running',
    isStopping: false,
    phase: '',
    told: [],
    steps: [],
    sources: {},
    outputs: {},
    totals: { turns: 0, tokens: 0, cells: 0, seconds: null },
    stop: null,
    detail: '',
    answer: null,
    agreeing: 0,
    tried: 0,
    others: [],
    unsupported: [],
    restsOn: '',
    ending: [],
    numbers: []
  };
}

function advanced(run: IRunPicture, message: RunMessage): IRunPicture {
  switch (message.kind) {
    case 'run_opened':
      return run;
    case 'context_told':
      return { ...run, told: message.parts };
    case 'step_opened':
      return {
        ...withStep(run, message.step, message.at, step => step),
        phase: ''
      };
    case 'operated':
      return withOperation(run, message.operation);
    case 'cell_opened':
      return cellOpened(run, message);
    case 'cell_decided':
      return withCell(run, message.cell_id, step => ({
        ...step,
        isEdited: message.is_edited,
        status: message.decision === 'approve' ? 'running' : step.status
      }));
    case 'files_wait':
      return withCell(run, message.cell_id, step => ({
        ...step,
        files: message.files,
        status: 'files_wait'
      }));
    case 'files_decided':
      return withCell(run, message.cell_id, step => ({
        ...(message.allows ? step : withoutFiles(step)),
        status: 'running'
      }));
    case 'cell_closed':
      return cellClosed(run, message);
    case 'step_closed':
      return stepClosed(run, message);
    case 'run_closed':
      return runClosed(run, message);
    case 'run_undone':
      return { ...run, state: 'undone' };
  }
}

function withStep(
  run: IRunPicture,
  number: number,
  at: number,
  change: (step: IStepPicture) => IStepPicture
): IRunPicture {
  const index = run.steps.findIndex(step => step.step === number);
  const steps = [...run.steps];
  if (index < 0) {
    steps.push(change(emptyStep(number, at)));
  } else {
    steps[index] = change(steps[index]);
  }
  return { ...run, steps };
}

function withCell(
  run: IRunPicture,
  cellId: string,
  change: (step: IStepPicture) => IStepPicture
): IRunPicture {
  return {
    ...run,
    steps: run.steps.map(step => (step.cellId === cellId ? change(step) : step))
  };
}

function withOperation(run: IRunPicture, operation: Operation): IRunPicture {
  if (operation.op !== 'insert_cell' && operation.op !== 'set_source') {
    const outputs = withOutput(run.outputs, operation);
    return outputs === run.outputs ? run : { ...run, outputs };
  }
  const sources = { ...run.sources, [operation.cell_id]: operation.source };
  return { ...run, sources };
}

function streamed(run: IRunPicture, message: ITextDelta): IRunPicture {
  if (run.state !== 'running') {
    return run;
  }
  const known = run.steps.find(step => step.step === message.step);
  if (known && known.status !== 'thinking') {
    return run;
  }
  const at = run.steps[run.steps.length - 1]?.openedAt ?? run.openedAt;
  return withStep(run, message.step, at, step => ({
    ...step,
    text: message.is_whole ? message.text : step.text + message.text
  }));
}

function cellOpened(run: IRunPicture, message: ICellOpened): IRunPicture {
  return withStep(run, message.step, message.at, step => ({
    ...step,
    cellId: message.cell_id,
    thought: message.thought || step.thought,
    language: message.language,
    waitsBecause: message.waits_because,
    status: message.waits_because ? 'waiting' : 'running'
  }));
}

function cellClosed(run: IRunPicture, message: ICellClosed): IRunPicture {
  const next = withStep(run, message.step, message.at, step => ({
    ...step,
    cellId: message.cell_id,
    status: message.status,
    cellSeconds: message.seconds,
    message: message.message,
    isStateLost: message.state_lost,
    cutBytes: message.cut_bytes ?? 0,
    facts: message.facts ?? [],
    files: message.files
  }));
  const isCounted = message.status !== 'skipped';
  const cells = run.totals.cells + (isCounted ? 1 : 0);
  return { ...next, totals: { ...run.totals, cells } };
}

function stepClosed(run: IRunPicture, message: IStepClosed): IRunPicture {
  const next = withStep(run, message.step, message.at, step => ({
    ...step,
    text: '',
    thought: message.thought || step.thought,
    reasoning: message.reasoning ?? '',
    tokens: message.tokens,
    sampleSeconds: message.seconds,
    status: message.action === 'cell' ? step.status : message.action
  }));
  const { turns, tokens } = run.totals;
  const totals = {
    ...run.totals,
    turns: turns + 1,
    tokens: tokens + message.tokens
  };
  return { ...next, phase: '', totals };
}

/** The run of which nobody knows how it ended. */
export function lost(run: IRunPicture): IRunPicture {
  return {
    ...run,
    state: 'failed',
    isStopping: false,
    phase: '',
    stop: 'lost',
    steps: closedSteps(run)
  };
}

function closedSteps({ steps }: IRunPicture): readonly IStepPicture[] {
  return steps.map(step =>
    isOpenStatus(step.status) ? unfinished(step) : step
  );
}

function runClosed(run: IRunPicture, message: IRunClosed): IRunPicture {
  return {
    ...run,
    state: stateOfStop(message.stop),
    isStopping: false,
    phase: '',
    stop: message.stop,
    detail: message.detail,
    answer: message.shown ?? message.answer,
    agreeing: message.agreeing,
    tried: message.tries || run.tries,
    others: message.others,
    unsupported: message.unsupported,
    restsOn: message.rests_on ?? '',
    ending: message.ending ?? [],
    numbers: message.numbers,
    totals: {
      turns: message.turns,
      tokens: message.tokens,
      cells: message.cells,
      seconds: message.seconds
    },
    steps: closedSteps(run)
  };
}

/** What waited for a yes when the run ended is dropped. */
function unfinished(step: IStepPicture): IStepPicture {
  const last = step.status === 'files_wait' ? withoutFiles(step) : step;
  return { ...last, status: 'unfinished', text: '' };
}

/** The step with none of the files that waited written. */
function withoutFiles(step: IStepPicture): IStepPicture {
  return {
    ...step,
    files: step.files.map(file => ({ ...file, state: 'refused' })),
    discarded: step.files.map(file => file.path)
  };
}
