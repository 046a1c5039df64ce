import type { RunMessage } from '../protocol.gen';
import { saveAlone, saveOver } from '../notebook/disk';
import type { NotebookContext } from '../notebook/disk';
import { NotebookSession } from '../notebook/session';
import { FakeClient, FakeContext, FakeFile, panelOf } from './document';
import {
  PATH,
  RUN,
  cellClosed,
  cellOpened,
  insertCell,
  operated,
  printed,
  runClosed,
  runOpened,
  stepOpened
} from './messages';

const TO_THE_CELL: RunMessage[] = [
  runOpened(),
  stepOpened(2),
  operated(3, insertCell('cell-1')),
  cellOpened({ seq: 4 })
];
const WITH_OUTPUT: RunMessage[] = [
  ...TO_THE_CELL,
  operated(5, { op: 'clear_outputs', cell_id: 'cell-1' }),
  operated(6, printed('cell-1', 'one\n')),
  operated(7, printed('cell-1', 'two\n')),
  cellClosed({ seq: 8 })
];

const TO_THE_END: RunMessage[] = [
  ...WITH_OUTPUT,
  operated(9, insertCell('answer')),
  runClosed({ seq: 10 })
];

/** Lets promises and timers run, a while of simulated time. */
async function pass(ms = 0): Promise<void> {
  await jest.advanceTimersByTimeAsync(ms);
}

describe('NotebookSession', () => {
  let file: FakeFile;
  let context: FakeContext;
  let client: FakeClient;
  let session: NotebookSession;
  let journal: RunMessage[];
  let replayed: string[];
  let isServerDown: boolean;
  /** A run that the server can't read now. */
  let unread: string;
  /** When the server answers. */
  let answered: Promise<void>;

  beforeEach(async () => {
    jest.useFakeTimers();
    jest.spyOn(console, 'warn').mockImplementation();
    file = new FakeFile();
    context = new FakeContext(file);
    client = new FakeClient();
    journal = [];
    replayed = [];
    isServerDown = false;
    unread = '';
    answered = Promise.resolve();
    session = new NotebookSession({
      panel: panelOf(context),
      client: client as unknown as NotebookSession['_client'],
      contents: file.contents,
      replay: async runId => {
        replayed.push(runId);
        await answered;
        if (isServerDown || runId === unread) {
          throw new Error('502 Bad gateway');
        }
        return journal;
      },
      schedule: callback => {
        const timer = window.setTimeout(callback, 16);
        return () => clearTimeout(timer);
      }
    });
    await pass();
  });

  afterEach(() => {
    session.dispose();
    jest.useRealTimers();
    jest.restoreAllMocks();
  });

  /** The connection breaks, is back at once, and the server answers. */
  function reattached(...answer: Parameters<typeof attached>): void {
    client.setConnected(false);
    client.setConnected(true);
    attached(...answer);
  }

  function attached(
    isOwner: boolean,
    inFile: { [runId: string]: number } = {},
    isShared = false,
    path = PATH
  ): void {
    session.receiveAttached({
      kind: 'attached',
      notebook_path: path,
      is_owner: isOwner,
      is_shared: isShared,
      in_file: inFile
    });
  }

  function send(messages: readonly RunMessage[]): void {
    messages.forEach(message => session.receiveRun(message));
  }

  function ids(): string[] {
    return context.model.sharedModel.cells.map(cell => cell.getId());
  }

  function outputs(): unknown[] {
    const cells = context.model.sharedModel.toJSON().cells;
    return cells.find(cell => cell.id === 'cell-1')?.outputs as unknown[];
  }

  it('attaches when the document is loaded, and says what it has seen', async () => {
    expect(client.attaches()).toEqual([
      { kind: 'attach', notebook_path: PATH, client_id: 'tab-1', seen: {} }
    ]);
    attached(true);
    send(TO_THE_CELL);
    client.setConnected(false);
    client.setConnected(true);
    expect(client.attaches()[1]).toMatchObject({ seen: { [RUN]: 4 } });
  });

  it('applies operations as the owner, once a frame, and acknowledges', async () => {
    attached(true);
    send(WITH_OUTPUT);
    expect(ids()).toEqual([]);
    await pass(16);
    expect(ids()).toEqual(['cell-1']);
    expect(outputs()).toEqual([
      { output_type: 'stream', name: 'stdout', text: 'one\ntwo\n' }
    ]);
    expect(client.acks(false)).toEqual([
      { kind: 'ack', run_id: RUN, seq: 8, is_saved: false }
    ]);
  });

  it('takes each message once', async () => {
    attached(true);
    send(WITH_OUTPUT);
    send(WITH_OUTPUT);
    await pass(16);
    send(WITH_OUTPUT);
    await pass(16);
    expect(outputs()).toHaveLength(1);
    expect(outputs()[0]).toMatchObject({ text: 'one\ntwo\n' });
  });

  it.each([
    ['another tab is the owner', false, false],
    ['the document is shared', true, true]
  ])('leaves the document alone when %s', async (_, isOwner, isShared) => {
    attached(isOwner, {}, isShared);
    send(WITH_OUTPUT);
    await pass(2000);
    expect(ids()).toEqual([]);
    expect(context.saves).toBe(0);
    expect(client.acks(false)).toEqual([]);
  });

  it('saves after a cell, and says what the file holds then', async () => {
    attached(true);
    send(WITH_OUTPUT);
    await pass(16);
    await pass(1000);
    expect(context.saves).toBe(1);
    expect(client.acks(true)).toEqual([
      { kind: 'ack', run_id: RUN, seq: 8, is_saved: true }
    ]);
  });

  it('says of a save only what was applied when it started', async () => {
    attached(true);
    send(TO_THE_CELL);
    await pass(16);
    const saving = context.save();
    send(WITH_OUTPUT.slice(4));
    await saving;
    expect(client.acks(true)[0]).toMatchObject({ seq: 4 });
  });

  it('saves at most once a second', async () => {
    attached(true);
    send(WITH_OUTPUT);
    await pass(16);
    await pass(1);
    expect(context.saves).toBe(1);
    send([
      operated(9, insertCell('cell-2')),
      cellClosed({ seq: 10, step: 2, cell_id: 'cell-2' })
    ]);
    send([
      operated(11, insertCell('cell-3')),
      cellClosed({ seq: 12, step: 3, cell_id: 'cell-3' })
    ]);
    await pass(900);
    expect(context.saves).toBe(1);
    await pass(200);
    expect(context.saves).toBe(2);
    expect(client.acks(true)[1]).toMatchObject({ seq: 12 });
  });

  it('does not save while it is cut off', async () => {
    attached(true);
    send(WITH_OUTPUT);
    client.isConnected = false;
    await pass(3000);
    expect(context.saves).toBe(0);
  });

  it('saves after a break what could not be saved before it, and asks for no second dialog', async () => {
    attached(true);
    context.failures = 2;
    send(WITH_OUTPUT);
    await pass(20_000);
    expect(context.failures).toBe(1);
    client.setConnected(false);
    context.failures = 0;
    client.setConnected(true);
    attached(true);
    await pass(2000);
    expect(context.saves).toBe(1);
  });

  it('skips what the file held when the document was loaded', async () => {
    attached(true, { [RUN]: 6 });
    send(WITH_OUTPUT);
    await pass(16);
    // The cell itself is below the mark: nothing of it is done again.
    expect(ids()).toEqual([]);
    expect(client.acks(false)[0]).toMatchObject({ seq: 8 });
    expect(context.reverts).toBe(0);
  });

  it('reads the file again when it was written after the document was loaded', async () => {
    file.version += 1;
    attached(true, { [RUN]: 6 });
    await pass(16);
    expect(context.reverts).toBe(1);
  });

  it('keeps the person’s edits, and takes everything again, when the file is newer', async () => {
    file.version += 1;
    context.model.sharedModel.insertCell(0, { cell_type: 'code', source: 'x' });
    attached(true, { [RUN]: 6 });
    send(WITH_OUTPUT);
    await pass(32);
    expect(context.reverts).toBe(0);
    expect(ids()).toContain('cell-1');
  });

  it('goes on from what it has applied after a break', async () => {
    attached(true);
    send(WITH_OUTPUT.slice(0, 6));
    await pass(16);
    journal = WITH_OUTPUT;
    reattached(true, { [RUN]: 0 });
    send(WITH_OUTPUT.slice(6));
    await pass(32);
    expect(outputs()[0]).toMatchObject({ text: 'one\ntwo\n' });
  });

  it('fetches what it missed of a run that the server has put away', async () => {
    attached(true);
    send(WITH_OUTPUT.slice(0, 6));
    await pass(16);
    journal = WITH_OUTPUT;
    client.setConnected(false);
    // Meanwhile the run ends, and the server writes the file.
    file.version += 1;
    client.setConnected(true);
    attached(true);
    await pass(2000);
    expect(outputs()[0]).toMatchObject({ text: 'one\ntwo\n' });
    expect(context.conflicts).toBe(0);
    expect(context.saves).toBeGreaterThan(0);
    expect(file.renames).toBe(1);
    expect(context.lastModifiedCheckMargin).toBe(500);
    expect(client.acks(true).pop()).toMatchObject({ seq: 8 });
  });

  it('fetches the end of a run that went on after the last save', async () => {
    attached(true);
    send(WITH_OUTPUT);
    await pass(1100);
    expect(client.acks(true).pop()).toMatchObject({ seq: 8 });
    client.setConnected(false);
    // Meanwhile the run ends, and the server writes the file.
    journal = TO_THE_END;
    file.version += 1;
    client.setConnected(true);
    attached(true);
    await pass(2000);
    expect(ids()).toEqual(['cell-1', 'answer']);
    await context.save();
    expect(context.conflicts).toBe(0);
    expect(client.acks(true).pop()).toMatchObject({ seq: 10 });
  });

  it('fetches what it missed again when that failed, and writes no file before', async () => {
    attached(true);
    send(TO_THE_CELL);
    await pass(16);
    client.setConnected(false);
    journal = TO_THE_END;
    file.version += 1;
    isServerDown = true;
    client.setConnected(true);
    attached(true);
    await pass(1000);
    expect(context.saves).toBe(0);
    isServerDown = false;
    await pass(60_000);
    expect(ids()).toEqual(['cell-1', 'answer']);
    expect(replayed.length).toBeGreaterThan(1);
    expect(context.saves).toBeGreaterThan(0);
    expect(context.conflicts).toBe(0);
    const count = replayed.length;
    await pass(60_000);
    expect(replayed).toHaveLength(count);
  });

  it('writes no file before it has fetched all that failed', async () => {
    attached(true);
    send(TO_THE_CELL);
    send([runOpened({ run_id: 'run-2' })]);
    await pass(16);
    client.setConnected(false);
    journal = TO_THE_END;
    file.version += 1;
    isServerDown = true;
    client.setConnected(true);
    attached(true);
    await pass(100);
    isServerDown = false;
    unread = 'run-2';
    await pass(60_000);
    expect(ids()).toEqual(['cell-1', 'answer']);
    expect(context.saves).toBe(0);
    unread = '';
    await pass(60_000);
    expect(context.saves).toBeGreaterThan(0);
    expect(context.conflicts).toBe(0);
  });

  it.each([
    ['the notebook is closed', () => session.dispose()],
    ['the connection breaks', () => client.setConnected(false)]
  ])('fetches nothing again once %s', async (_, end) => {
    attached(true);
    send(TO_THE_CELL);
    await pass(16);
    client.setConnected(false);
    isServerDown = true;
    let fail = () => undefined as void;
    answered = new Promise(resolve => (fail = resolve));
    client.setConnected(true);
    attached(true);
    end();
    fail();
    await pass(60_000);
    expect(replayed).toEqual([RUN]);
  });

  it('saves when it writes anew, though it never got what it had missed', async () => {
    attached(true);
    send(TO_THE_CELL);
    await pass(16);
    client.setConnected(false);
    isServerDown = true;
    client.setConnected(true);
    attached(true);
    await pass(16);
    reattached(false);
    await pass(16);
    reattached(true, { [RUN]: 4 });
    attached(true, { [RUN]: 4 });
    send(WITH_OUTPUT.slice(4));
    await pass(2000);
    expect(context.saves).toBeGreaterThan(0);
  });

  it('does nothing twice that its document holds when it fetches again', async () => {
    attached(false);
    send(TO_THE_CELL);
    client.setConnected(false);
    journal = TO_THE_END;
    file.version += 1;
    isServerDown = true;
    client.setConnected(true);
    attached(true);
    await pass(100);
    expect(context.reverts).toBe(1);
    isServerDown = false;
    await pass(60_000);
    expect(replayed.length).toBeGreaterThan(1);
    // The file that was read has the cells.
    expect(ids()).toEqual([]);
  });

  it('asks no more for a run of which nothing is kept', async () => {
    attached(true);
    send(TO_THE_CELL);
    await pass(16);
    for (let count = 0; count < 2; count += 1) {
      reattached(true);
      await pass(60_000);
    }
    expect(replayed).toEqual([RUN]);
  });

  it('saves as usual after a run of which nothing can be read, but over no other file unasked', async () => {
    attached(true);
    send(TO_THE_CELL);
    await pass(16);
    client.setConnected(false);
    // The server has written what the document never gets.
    file.version += 1;
    client.setConnected(true);
    attached(true);
    await pass(100);
    expect(context.saves).toBe(0);
    send([runOpened({ run_id: 'run-2' }), runClosed({ run_id: 'run-2' })]);
    await pass(2000);
    // The document asks the person.
    expect(context.conflicts).toBe(1);
    expect(file.renames).toBe(0);
    expect(context.saves).toBe(1);
  });

  it('fetches nothing of a run that it saw end and saved', async () => {
    attached(true);
    send(TO_THE_END);
    await pass(1100);
    reattached(true);
    await pass(100);
    expect(replayed).toEqual([]);
  });

  it.each([
    ['another tab is the owner', false, false],
    ['the document is shared', true, true]
  ])('learns how a run ended when %s', async (_, isOwner, isShared) => {
    attached(isOwner, {}, isShared);
    send(TO_THE_CELL);
    client.setConnected(false);
    journal = TO_THE_END;
    client.setConnected(true);
    attached(isOwner, {}, isShared);
    await pass(100);
    expect(replayed).toEqual([RUN]);
    expect(ids()).toEqual([]);
    reattached(isOwner, {}, isShared);
    await pass(100);
    expect(replayed).toEqual([RUN]);
  });

  it.each([
    ['reads the file again', false, []],
    ['fills its document up', true, ['cell-1', 'answer']]
  ])('%s when it writes only after the break', async (_, isEdited, cells) => {
    attached(false);
    send(TO_THE_CELL);
    client.setConnected(false);
    journal = TO_THE_END;
    file.version += 1;
    if (isEdited) {
      context.model.sharedModel.insertCell(0, {
        id: 'mine',
        cell_type: 'code',
        source: 'x'
      });
    }
    client.setConnected(true);
    attached(true);
    await pass(100);
    expect(replayed).toEqual([RUN]);
    expect(context.reverts).toBe(isEdited ? 0 : 1);
    expect(ids().filter(id => id !== 'mine')).toEqual(cells);
  });

  it('saves over a file that the server wrote, with what it holds', async () => {
    attached(true);
    send(TO_THE_CELL);
    await pass(16);
    file.version += 1;
    session.receiveFileWritten({
      kind: 'file_written',
      notebook_path: PATH,
      in_file: { [RUN]: 8 }
    });
    await pass(100);
    expect(context.saves).toBe(0);
    send(WITH_OUTPUT.slice(4));
    await pass(100);
    expect(context.saves).toBeGreaterThan(0);
    expect(context.conflicts).toBe(0);
  });

  it('does not wait for ever for what the file is said to hold', async () => {
    attached(true);
    file.version += 1;
    session.receiveFileWritten({
      kind: 'file_written',
      notebook_path: PATH,
      in_file: { [RUN]: 8 }
    });
    await pass(6000);
    expect(context.saves).toBe(1);
    expect(context.conflicts).toBe(0);
  });

  it('saves again after a save over the server’s file that failed', async () => {
    attached(true);
    context.model.sharedModel.insertCell(0, { cell_type: 'code', source: 'x' });
    file.version += 1;
    context.failures = 1;
    session.receiveFileWritten({
      kind: 'file_written',
      notebook_path: PATH,
      in_file: {}
    });
    await pass(3000);
    expect(context.failures).toBe(0);
    expect(context.saves).toBe(1);
  });

  it('asks for what it did not apply when it becomes the owner', async () => {
    attached(false);
    send(WITH_OUTPUT);
    attached(true, { [RUN]: 4 });
    expect(client.attaches()[1]).toMatchObject({ seen: {} });
    // Sent by the server to the new owner, before it has read the second attach.
    send(WITH_OUTPUT.slice(4));
    attached(true, { [RUN]: 0 });
    send(WITH_OUTPUT);
    await pass(32);
    expect(client.acks(false).pop()).toMatchObject({ seq: 8 });
  });

  it('reads the file again when it writes anew, though its document has cells of the run', async () => {
    attached(true);
    send(TO_THE_CELL);
    await pass(16);
    attached(false);
    file.version += 1;
    file.cells = [];
    context.model.dirty = true;
    attached(true);
    await pass(16);
    expect(context.reverts).toBe(1);
  });

  it('fills a document up that has edits of the person’s when it writes anew', async () => {
    attached(true);
    send(TO_THE_CELL);
    await pass(16);
    attached(false);
    file.version += 1;
    context.model.sharedModel.insertCell(0, { cell_type: 'code', source: 'x' });
    journal = WITH_OUTPUT;
    attached(true);
    await pass(32);
    expect(context.reverts).toBe(0);
    expect(outputs()[0]).toMatchObject({ text: 'one\ntwo\n' });
  });

  it('writes over no file with which its document disagrees, when it fetches again', async () => {
    attached(true);
    send(TO_THE_CELL);
    await pass(16);
    attached(false);
    file.version += 1;
    context.model.sharedModel.insertCell(0, { cell_type: 'code', source: 'x' });
    journal = WITH_OUTPUT;
    isServerDown = true;
    attached(true);
    await pass(32);
    isServerDown = false;
    await pass(1000);
    expect(outputs()[0]).toMatchObject({ text: 'one\ntwo\n' });
    expect(file.renames).toBe(0);
  });

  it.each([
    ['keeps', 'print(1)  # my work', 0],
    ['gives up what a run wrote, not', 'print(2)', 1]
  ])(
    '%s the person’s edit of a run’s cell when it writes anew',
    async (_, source, reverts) => {
      attached(true);
      send([
        ...TO_THE_CELL,
        operated(5, { op: 'set_source', cell_id: 'cell-1', source: 'print(2)' })
      ]);
      await pass(16);
      attached(false);
      context.model.sharedModel.cells[0].setSource(source);
      context.model.dirty = true;
      // The other tab has saved the cell as the run first wrote it.
      file.version += 1;
      file.cells = [
        {
          cell_type: 'code',
          id: 'cell-1',
          metadata: { dm_jupyter: { run: RUN } },
          outputs: [],
          source: 'print(1)'
        }
      ];
      attached(true);
      await pass(32);
      expect(context.reverts).toBe(reverts);
      expect(context.model.sharedModel.cells[0].getSource()).toBe(source);
    }
  );

  it('drops what waits when another tab takes over', async () => {
    attached(true);
    send(WITH_OUTPUT);
    attached(false);
    await pass(100);
    expect(ids()).toEqual([]);
  });

  it('minds again what another hand writes after two saves over the server’s file', async () => {
    const document = context as unknown as NotebookContext;
    await Promise.all([
      saveOver(document, file.contents),
      saveOver(document, file.contents)
    ]);
    expect(context.conflicts).toBe(0);
    expect(context.lastModifiedCheckMargin).toBe(500);
  });

  it('minds what another hand writes while a save waits its turn to go over that', async () => {
    const document = context as unknown as NotebookContext;
    const margins: number[] = [];
    context.saveState.connect((_, state) => {
      if (state === 'started') {
        margins.push(context.lastModifiedCheckMargin);
      }
    });
    const [mine, over] = [
      saveAlone(document),
      saveOver(document, file.contents)
    ];
    await Promise.all([mine, over]);
    expect(margins).toEqual([500, Number.POSITIVE_INFINITY]);
  });

  it('lets a save of the person’s follow its own', async () => {
    attached(true);
    send(WITH_OUTPUT);
    await pass(15);
    const inFlight: number[] = [];
    let open = 0;
    context.saveState.connect((_, state) => {
      open += state === 'started' ? 1 : -1;
      inFlight.push(open);
      if (state === 'started' && inFlight.length === 1) {
        void context.save();
      }
    });
    await pass(1000);
    expect(Math.max(...inFlight)).toBe(1);
    expect(context.saves).toBe(2);
    expect(context.conflicts).toBe(0);
  });

  it('says nothing of a save that wrote another file', async () => {
    attached(true);
    send(TO_THE_CELL);
    await pass(16);
    // As *Save Notebook As…* does, which leaves this file alone.
    context.saveState.emit('started');
    context.saveState.emit('completed');
    expect(client.acks(true)).toEqual([]);
    await context.save();
    expect(client.acks(true)).toHaveLength(1);
  });

  it('saves one save after the other, whoever asks for them', async () => {
    let [open, most] = [0, 0];
    context.saveState.connect((_, state) => {
      open += state === 'started' ? 1 : -1;
      most = Math.max(most, open);
    });
    const document = context as unknown as NotebookContext;
    const first = saveAlone(document);
    const second = saveAlone(document);
    await first;
    await Promise.all([second, context.save()]);
    expect(context.saves).toBe(3);
    expect(most).toBe(1);
  });

  it('says under which name the notebook goes on', () => {
    attached(true);
    send(TO_THE_CELL);
    context.localPath = 'work/renamed.ipynb';
    session.renamed();
    session.dispose();
    expect(client.sent.slice(-3)).toEqual([
      {
        kind: 'renamed',
        old_path: PATH,
        new_path: 'work/renamed.ipynb',
        client_id: 'tab-1'
      },
      {
        kind: 'attach',
        notebook_path: 'work/renamed.ipynb',
        client_id: 'tab-1',
        seen: { [RUN]: 4 }
      },
      { kind: 'detach', notebook_path: 'work/renamed.ipynb' }
    ]);
  });

  it('says after a break what the notebook was called before', () => {
    attached(true);
    client.setConnected(false);
    for (const name of ['one.ipynb', 'two.ipynb']) {
      context.localPath = name;
      session.renamed();
    }
    client.sent = [];
    client.setConnected(true);
    expect(client.sent).toMatchObject([
      { kind: 'renamed', old_path: PATH, new_path: 'two.ipynb' },
      { kind: 'renamed', old_path: 'one.ipynb', new_path: 'two.ipynb' },
      { kind: 'attach', notebook_path: 'two.ipynb' }
    ]);
    attached(true, {}, false, 'two.ipynb');
    client.sent = [];
    client.setConnected(false);
    client.setConnected(true);
    expect(client.sent).toMatchObject([{ kind: 'attach' }]);
  });

  it('says good-bye', () => {
    attached(true);
    session.dispose();
    expect(client.sent.pop()).toEqual({ kind: 'detach', notebook_path: PATH });
  });
});
