/** Messages as the server sends them, for tests. */
import type {
  IAnswerNumber,
  Operation,
  ICellClosed,
  ICellOpened,
  IFileChange,
  IKernelMeter,
  IRunClosed,
  IRunOpened,
  IStepClosed,
  RunMessage
} from '../protocol.gen';

export const RUN = 'run-1';
export const PATH = 'work/sales.ipynb';

export function runOpened(part: Partial<IRunOpened> = {}): IRunOpened {
  return {
    kind: 'run_opened',
    run_id: RUN,
    seq: 1,
    at: 1000,
    request_id: 'request-1',
    notebook_path: PATH,
    question: 'How many?',
    files: [],
    model: 'small',
    approval: 'risky',
    kernel: 'restricted',
    max_turns: 10,
    max_tokens: 20000,
    max_seconds: 600,
    max_cells: 10,
    tries: 1,
    variables: [],
    endpoint: '',
    ...part
  };
}

export function operated(seq: number, operation: Operation): RunMessage {
  return { kind: 'operated', run_id: RUN, seq, operation };
}

export function insertCell(
  cellId: string,
  source = 'print(1)',
  after: string[] = [],
  cellType: 'code' | 'markdown' = 'code'
): Operation {
  return {
    op: 'insert_cell',
    cell_id: cellId,
    cell_type: cellType,
    source,
    after,
    metadata: { dm_jupyter: { run: RUN, role: 'cell' } }
  };
}

export function printed(cellId: string, text: string): Operation {
  return {
    op: 'append_output',
    cell_id: cellId,
    output: { output_type: 'stream', name: 'stdout', text }
  };
}

export function cellOpened(part: Partial<ICellOpened> = {}): ICellOpened {
  return {
    kind: 'cell_opened',
    run_id: RUN,
    seq: 4,
    at: 1002,
    step: 1,
    cell_id: 'cell-1',
    thought: 'Count the rows.',
    language: 'python',
    waits_because: '',
    ...part
  };
}

export function cellClosed(part: Partial<ICellClosed> = {}): ICellClosed {
  return {
    kind: 'cell_closed',
    run_id: RUN,
    seq: 5,
    at: 1003,
    step: 1,
    cell_id: 'cell-1',
    status: 'ok',
    seconds: 0.5,
    peak_bytes: null,
    message: '',
    state_lost: false,
    files: [],
    cut_bytes: 0,
    facts: [],
    ...part
  };
}

export function stepClosed(part: Partial<IStepClosed> = {}): IStepClosed {
  return {
    kind: 'step_closed',
    run_id: RUN,
    seq: 6,
    at: 1003,
    step: 1,
    action: 'cell',
    thought: 'Count the rows.',
    tokens: 40,
    seconds: 1.5,
    reasoning: '',
    ...part
  };
}

export function runClosed(part: Partial<IRunClosed> = {}): IRunClosed {
  return {
    kind: 'run_closed',
    run_id: RUN,
    seq: 7,
    at: 1010,
    stop: 'answered',
    detail: '',
    answer: 'There are **3**.',
    unsupported: [],
    rests_on: '',
    turns: 2,
    cells: 1,
    tokens: 80,
    seconds: 10,
    agreeing: 0,
    tries: 0,
    others: [],
    numbers: [],
    shown: null,
    ending: [],
    ...part
  };
}

export function numberOf(
  text: string,
  start: number,
  part: Partial<IAnswerNumber> = {}
): IAnswerNumber {
  return {
    text,
    start,
    verdict: 'supported',
    cell_id: null,
    why: '',
    full: '',
    ...part
  };
}

export function stepOpened(seq: number, step = 1): RunMessage {
  return { kind: 'step_opened', run_id: RUN, seq, at: 1001, step };
}

export function changeOf(
  path: string,
  part: Partial<IFileChange> = {}
): IFileChange {
  return {
    path,
    kind: 'made',
    state: 'written',
    size_bytes: 0,
    before_bytes: null,
    marks: [],
    ...part
  };
}

export function filesWait(files: IFileChange[], seq = 5): RunMessage {
  const of = { run_id: RUN, at: 1003, step: 1, cell_id: 'cell-1' };
  return { kind: 'files_wait', ...of, seq, files };
}

export function filesDecided(allows: boolean, seq = 6): RunMessage {
  const of = { run_id: RUN, at: 1004, cell_id: 'cell-1' };
  return { kind: 'files_decided', ...of, seq, allows };
}

export function meterOf(part: Partial<IKernelMeter> = {}): IKernelMeter {
  return {
    kind: 'kernel_meter',
    notebook_path: PATH,
    kernel_id: 'kernel-1',
    is_restricted: true,
    layers_active: ['rlimits'],
    layers_missing: [],
    memory_bytes: 0,
    memory_limit_bytes: 0,
    cpu_s: 0,
    cpu_limit_s: 0,
    processes: 1,
    process_limit: 64,
    files_left_out: [],
    ...part
  };
}
