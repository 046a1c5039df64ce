import type {
  INotebookTracker,
  Notebook,
  NotebookPanel
} from '@jupyterlab/notebook';
import { ServerConnection } from '@jupyterlab/services';
import type { ServiceManager } from '@jupyterlab/services';
import { nullTranslator } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';

import { Analyst } from '../model/analyst';
import type { IRefusedAsk } from '../model/analyst';
import type { IAsk, IRefused, ServerMessage } from '../protocol.gen';
import { FakeContext, FakeFile, panelOf } from './document';
import {
  PATH,
  RUN,
  cellOpened,
  insertCell,
  operated,
  runClosed,
  runOpened
} from './messages';
import { FakeSocket, lastSocket } from './socket';

/** A tracker with one notebook open, in a kernel that has an id. */
/** What code in a kernel wants asked, of a file that leads out of the folder. */
const WANTED: ServerMessage = {
  kind: 'files_wanted',
  notebook_path: PATH,
  question: 'What is in it?',
  files: [{ name: 'secret.csv', leads_to: '/home/me/secret.csv' }]
};

function trackerOf(panel: NotebookPanel): INotebookTracker {
  return {
    currentWidget: panel,
    currentChanged: new Signal({}),
    widgetAdded: new Signal({}),
    forEach: (visit: (panel: NotebookPanel) => void) => visit(panel),
    find: (test: (panel: NotebookPanel) => boolean) =>
      test(panel) ? panel : undefined
  } as unknown as INotebookTracker;
}

function widgetsOf(...ids: string[]): unknown[] {
  return ids.map(id => ({
    model: {
      id,
      type: 'markdown',
      sharedModel: { getSource: () => `text of ${id}` },
      getMetadata: () => (id === 'c' ? { role: 'answer' } : undefined)
    }
  }));
}

function openPanel(context: FakeContext): NotebookPanel {
  const panel = panelOf(context);
  const widgets = widgetsOf('a', 'b', 'c');
  return Object.assign(panel, {
    content: { ...panel.content, widgets, activeCellIndex: 1 },
    disposed: new Signal({}),
    sessionContext: {
      ready: Promise.resolve(),
      disposed: new Signal({}),
      isDisposed: false,
      session: { kernel: { id: 'kernel-1' } }
    }
  });
}

describe('Analyst', () => {
  let analyst: Analyst;
  let context: FakeContext;
  let file: FakeFile;
  let panel: NotebookPanel;
  let services: ServiceManager.IManager;

  function makeAnalyst(): Analyst {
    const trans = nullTranslator.load('dm_jupyter');
    return new Analyst(trackerOf(panel), services, trans);
  }

  /** The page is loaded again. */
  function reload(): void {
    analyst['_client'].dispose();
    analyst = makeAnalyst();
  }

  beforeEach(async () => {
    window.sessionStorage.clear();
    Object.assign(performance, { mark: jest.fn() });
    jest.spyOn(console, 'warn').mockImplementation();
    file = new FakeFile();
    context = new FakeContext(file);
    Object.assign(context, {
      pathChanged: new Signal({}),
      disposed: new Signal({})
    });
    panel = openPanel(context);
    services = {
      contents: file.contents,
      serverSettings: ServerConnection.makeSettings({
        WebSocket: FakeSocket as unknown as typeof WebSocket,
        fetch: async () => new Response('{"runs": []}', { status: 200 })
      })
    } as unknown as ServiceManager.IManager;
    analyst = makeAnalyst();
    await Promise.resolve();
    analyst.start();
    lastSocket().onopen?.();
  });

  afterEach(() => {
    // It would connect again while the next test looks at the last socket.
    analyst['_client'].dispose();
    jest.restoreAllMocks();
  });

  function receive(message: ServerMessage): void {
    lastSocket().onmessage?.({ data: JSON.stringify(message) });
  }

  function rename(path: string): void {
    Object.assign(context, { path, localPath: path });
    (
      context as unknown as { pathChanged: Signal<object, string> }
    ).pathChanged.emit(path);
  }

  function sent(kind: string): unknown[] {
    return lastSocket().sent.filter(message => message.kind === kind);
  }

  function refuse(reason: IRefused['reason']): IAsk {
    const ask = sent('ask').pop() as IAsk;
    receive({
      kind: 'refused',
      request_id: ask.request_id,
      reason,
      message: 'why',
      files: [],
      candidates: []
    });
    return ask;
  }

  it('asks about the notebook, below the active cell', async () => {
    analyst.choices.approval = 'ask';
    expect(await analyst.ask(PATH, { text: 'How?', files: ['f.csv'] })).toBe(
      true
    );
    expect(sent('ask')[0]).toMatchObject({
      notebook_path: PATH,
      question: 'How?',
      files: ['f.csv'],
      after: ['b', 'a'],
      approval: 'ask',
      kernel: 'restricted',
      tries: 1
    });
    expect(performance.mark).toHaveBeenCalledWith('dm:enter');
  });

  it('tells the server what the settings withhold, with each connection', () => {
    expect(sent('tells')).toEqual([]);
    const values: { [name: string]: unknown } = {
      tells: { selection: true, variables: false, cells: true, files: true }
    };
    const changed = new Signal<unknown, void>({});
    const get = (name: string) => ({ composite: values[name] });
    analyst.choices.follow({ changed, get, set: jest.fn() } as never);
    const first = { kind: 'tells', withheld: ['variables', 'earlier'] };
    expect(sent('tells')).toEqual([first]);
    analyst.choices.model = 'another';
    expect(sent('tells')).toEqual([first]);
    analyst.choices.tell('variables', true);
    const second = { kind: 'tells', withheld: ['earlier'] };
    expect(sent('tells')).toEqual([first, second]);
    window.dispatchEvent(new Event('offline'));
    analyst.start();
    lastSocket().onopen?.();
    expect(sent('tells')).toEqual([second]);
  });

  it('tells of the cells around the active one, but of none that is withheld', async () => {
    await analyst.ask(PATH, { text: 'How?' });
    const [ask] = sent('ask') as IAsk[];
    expect(ask.selected).toBe(1);
    expect(ask.cells!.map(cell => cell.source)).toEqual([
      'text of a',
      'text of b',
      'text of c'
    ]);
    expect(ask.cells![2].role).toBe('answer');
    Object.assign(analyst.choices, { _withheld: ['selection'] });
    refuse('file');
    await analyst.ask(PATH, { text: 'How?' });
    const again = sent('ask')[1] as IAsk;
    expect(again.withheld).toEqual(['selection']);
    expect(again.cells!.map(cell => cell.source)).toEqual([
      'text of a',
      '',
      'text of c'
    ]);
  });

  describe('after a run whose cell stands at the end', () => {
    beforeEach(async () => {
      for (const id of ['a', 'b', 'c', 'ran']) {
        const mark = { dm_jupyter: { run: RUN, role: 'cell' } };
        panel.content.model!.sharedModel.addCell({
          cell_type: 'code',
          id,
          source: '',
          metadata: id === 'ran' ? mark : {}
        });
      }
      Object.assign(panel.content, {
        widgets: widgetsOf('a', 'b', 'c', 'ran')
      });
      await analyst.ask(PATH, { text: 'How?' });
      const [first] = sent('ask') as IAsk[];
      receive(runOpened({ request_id: first.request_id }));
      receive(runClosed());
    });

    it('asks below that, from where the person stands', async () => {
      await analyst.ask(PATH, { text: 'And?' });
      const after = ['ran', 'c', 'b', 'a'];
      expect(sent('ask')[1]).toMatchObject({ after });
    });

    it('asks below another cell that the person has selected', async () => {
      Object.assign(panel.content, { activeCellIndex: 0 });
      await analyst.ask(PATH, { text: 'And?' });
      expect(sent('ask')[1]).toMatchObject({ after: ['a'] });
      // Asked again in the kernel that was chosen, from where it was asked first.
      const asked = refuse('kernel');
      analyst.askAgain(asked, PATH, 'restricted');
      const [, , again] = sent('ask') as IAsk[];
      receive(
        runOpened({ run_id: 'run-2', request_id: again.request_id, seq: 1 })
      );
      receive(runClosed({ run_id: 'run-2' }));
      await analyst.ask(PATH, { text: 'And then?' });
      expect(sent('ask')[3]).toMatchObject({ after: ['a'] });
    });
  });

  describe('while a run works', () => {
    beforeEach(async () => {
      await analyst.ask(PATH, { text: 'How?' });
      const [first] = sent('ask') as IAsk[];
      receive(runOpened({ request_id: first.request_id }));
    });

    it('keeps a question and sends it after the answer, as it was asked', async () => {
      analyst.choices.model = 'small';
      analyst.choices.approval = 'auto';
      expect(await analyst.ask(PATH, { text: 'And?', files: ['f.csv'] })).toBe(
        true
      );
      expect(sent('ask')).toHaveLength(1);
      // What is chosen later, and where the person goes, is for later questions.
      analyst.choices.model = 'far';
      analyst.choices.approval = 'ask';
      Object.assign(panel.content, { activeCellIndex: 0 });
      receive(runClosed());
      await untilAsked(2);
      expect(sent('ask')[1]).toMatchObject({
        question: 'And?',
        files: ['f.csv'],
        model: 'small',
        approval: 'auto',
        selected: 1,
        after: ['b', 'a']
      });
      expect(analyst.queue.get(PATH).waiting).toEqual([]);
    });

    it('sends nothing into a kernel that has ended', async () => {
      await analyst.ask(PATH, { text: 'And?' });
      receive({
        kind: 'kernel_ended',
        notebook_path: PATH,
        kernel_id: 'kernel-1',
        message: 'gone'
      });
      receive(runClosed());
      await settle();
      expect(sent('ask')).toHaveLength(1);
      expect(analyst.queue.get(PATH).held).toBe('kernel');
    });

    it('loses no refused question where the field holds another one', async () => {
      await analyst.ask(PATH, { text: 'And?', files: ['f.csv'] });
      await analyst.ask(PATH, { text: 'And then?' });
      analyst.drafts.change(PATH, { text: 'being written' });
      receive(runClosed());
      await untilAsked(2);
      refuse('file');
      const { held, waiting } = analyst.queue.get(PATH);
      expect(waiting.map(one => one.question.text)).toEqual([
        'And?',
        'And then?'
      ]);
      expect(waiting[0].question.files).toEqual(['f.csv']);
      expect(held).toBe('refused');
      expect(analyst.drafts.get(PATH).text).toBe('being written');
      const { notices, pending } = analyst.model.notebook(PATH);
      expect(pending).toBeNull();
      expect(notices.map(notice => notice.text)).toEqual(['why']);
    });

    it('holds the rest when the one before is refused', async () => {
      await analyst.ask(PATH, { text: 'And?' });
      await analyst.ask(PATH, { text: 'And then?' });
      receive(runClosed());
      await untilAsked(2);
      refuse('file');
      expect(analyst.drafts.get(PATH).text).toBe('And?');
      expect(analyst.queue.get(PATH).held).toBe('refused');
      expect(sent('ask')).toHaveLength(2);
    });
  });

  async function settle(): Promise<void> {
    await new Promise(resolve => setTimeout(resolve, 20));
  }

  async function untilAsked(times: number): Promise<void> {
    while (sent('ask').length < times) {
      await settle();
    }
  }

  it('asks as often again in the kernel that the person chose', async () => {
    await analyst.ask(PATH, { text: 'How?', tries: 3 });
    expect(sent('ask')[0]).toMatchObject({ tries: 3 });
    analyst.askAgain(refuse('kernel'), PATH, 'own');
    expect(sent('ask')[1]).toMatchObject({ kernel: 'own', tries: 3 });
  });

  it('gives a question up whose notebook is closed while its kernel starts', async () => {
    const disposed = new Signal<object, void>({});
    const ready = new Promise(() => undefined);
    Object.assign(panel.sessionContext, { disposed, ready });
    const asking = analyst.ask(PATH, { text: 'How?' });
    expect(analyst.model.notebook(PATH).pending).not.toBeNull();
    Object.assign(panel, { isDisposed: true });
    disposed.emit();
    expect(await asking).toBe(false);
    expect(analyst.model.notebook(PATH).pending).toBeNull();
    expect(sent('ask')).toEqual([]);
  });

  it.each([true, false])(
    'asks under the name that the notebook got while its kernel started, connected: %s',
    async isConnected => {
      let start = () => undefined as void;
      const ready = new Promise<void>(resolve => (start = resolve));
      Object.assign(panel.sessionContext, { ready });
      const asking = analyst.ask(PATH, { text: 'How?' });
      await settle();
      rename('new.ipynb');
      if (!isConnected) {
        lastSocket().drop();
      }
      start();
      expect(await asking).toBe(isConnected);
      const names = (sent('ask') as IAsk[]).map(ask => ask.notebook_path);
      expect(names).toEqual(isConnected ? ['new.ipynb'] : []);
      expect(analyst.model.notebook('new.ipynb').pending !== null).toBe(
        isConnected
      );
      expect(analyst.model.notebook(PATH).pending).toBeNull();
    }
  );

  it('says that a question waits for its kernel, and lets the person stop that', async () => {
    Object.assign(panel.sessionContext, { ready: new Promise(() => {}) });
    const asking = analyst.ask(PATH, { text: 'How?' });
    const { preparing, stopPreparing } = analyst.model.notebook(PATH);
    expect(preparing).toContain('kernel');
    stopPreparing?.();
    await expect(asking).rejects.toThrow('was stopped');
    expect(analyst.model.notebook(PATH)).toMatchObject({
      pending: null,
      stopPreparing: null
    });
    expect(sent('ask')).toEqual([]);
    Object.assign(panel.sessionContext, { ready: Promise.resolve() });
    expect(await analyst.ask(PATH, { text: 'How?' })).toBe(true);
    expect(analyst.model.notebook(PATH)).toMatchObject({
      preparing: '',
      stopPreparing: null
    });
  });

  it.each([PATH, 'new.ipynb'])(
    'keeps a question over a reload that waits for its kernel, under the name %s',
    name => {
      Object.assign(panel.sessionContext, { ready: new Promise(() => {}) });
      void analyst.ask(PATH, { text: 'How?', files: ['f.csv'], tries: 3 });
      rename(name);
      reload();
      const { held, waiting } = analyst.queue.get(name);
      expect(held).toBe('left');
      expect(waiting.map(one => one.question)).toMatchObject([
        { text: 'How?', files: ['f.csv'], tries: 3, cursor: 'b' }
      ]);
    }
  );

  it('keeps a waiting question over a reload once, before those that wait for it', () => {
    Object.assign(panel.sessionContext, { ready: new Promise(() => {}) });
    void analyst.ask(PATH, { text: 'How?' });
    void analyst.ask(PATH, { text: 'And then?' });
    for (let count = 0; count < 2; count += 1) {
      reload();
      const { waiting } = analyst.queue.get(PATH);
      const texts = waiting.map(one => one.question.text);
      expect(texts).toEqual(['How?', 'And then?']);
    }
  });

  it.each(['kernel', 'link'] as const)(
    'keeps a question over a reload while the person chooses: %s',
    async reason => {
      await analyst.ask(PATH, { text: 'How?' });
      const ask = refuse(reason);
      reload();
      const texts = () =>
        analyst.queue.get(PATH).waiting.map(one => one.question.text);
      expect(texts()).toEqual(['How?']);
      analyst.queue.takeBack(PATH, analyst.queue.get(PATH).waiting[0].id);
      analyst.putBack(PATH, ask);
      reload();
      expect(texts()).toEqual([]);
      expect(analyst.drafts.get(PATH).text).toBe('How?');
    }
  );

  it.each(['', 'own', 'agreed'])(
    'keeps nothing over a reload of a question that has left: %s',
    async again => {
      await analyst.ask(PATH, { text: 'How?' });
      if (again === 'own') {
        analyst.askAgain(refuse('kernel'), 'other.ipynb', 'own');
      } else if (again) {
        analyst.askAgreed(refuse('link'), []);
      }
      reload();
      expect(analyst.queue.get(PATH).waiting).toEqual([]);
      expect(analyst.queue.get('other.ipynb').waiting).toEqual([]);
    }
  );

  it('keeps what is being written over a reload', () => {
    const draft = { text: 'What is', files: ['f.csv'], variables: ['df'] };
    analyst.drafts.change(PATH, draft);
    analyst.drafts.keep(`${RUN} cell-1`, 'print(1)');
    reload();
    expect(analyst.drafts.get(PATH)).toEqual(draft);
    expect(analyst.drafts.kept(`${RUN} cell-1`)).toBe('print(1)');
    analyst.drafts.clear(PATH);
    analyst.drafts.keep(`${RUN} cell-1`, null);
    reload();
    expect(analyst.drafts.get(PATH).text).toBe('');
    expect(analyst.drafts.kept(`${RUN} cell-1`)).toBeNull();
    expect(window.sessionStorage).toHaveLength(0);
  });

  it('keeps the edited text of a cell no longer than its run', () => {
    receive(runOpened());
    analyst.drafts.keep(`${RUN} cell-1`, 'print(1)');
    analyst.drafts.keep('run-2 cell-1', 'print(2)');
    receive(runClosed());
    expect(analyst.drafts.kept(`${RUN} cell-1`)).toBeNull();
    expect(analyst.drafts.kept('run-2 cell-1')).toBe('print(2)');
  });

  it('asks nothing about a notebook that is not open', async () => {
    expect(await analyst.ask('other.ipynb', { text: 'How?' })).toBe(false);
  });

  it('puts a refused question back', async () => {
    await analyst.ask(PATH, { text: 'How?' });
    refuse('file');
    expect(analyst.drafts.get(PATH).text).toBe('How?');
    expect(analyst.model.notebook(PATH).refusal?.message).toBe('why');
  });

  it('has the person choose when the kernel is not restricted', async () => {
    const refusals: IRefusedAsk[] = [];
    analyst.kernelRefused.connect((_, refusal) => refusals.push(refusal));
    await analyst.ask(PATH, { text: 'How?' });
    const ask = refuse('kernel');
    expect(refusals).toHaveLength(1);
    expect(sent('ask')).toHaveLength(1);
    analyst.askAgain(ask, PATH, 'own');
    expect(sent('ask')[1]).toMatchObject({ kernel: 'own', approval: 'ask' });
    // The choice holds for as long as the kernel lives.
    refuse('file');
    await analyst.ask(PATH, { text: 'And?' });
    expect(sent('ask')[2]).toMatchObject({ kernel: 'own', approval: 'ask' });
  });

  it('lets no fewer cells wait in such a kernel than the person agreed to', async () => {
    analyst.choices.approval = 'auto';
    await analyst.ask(PATH, { text: 'How?' });
    analyst.askAgain(refuse('kernel'), PATH, 'own', 'risky');
    const asked = sent('ask')[1] as IAsk;
    expect(asked).toMatchObject({ kernel: 'own', approval: 'risky' });
    expect(analyst.approvalIn(PATH)).toBe('risky');
    receive(runOpened({ request_id: asked.request_id }));
    await analyst.ask(PATH, { text: 'And?' });
    analyst.setApproval(PATH, 'auto');
    expect(analyst.choices.approval).toBe('auto');
    receive(runClosed());
    await untilAsked(3);
    // As it was when the question was asked.
    expect(sent('ask')[2]).toMatchObject({ kernel: 'own', approval: 'risky' });
  });

  it('has the person agree to links, and asks again with where they lead', async () => {
    const refusals: IRefusedAsk[] = [];
    analyst.linkRefused.connect((_, refusal) => refusals.push(refusal));
    await analyst.ask(PATH, { text: 'How?', files: ['link.csv'] });
    const ask = refuse('link');
    expect(refusals.map(refusal => refusal.ask)).toEqual([ask]);
    expect(ask.agreed).toEqual([]);
    expect(analyst.model.notebook(PATH)).toMatchObject({
      pending: null,
      refusal: null
    });
    analyst.askAgreed(ask, ['/data/a.csv']);
    const again = sent('ask')[1] as IAsk;
    expect(again).toMatchObject({
      question: 'How?',
      files: ['link.csv'],
      agreed: ['/data/a.csv']
    });
    expect(again.request_id).not.toBe(ask.request_id);
    // What was agreed to stays so where the kernel must be chosen next.
    analyst.askAgain(refuse('kernel'), PATH, 'own');
    expect(sent('ask')[2]).toMatchObject({ agreed: ['/data/a.csv'] });
  });

  it('asks what code in the kernel wants asked, and never unasked for its cells', async () => {
    analyst.choices.approval = 'auto';
    receive(WANTED);
    expect(sent('ask')).toEqual([]);
    expect(await analyst.askWanted(PATH)).toBe(true);
    expect(sent('ask')).toHaveLength(1);
    expect(sent('ask')[0]).toMatchObject({
      question: 'What is in it?',
      files: ['secret.csv'],
      agreed: ['/home/me/secret.csv'],
      approval: 'risky'
    });
    expect(analyst.model.notebook(PATH).wanted).toBeNull();
    expect(await analyst.askWanted(PATH)).toBe(false);
  });

  it('keeps what code wants asked, as it was agreed to, when the connection breaks', async () => {
    analyst.choices.approval = 'auto';
    receive(WANTED);
    const asking = analyst.askWanted(PATH);
    lastSocket().drop();
    expect(await asking).toBe(false);
    const { held, waiting } = analyst.queue.get(PATH);
    expect(held).toBe('refused');
    expect(waiting.map(one => one.question)).toEqual([
      {
        text: 'What is in it?',
        files: ['secret.csv'],
        agreed: ['/home/me/secret.csv'],
        approval: 'risky'
      }
    ]);
    const { notices, pending } = analyst.model.notebook(PATH);
    expect(pending).toBeNull();
    expect(notices[0].text).toContain('no connection');
  });

  it('tells of what the person runs in the notebook, and of no other notebook’s', () => {
    analyst.ranOwn(({ content }) => content === ({} as Notebook));
    expect(sent('own_cell')).toEqual([]);
    const { content } = analyst.panel(PATH)!;
    analyst.ranOwn(panel => panel.content === content);
    expect(sent('own_cell')).toEqual([
      { kind: 'own_cell', notebook_path: PATH }
    ]);
  });

  it('says what may become of files, after a reconnection if need be', async () => {
    receive(runOpened());
    analyst.decideFiles(RUN, 'cell-1', true);
    const word = { kind: 'decide_files', run_id: RUN, cell_id: 'cell-1' };
    expect(sent('decide_files')).toEqual([{ ...word, allows: true }]);
    jest.useFakeTimers();
    lastSocket().drop();
    analyst.decideFiles(RUN, 'cell-1', false);
    jest.advanceTimersByTime(500);
    jest.useRealTimers();
    lastSocket().onopen?.();
    expect(sent('decide_files')).toEqual([{ ...word, allows: false }]);
  });

  /** The connection breaks and comes back; the server follows these runs of the notebook. */
  async function reconnect(runIds: readonly string[] = []): Promise<void> {
    jest.useFakeTimers();
    lastSocket().drop();
    jest.advanceTimersByTime(500);
    jest.useRealTimers();
    lastSocket().onopen?.();
    receive({
      kind: 'attached',
      notebook_path: PATH,
      is_owner: true,
      is_shared: false,
      in_file: Object.fromEntries(runIds.map(runId => [runId, 0]))
    });
    await Promise.resolve();
  }

  it('closes a run that the server does not have after a break', async () => {
    await reconnect();
    receive(runOpened());
    const response = new Response('{}', { status: 404 });
    const gone = await ServerConnection.ResponseError.create(response);
    jest.spyOn(analyst.rest, 'messages').mockRejectedValue(gone);
    await reconnect([RUN]);
    await new Promise(resolve => setTimeout(resolve, 20));
    expect(analyst.model.run(RUN)?.state).toBe('failed');
  });

  it('says once that the record of a run is damaged, and asks for it no more', async () => {
    await reconnect();
    receive(runOpened());
    const body = JSON.stringify({ message: 'its journal is damaged: line 1' });
    const response = new Response(body, { status: 410 });
    const damaged = await ServerConnection.ResponseError.create(response);
    const messages = jest.spyOn(analyst.rest, 'messages');
    messages.mockRejectedValue(damaged);
    for (let count = 0; count < 2; count += 1) {
      await reconnect();
      await new Promise(resolve => setTimeout(resolve, 20));
    }
    expect(messages).toHaveBeenCalledTimes(1);
    expect(analyst.model.run(RUN)?.state).toBe('failed');
    const notices = analyst.model.notebook(PATH).notices.map(one => one.text);
    expect(notices).toEqual([
      expect.stringMatching(/its journal is damaged: line 1.*Reload/)
    ]);
  });

  it('puts a question back that got lost with the connection', async () => {
    await analyst.ask(PATH, { text: 'How?', files: ['f.csv'] });
    await reconnect();
    const { pending, refusal } = analyst.model.notebook(PATH);
    expect(pending).toBeNull();
    expect(refusal?.message).toContain('the connection broke');
    expect(analyst.drafts.get(PATH)).toMatchObject({
      text: 'How?',
      files: ['f.csv']
    });
  });

  it('waits for the runs that the server has before it gives a question up', async () => {
    await analyst.ask(PATH, { text: 'How?' });
    const { request_id } = sent('ask')[0] as IAsk;
    await reconnect(['run-0', RUN]);
    receive(runOpened({ run_id: 'run-0', request_id: 'another' }));
    expect(analyst.model.notebook(PATH).pending).not.toBeNull();
    receive(runOpened({ request_id }));
    expect(analyst.model.notebook(PATH)).toMatchObject({
      pending: null,
      refusal: null
    });
    expect(analyst.drafts.get(PATH).text).toBe('');
  });

  it('gives up a question that none of the server’s runs answers', async () => {
    await analyst.ask(PATH, { text: 'How?' });
    await reconnect([RUN]);
    receive(runOpened({ request_id: 'another' }));
    expect(analyst.model.notebook(PATH).pending).toBeNull();
    expect(analyst.drafts.get(PATH).text).toBe('How?');
  });

  it('keeps a question that leaves only after the reconnection', async () => {
    const asking = analyst.ask(PATH, { text: 'How?' });
    await reconnect();
    expect(await asking).toBe(true);
    receive({
      kind: 'attached',
      notebook_path: PATH,
      is_owner: true,
      is_shared: false,
      in_file: {}
    });
    expect(analyst.model.notebook(PATH).pending).not.toBeNull();
  });

  it('keeps what is being written when the notebook is renamed', () => {
    analyst.drafts.change(PATH, { text: 'What is', files: ['f.csv'] });
    rename('new.ipynb');
    expect(analyst.drafts.get('new.ipynb')).toMatchObject({
      text: 'What is',
      files: ['f.csv']
    });
    // Nor does it turn up in the next notebook of the old name.
    expect(analyst.drafts.get(PATH).text).toBe('');
  });

  it('keeps what waits for a notebook that is renamed while it is closed', () => {
    const move = (from: string) =>
      file.fileChanged.emit({
        type: 'rename',
        oldValue: { path: from },
        newValue: { path: 'new.ipynb', type: 'notebook' }
      });
    analyst.drafts.change('closed.ipynb', { text: 'What is' });
    analyst.queue.add('closed.ipynb', { text: 'How?' });
    move('closed.ipynb');
    expect(analyst.drafts.get('new.ipynb').text).toBe('What is');
    expect(analyst.queue.get('new.ipynb').waiting).toHaveLength(1);
    // An open one follows its document.
    receive(runOpened());
    move(PATH);
    expect(analyst.model.notebook(PATH).runs).toHaveLength(1);
  });

  it('puts a refused question back under the notebook’s new name', async () => {
    await analyst.ask(PATH, { text: 'How?' });
    rename('new.ipynb');
    refuse('file');
    expect(analyst.drafts.get('new.ipynb').text).toBe('How?');
    expect(analyst.model.notebook('new.ipynb').pending).toBeNull();
  });

  it('says Stop again when the connection may have taken the word along', async () => {
    receive(runOpened());
    analyst.stop(RUN);
    expect(sent('stop')).toHaveLength(1);
    await reconnect([RUN]);
    expect(sent('stop')).toEqual([{ kind: 'stop', run_id: RUN }]);
    expect(analyst.model.run(RUN)?.isStopping).toBe(true);
    receive(runClosed({ stop: 'cancelled' }));
    await reconnect([]);
    expect(sent('stop')).toHaveLength(0);
  });

  it('sends a waiting cell as the person was shown it, whatever the notebook has', () => {
    context.model.sharedModel.insertCell(0, {
      id: 'cell-1',
      cell_type: 'code',
      source: 'print(2)'
    });
    receive(runOpened());
    receive(operated(2, insertCell('cell-1')));
    receive(cellOpened({ seq: 3, waits_because: 'asked' }));
    analyst.decide(RUN, 'cell-1', 'approve', 'print(1)');
    expect(sent('decide')[0]).toMatchObject({ source: 'print(1)' });
    analyst.decide(RUN, 'cell-1', 'skip');
    expect(sent('decide')[1]).toMatchObject({ source: null });
  });

  it('saves the notebook before its cells are run again', async () => {
    receive(runOpened());
    context.model.sharedModel.insertCell(0, { cell_type: 'code', source: 'x' });
    await analyst.rebuild(RUN);
    expect(context.saves).toBe(1);
    expect(sent('rebuild')).toEqual([{ kind: 'rebuild', run_id: RUN }]);
  });
});
