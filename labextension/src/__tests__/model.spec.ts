import { nullTranslator } from '@jupyterlab/translation';

import { AnalystModel } from '../model/model';
import { runningRun, waitingStep } from '../model/pictures';
import type { IRunPicture } from '../model/pictures';
import { stopWords } from '../model/wording';
import type { IAsk, ServerMessage } from '../protocol.gen';
import {
  PATH,
  RUN,
  cellClosed,
  cellOpened,
  insertCell,
  operated,
  runClosed,
  runOpened,
  stepClosed,
  stepOpened
} from './messages';

const ASK: IAsk = {
  kind: 'ask',
  request_id: 'request-1',
  notebook_path: PATH,
  question: 'How many?'
};

const WHOLE_RUN: ServerMessage[] = [
  runOpened(),
  stepOpened(2),
  operated(3, insertCell('cell-1')),
  cellOpened(),
  cellClosed(),
  stepClosed(),
  runClosed()
];

function received(messages: readonly ServerMessage[]): AnalystModel {
  const model = new AnalystModel();
  messages.forEach(message => model.receive(message));
  return model;
}

function run(model: AnalystModel): IRunPicture {
  const found = model.run(RUN);
  if (!found) {
    throw new Error('the model has no such run');
  }
  return found;
}

describe('AnalystModel', () => {
  it('adds the messages of a run up to a picture', () => {
    const picture = run(received(WHOLE_RUN));
    expect(picture.state).toBe('answered');
    expect(picture.answer).toBe('There are **3**.');
    expect(picture.totals).toEqual({
      turns: 2,
      cells: 1,
      tokens: 80,
      seconds: 10
    });
    expect(picture.steps).toHaveLength(1);
    expect(picture.steps[0]).toMatchObject({
      cellId: 'cell-1',
      status: 'ok',
      thought: 'Count the rows.',
      tokens: 40,
      cellSeconds: 0.5
    });
  });

  it('ignores messages that it has taken in before', () => {
    const model = received(WHOLE_RUN);
    const before = model.notebook(PATH);
    WHOLE_RUN.forEach(message => model.receive(message));
    expect(model.notebook(PATH)).toBe(before);
  });

  it('counts turns, tokens and cells while the run goes on', () => {
    const picture = run(received(WHOLE_RUN.slice(0, -1)));
    expect(picture.totals).toEqual({
      turns: 1,
      cells: 1,
      tokens: 40,
      seconds: null
    });
  });

  it('does not count a cell that was skipped', () => {
    const model = received(WHOLE_RUN.slice(0, 4));
    model.receive(cellClosed({ status: 'skipped' }));
    expect(run(model).totals.cells).toBe(0);
  });

  it('keeps the steps that a message does not concern', () => {
    const model = received(WHOLE_RUN.slice(0, 6));
    const [first] = run(model).steps;
    model.receive(stepOpened(7, 2));
    expect(run(model).steps[0]).toBe(first);
  });

  it('joins the pieces of a turn, and takes a whole text in their stead', () => {
    const model = received(WHOLE_RUN.slice(0, 2));
    const delta = { kind: 'text_delta', run_id: RUN, seq: 0, step: 1 } as const;
    model.receive({ ...delta, text: 'Let me ', is_whole: false });
    model.receive({ ...delta, text: 'count', is_whole: false });
    expect(run(model).steps[0].text).toBe('Let me count');
    model.receive({ ...delta, text: 'All anew', is_whole: true });
    expect(run(model).steps[0].text).toBe('All anew');
  });

  it('drops a piece of text that comes after its turn', () => {
    const model = received(WHOLE_RUN.slice(0, 4));
    const before = run(model);
    model.receive({
      kind: 'text_delta',
      run_id: RUN,
      seq: 0,
      step: 1,
      text: 'late',
      is_whole: false
    });
    expect(run(model)).toBe(before);
  });

  it('shows the cell that waits, with its text, until it is decided on', () => {
    const model = received([
      ...WHOLE_RUN.slice(0, 3),
      cellOpened({ waits_because: 'it writes a file' })
    ]);
    expect(waitingStep(run(model))?.waitsBecause).toBe('it writes a file');
    expect(run(model).sources['cell-1']).toBe('print(1)');
    model.receive({
      kind: 'cell_decided',
      run_id: RUN,
      seq: 5,
      at: 1003,
      cell_id: 'cell-1',
      decision: 'approve',
      is_edited: true
    });
    expect(waitingStep(run(model))).toBeNull();
    expect(run(model).steps[0]).toMatchObject({
      status: 'running',
      isEdited: true
    });
  });

  it('leaves no step open when the run ends', () => {
    const model = received(WHOLE_RUN.slice(0, 4));
    model.receive(runClosed({ seq: 5, stop: 'cancelled', answer: null }));
    expect(run(model).state).toBe('stopped');
    expect(run(model).steps[0].status).toBe('unfinished');
  });

  it.each([
    ['turn_limit', 'stopped'],
    ['budget', 'stopped'],
    ['void', 'failed'],
    ['fault', 'failed'],
    ['something new', 'failed']
  ])('takes the end %s for %s', (stop, state) => {
    const model = received([runOpened(), runClosed({ seq: 2, stop })]);
    expect(run(model).state).toBe(state);
  });

  it('closes a run that the server says it does not keep', () => {
    const model = received([runOpened(), stepOpened(2)]);
    model.stopping(RUN);
    const refusal: ServerMessage = {
      kind: 'refused',
      reason: 'busy',
      request_id: RUN,
      message: 'this run is not kept any more',
      files: [],
      candidates: []
    };
    model.receive(refusal);
    expect(run(model).state).toBe('running');
    model.receive({ ...refusal, reason: 'unknown' });
    const closed = run(model);
    expect(closed).toMatchObject({ state: 'failed', isStopping: false });
    expect(closed.steps[0].status).toBe('unfinished');
    expect(stopWords(closed, nullTranslator.load(''))).toContain('not keep');
  });

  it('shows at once that a run is being stopped', () => {
    const model = received(WHOLE_RUN.slice(0, 2));
    model.stopping(RUN);
    expect(run(model).isStopping).toBe(true);
    model.receive(runClosed({ seq: 3, stop: 'cancelled' }));
    expect(run(model).isStopping).toBe(false);
  });

  it('replaces a question that waits by its run', () => {
    const model = new AnalystModel();
    model.asked(ASK);
    expect(model.notebook(PATH).pending).toBe(ASK);
    model.receive(runOpened());
    expect(model.notebook(PATH).pending).toBeNull();
    expect(runningRun(model.notebook(PATH))?.runId).toBe(RUN);
  });

  it('shows why a question was refused', () => {
    const model = new AnalystModel();
    model.asked(ASK);
    model.receive({
      kind: 'refused',
      request_id: 'request-1',
      reason: 'busy',
      message: 'a run goes on',
      files: [],
      candidates: []
    });
    expect(model.notebook(PATH).pending).toBeNull();
    expect(model.notebook(PATH).refusal?.message).toBe('a run goes on');
  });

  it('tells in its notebook why something about a run was refused', () => {
    const model = received(WHOLE_RUN);
    model.receive({
      kind: 'refused',
      request_id: RUN,
      reason: 'busy',
      message: 'the run is still active',
      files: [],
      candidates: []
    });
    expect(model.notebook(PATH).notices[0].text).toBe(
      'the run is still active'
    );
  });

  it('reopens a past run, and follows its undoing', () => {
    const model = new AnalystModel();
    model.reopen(PATH, WHOLE_RUN as Parameters<typeof model.reopen>[1]);
    expect(run(model).state).toBe('answered');
    expect(model.notebook(PATH).runs).toHaveLength(0);
    model.receive({ kind: 'run_undone', run_id: RUN, seq: 9, at: 1 });
    expect(run(model).state).toBe('undone');
  });

  it('knows the notebook of a past run before it is reopened', () => {
    const model = new AnalystModel();
    model.setPast(PATH, [
      {
        run_id: RUN,
        notebook_path: PATH,
        question: '',
        files: [],
        answer: null,
        stop: 'answered',
        at: 0,
        model: '',
        endpoint: '',
        tokens: 0,
        seconds: 0
      }
    ]);
    expect(model.pathOf(RUN)).toBe(PATH);
  });

  it('follows a notebook to its new name', () => {
    const model = received(WHOLE_RUN.slice(0, 2));
    model.rename(PATH, 'other.ipynb');
    model.receive(runClosed({ seq: 3 }));
    expect(model.notebook('other.ipynb').runs[0].state).toBe('answered');
    expect(model.notebook(PATH).runs).toHaveLength(0);
  });

  it('leaves a run with its notebook when it comes under a former name', () => {
    const model = received(WHOLE_RUN.slice(0, 2));
    model.rename(PATH, 'other.ipynb');
    WHOLE_RUN.forEach(message => model.receive(message));
    expect(model.pathOf(RUN)).toBe('other.ipynb');
    expect(model.notebook('other.ipynb').runs[0].state).toBe('answered');
    expect(model.notebook(PATH).runs).toHaveLength(0);
  });

  it('ignores a run whose beginning it never saw', () => {
    const model = received([stepOpened(2), runClosed()]);
    expect(model.run(RUN)).toBeNull();
  });
});
