import { SessionContext } from '@jupyterlab/apputils';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { Signal } from '@lumino/signaling';

import { kernelSettled } from '../notebook/kernelstart';

/** A session whose server has one kernel, which starts when the test says so. */
function sessionOf(kernelName: string): {
  session: SessionContext;
  start: () => void;
} {
  let start = () => undefined as void;
  const model = {
    kernel: null,
    type: 'notebook',
    setPath: async () => undefined,
    setName: async () => undefined,
    shutdown: async () => undefined,
    dispose: () => undefined
  };
  const signals = Object.fromEntries(
    [
      ...['disposed', 'propertyChanged', 'kernelChanged', 'statusChanged'],
      ...['connectionStatusChanged', 'pendingInput'],
      ...['iopubMessage', 'unhandledMessage']
    ].map(name => [name, new Signal<object, unknown>({})])
  );
  const sessionManager = {
    ready: Promise.resolve(),
    refreshRunning: async () => undefined,
    running: () => [][Symbol.iterator](),
    startNew: ({ name, path }: { name: string; path: string }) =>
      new Promise(resolve => {
        start = () => resolve({ ...model, ...signals, name, path });
      })
  };
  const python3 = { name: 'python3', language: 'python' };
  const specs = { default: 'python3', kernelspecs: { python3 } };
  const session = new SessionContext({
    kernelManager: {},
    sessionManager,
    specsManager: { ready: Promise.resolve(), specs },
    path: 'a.ipynb',
    name: 'a.ipynb',
    type: 'notebook',
    kernelPreference: { name: kernelName, language: 'R' }
  } as unknown as SessionContext.IOptions);
  return { session, start: () => start() };
}

describe('kernelSettled', () => {
  beforeEach(() => {
    jest.useFakeTimers();
  });

  afterEach(() => {
    jest.useRealTimers();
  });

  function settledOf(sessionContext: SessionContext): jest.Mock {
    const panel = { context: { ready: Promise.resolve() }, sessionContext };
    const settled = jest.fn();
    void kernelSettled(panel as unknown as NotebookPanel).then(settled);
    return settled;
  }

  it('waits no longer where no kernel fits and the person chooses none', async () => {
    const { session } = sessionOf('not-installed');
    const settled = settledOf(session);
    expect(await session.initialize()).toBe(true);
    await jest.advanceTimersByTimeAsync(5_000);
    expect(settled).not.toHaveBeenCalled();
    await jest.advanceTimersByTimeAsync(5_000);
    expect(settled).toHaveBeenCalled();
    session.dispose();
  });

  it('waits no longer once the notebook is closed', async () => {
    const { session } = sessionOf('python3');
    void session.initialize();
    const settled = settledOf(session);
    await jest.advanceTimersByTimeAsync(100);
    expect(settled).not.toHaveBeenCalled();
    session.dispose();
    await jest.advanceTimersByTimeAsync(0);
    expect(settled).toHaveBeenCalled();
  });

  it('waits no longer once the person chooses none instead of one that is slow', async () => {
    const { session } = sessionOf('python3');
    void session.initialize();
    const settled = settledOf(session);
    await jest.advanceTimersByTimeAsync(15_000);
    await session.shutdown();
    await jest.advanceTimersByTimeAsync(10_000);
    expect(settled).toHaveBeenCalled();
    session.dispose();
  });

  it('waits for a kernel that is slow to start', async () => {
    const { session, start } = sessionOf('python3');
    void session.initialize();
    const settled = settledOf(session);
    await jest.advanceTimersByTimeAsync(60_000);
    expect(settled).not.toHaveBeenCalled();
    start();
    await jest.advanceTimersByTimeAsync(0);
    expect(settled).toHaveBeenCalled();
    session.dispose();
  });
});
