import { AnalystModel } from '../model/model';
import { QuestionQueue } from '../model/questionqueue';
import type { IRunClosed } from '../protocol.gen';
import {
  PATH,
  RUN,
  cellClosed,
  cellOpened,
  runClosed,
  runOpened
} from './messages';

const OTHER = 'work/other.ipynb';

describe('QuestionQueue', () => {
  let model: AnalystModel;
  let queue: QuestionQueue;
  let sent: string[];
  let isConnected: boolean;
  let caughtUp: Promise<void>;

  function makeQueue(): QuestionQueue {
    return new QuestionQueue({
      model,
      caughtUp: () => caughtUp,
      send: async (path, { text }) => {
        sent.push(`${path}: ${text}`);
        return isConnected;
      },
      storage: window.sessionStorage,
      storageKey: 'waiting'
    });
  }

  beforeEach(() => {
    window.sessionStorage.clear();
    model = new AnalystModel();
    sent = [];
    isConnected = true;
    caughtUp = Promise.resolve();
    queue = makeQueue();
    model.receive(runOpened());
  });

  const texts = () => queue.get(PATH).waiting.map(one => one.question.text);
  const settle = () => new Promise(resolve => setTimeout(resolve, 0));

  async function end(part: Partial<IRunClosed> = {}): Promise<void> {
    model.receive(runClosed(part));
    await settle();
  }

  /** As the server opens a run for a question that was sent. */
  function begin(run_id: string): void {
    model.receive(runOpened({ run_id, request_id: run_id }));
  }

  it('sends one question after each answer, in their order', async () => {
    queue.add(PATH, { text: 'first' });
    queue.add(PATH, { text: 'second' });
    await settle();
    expect(sent).toEqual([]);
    await end();
    expect(sent).toEqual([`${PATH}: first`]);
    expect(texts()).toEqual(['second']);
    begin('run-2');
    await end({ run_id: 'run-2' });
    expect(sent).toEqual([`${PATH}: first`, `${PATH}: second`]);
    expect(texts()).toEqual([]);
  });

  it('sends a question whose notebook is renamed while it shows what the run wrote', async () => {
    let catchUp = () => undefined as void;
    caughtUp = new Promise(resolve => (catchUp = resolve));
    queue.add(PATH, { text: 'first' });
    await end();
    model.rename(PATH, OTHER);
    catchUp();
    await settle();
    expect(sent).toEqual([`${OTHER}: first`]);
    expect(queue.isBusy(OTHER)).toBe(false);
  });

  it('keeps a question whose sending fails, and says why', async () => {
    const send = jest.fn(() => Promise.reject(new Error('no session')));
    queue = new QuestionQueue({
      model,
      caughtUp: () => Promise.reject(new Error('gone')),
      send,
      storage: window.sessionStorage,
      storageKey: 'waiting'
    });
    queue.add(PATH, { text: 'first' });
    await settle();
    model.receive(runOpened({ run_id: 'run-3' }));
    await end({ run_id: 'run-3' });
    await end();
    expect(send).toHaveBeenCalledTimes(1);
    expect(texts()).toEqual(['first']);
    expect(queue.get(PATH).held).toBe('refused');
    const { notices, pending } = model.notebook(PATH);
    expect(notices[0].text).toContain('no session');
    expect(pending).toBeNull();
  });

  it.each([
    ['cancelled', 'stopped'],
    ['turn_limit', 'unanswered'],
    ['fault', 'unanswered']
  ])('sends none after a run that ended by %s', async (stop, held) => {
    queue.add(PATH, { text: 'first' });
    queue.add(PATH, { text: 'second' });
    await end({ stop });
    expect(sent).toEqual([]);
    expect(queue.get(PATH).held).toBe(held);
    // A question that the person asks meanwhile does not set them going.
    begin('run-2');
    await end({ run_id: 'run-2' });
    expect(sent).toEqual([]);
    queue.release(PATH);
    await settle();
    expect(sent).toEqual([`${PATH}: first`]);
    begin('run-3');
    await end({ run_id: 'run-3' });
    expect(sent).toHaveLength(2);
  });

  it('sends none after a run that lost the variables', async () => {
    queue.add(PATH, { text: 'first' });
    model.receive(cellOpened({ seq: 2 }));
    model.receive(cellClosed({ seq: 3, state_lost: true }));
    await end({ seq: 4 });
    expect(sent).toEqual([]);
    expect(queue.get(PATH).held).toBe('kernel');
  });

  it('waits for no other notebook’s run', async () => {
    queue.add(PATH, { text: 'first' });
    model.receive(
      runOpened({ run_id: 'other', request_id: 'o', notebook_path: OTHER })
    );
    await end({ run_id: 'other' });
    expect(sent).toEqual([]);
    await end();
    expect(sent).toEqual([`${PATH}: first`]);
  });

  it('sends no question that the person has taken back or is changing', async () => {
    let catchUp = () => undefined as void;
    caughtUp = new Promise(resolve => {
      catchUp = () => resolve();
    });
    queue.add(PATH, { text: 'first', files: ['f.csv'] });
    queue.add(PATH, { text: 'second' });
    await end();
    const [first, second] = queue.get(PATH).waiting;
    expect(queue.takeBack(PATH, first.id)).toEqual({
      text: 'first',
      files: ['f.csv']
    });
    queue.edit(PATH, second.id);
    catchUp();
    await settle();
    expect(sent).toEqual([]);
    queue.endEdit(PATH, 'changed');
    await settle();
    expect(sent).toEqual([`${PATH}: changed`]);
    expect(queue.takeBack(PATH, second.id)).toBeNull();
  });

  it('leaves a question as it was when the change is given up', async () => {
    queue.add(PATH, { text: 'first' });
    queue.edit(PATH, queue.get(PATH).waiting[0].id);
    queue.endEdit(PATH, null);
    expect(texts()).toEqual(['first']);
  });

  it('keeps a question that could not be sent', async () => {
    isConnected = false;
    queue.add(PATH, { text: 'first' });
    await end();
    expect(texts()).toEqual(['first']);
    expect(queue.get(PATH).held).toBe('refused');
  });

  it('holds what waited when the page is loaded again', async () => {
    queue.add(PATH, { text: 'first', variables: ['df'], cursor: 'a' });
    const { waiting } = queue.get(PATH);
    // What the person makes of the question is kept by its id.
    queue.edit(PATH, waiting[0].id);
    model = new AnalystModel();
    queue = makeQueue();
    expect(queue.get(PATH)).toEqual({
      waiting: [
        {
          id: waiting[0].id,
          question: { text: 'first', variables: ['df'], cursor: 'a' }
        }
      ],
      held: 'left',
      edited: waiting[0].id
    });
    queue.endEdit(PATH, null);
    model.receive(runOpened());
    await end();
    expect(sent).toEqual([]);
    queue.release(PATH);
    await settle();
    expect(sent).toEqual([`${PATH}: first`]);
    expect(window.sessionStorage.getItem('waiting')).toBeNull();
  });

  it('starts empty where what was kept can’t be read', () => {
    jest.spyOn(console, 'warn').mockImplementation();
    window.sessionStorage.setItem('waiting', '{"no": "list"}');
    expect(makeQueue().get(PATH).waiting).toEqual([]);
    jest.restoreAllMocks();
  });

  it('goes with the notebook to its new name', async () => {
    queue.add(PATH, { text: 'first' });
    model.rename(PATH, OTHER);
    await end();
    expect(sent).toEqual([`${OTHER}: first`]);
  });

  it('holds what waits in a notebook that is closed', () => {
    queue.add(PATH, { text: 'first' });
    model.forget(PATH);
    expect(queue.get(PATH).held).toBe('left');
    expect(model.run(RUN)).toBeNull();
  });
});
