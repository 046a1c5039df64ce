import { nullTranslator } from '@jupyterlab/translation';

import type { Analyst } from '../model/analyst';
import { Drafts } from '../model/draft';
import { chooseKernel } from '../kernel/kernelchoice';
import { AnalystModel } from '../model/model';
import type { IAsk, IRefused } from '../protocol.gen';
import type { Workspace } from '../model/workspace';
import { PATH } from './messages';

const ASK: IAsk = {
  kind: 'ask',
  request_id: 'request-1',
  notebook_path: PATH,
  question: 'How many?',
  files: ['f.csv'],
  variables: ['df']
};
const REFUSAL: IRefused = {
  kind: 'refused',
  request_id: 'request-1',
  reason: 'kernel',
  message: 'not restricted',
  files: [],
  candidates: []
};
const NEW_PATH = 'work/Untitled.ipynb';

describe('chooseKernel', () => {
  const model = new AnalystModel();
  const drafts = new Drafts();
  const asked: unknown[][] = [];
  let isConnected: boolean;
  let changeKernel: (model?: unknown) => Promise<void>;
  let cells: unknown[];
  let executed: string[];
  let cancel: (reason: Error) => void;
  let shutdown: jest.Mock;
  let newNotebook: () => Promise<unknown>;
  let localPath: string;

  beforeEach(() => {
    isConnected = true;
    localPath = PATH;
    changeKernel = async () => undefined;
    newNotebook = async () => ({ context: { localPath: NEW_PATH } });
    asked.length = 0;
    cells = [];
    executed = [];
    cancel = () => undefined;
    shutdown = jest.fn(async () => cancel(new Error('Canceled')));
    [PATH, NEW_PATH].forEach(path => {
      drafts.clear(path);
      model.forget(path);
    });
  });

  /** Has the person choose in the dialog, and waits until all is done. */
  async function choose(
    choice: 'own' | 'switch' | 'new' | 'rerun' | null
  ): Promise<void> {
    const analyst = {
      model,
      drafts,
      putBack: (path: string, ask: IAsk) => drafts.putBack(path, ask),
      status: null,
      panel: () => ({
        context: {
          get localPath() {
            return localPath;
          }
        },
        content: { widgets: cells.map(model => ({ model })) },
        sessionContext: { changeKernel }
      }),
      askAgain: (...args: unknown[]) => {
        asked.push(args);
        return isConnected;
      }
    } as unknown as Analyst;
    const workspace = {
      hasRestrictedKernel: true,
      newNotebook,
      startRestrictedKernel: async () => ({
        id: 'restricted-1',
        requestExecute: ({ code }: { code: string }) => {
          executed.push(code);
          const error = { status: 'error', ename: 'E', evalue: 'why' };
          const content = code.includes('bad') ? error : { status: 'ok' };
          if (code.includes('endless')) {
            return { done: new Promise((_, reject) => (cancel = reject)) };
          }
          return {
            done: code.includes('kill')
              ? Promise.reject(new Error('Canceled'))
              : Promise.resolve({ content })
          };
        },
        shutdown,
        dispose: () => undefined
      })
    } as unknown as Workspace;
    const trans = nullTranslator.load('dm_jupyter');
    const done = chooseKernel(
      { ask: ASK, refusal: REFUSAL },
      analyst,
      workspace,
      trans
    );
    while (!document.querySelector('.jp-Dialog input')) {
      await new Promise(resolve => setTimeout(resolve, 5));
    }
    const click = (selector: string) =>
      document.querySelector<HTMLElement>(`.jp-Dialog ${selector}`)?.click();
    if (choice) {
      click(`input[value="${choice}"]`);
    }
    click(choice ? '.jp-mod-accept' : '.jp-mod-reject');
    await done;
  }

  function notices(path: string): string[] {
    return model.notebook(path).notices.map(notice => notice.text);
  }

  it.each([
    ['rerun', PATH, 'restricted'],
    ['own', PATH, 'own'],
    ['switch', PATH, 'restricted'],
    ['new', NEW_PATH, 'restricted']
  ] as const)('asks again where the person chose: %s', async (...row) => {
    const [choice, path, kernel] = row;
    await choose(choice);
    expect(asked).toEqual([[ASK, path, kernel, 'ask']]);
    expect(drafts.get(path).text).toBe('');
  });

  describe('when the cells are run again', () => {
    const cellOf = (count: number | null, source: string, output = '') => ({
      type: 'code',
      executionCount: count,
      outputs: { length: output ? 1 : 0, get: () => ({ type: output }) },
      sharedModel: { getSource: () => source }
    });

    it('runs those that had worked, in order, and then switches the kernel', async () => {
      const changes: unknown[] = [];
      const lines: string[] = [];
      cells = [
        { type: 'markdown' },
        cellOf(7, 'a = 1', 'stream'),
        cellOf(null, 'never = 1'),
        cellOf(2, 'b = a'),
        cellOf(3, '1 / 0', 'error'),
        cellOf(4, '%%analyze\nHow many?')
      ];
      changeKernel = async model => {
        changes.push(model);
      };
      const look = () => lines.push(model.notebook(PATH).preparing);
      model.changed.connect(look);
      await choose('rerun');
      model.changed.disconnect(look);
      expect(executed).toEqual(['a = 1', 'b = a']);
      expect(changes).toEqual([{ id: 'restricted-1' }]);
      expect(lines).toContain('Running cell 2 of 2 again…');
      expect(asked).toEqual([[ASK, PATH, 'restricted', 'ask']]);
      expect(shutdown).not.toHaveBeenCalled();
      expect(notices(PATH)[0]).toContain('1 cell with %analyze was not run');
    });

    it.each([true, false])(
      'asks under the name that the notebook got meanwhile, connected: %s',
      async isOnline => {
        isConnected = isOnline;
        cells = [cellOf(1, 'a = 1'), cellOf(2, 'b = a')];
        const rename = () => {
          if (model.notebook(PATH).preparing.includes('cell 1')) {
            localPath = NEW_PATH;
            model.rename(PATH, NEW_PATH);
          }
        };
        model.changed.connect(rename);
        await choose('rerun');
        model.changed.disconnect(rename);
        const ask = { ...ASK, notebook_path: NEW_PATH };
        expect(asked).toEqual([[ask, NEW_PATH, 'restricted', 'ask']]);
        expect(model.notebook(PATH).pending).toBeNull();
        expect(model.notebook(NEW_PATH).pending === null).toBe(!isOnline);
        expect(drafts.get(NEW_PATH).text).toBe(isOnline ? '' : 'How many?');
      }
    );

    it.each([
      ['bad', 'E: why'],
      ['kill', 'the kernel ended']
    ])(
      'keeps the kernel and says which cell failed: %s',
      async (word, reason) => {
        changeKernel = jest.fn();
        cells = [cellOf(5, word), cellOf(6, 'later')];
        await choose('rerun');
        expect(executed).toEqual([word]);
        expect(changeKernel).not.toHaveBeenCalled();
        expect(shutdown).toHaveBeenCalled();
        expect(asked).toEqual([]);
        expect(drafts.get(PATH).text).toBe('How many?');
        expect(model.notebook(PATH).pending).toBeNull();
        expect(notices(PATH)[0]).toContain('cell [5] failed');
        expect(notices(PATH)[0]).toContain(reason);
      }
    );
  });

  it('ends running the cells again when the person stops it, in the midst of a cell', async () => {
    cells = ['a = 1', 'endless', 'later'].map((source, index) => ({
      type: 'code',
      executionCount: index,
      outputs: { length: 0 },
      sharedModel: { getSource: () => source }
    }));
    changeKernel = jest.fn();
    const stop = () => {
      const { preparing, stopPreparing } = model.notebook(PATH);
      if (preparing.includes('cell 2')) {
        setTimeout(() => stopPreparing?.());
      }
    };
    model.changed.connect(stop);
    await choose('rerun');
    model.changed.disconnect(stop);
    expect(executed).toEqual(['a = 1', 'endless']);
    expect(shutdown).toHaveBeenCalled();
    expect(changeKernel).not.toHaveBeenCalled();
    expect(drafts.get(PATH).text).toBe('How many?');
    const { notices, pending, stopPreparing } = model.notebook(PATH);
    expect(pending).toBeNull();
    expect(stopPreparing).toBeNull();
    expect(notices[0].text).toContain('was stopped');
    expect(notices[0].text).not.toContain('failed');
  });

  describe('in a notebook that has no kernel', () => {
    let kernelId: string;
    let panel: unknown;
    const dispose = jest.fn();
    const names: unknown[] = [];

    beforeEach(() => {
      kernelId = 'gone';
      names.length = 0;
      dispose.mockReset();
      panel = {
        context: { localPath: PATH },
        model: { getMetadata: () => ({ name: 'python3' }) },
        sessionContext: {
          get session() {
            return { kernel: { id: kernelId }, dispose };
          },
          changeKernel: async ({ name }: { name: string }) => {
            names.push(name);
            kernelId = `started-${names.length}`;
            return { id: kernelId };
          }
        }
      };
    });

    async function refuse(): Promise<void> {
      const analyst = {
        model,
        drafts,
        putBack: (path: string, ask: IAsk) => drafts.putBack(path, ask),
        panel: () => panel,
        askAgain: (...args: unknown[]) => {
          asked.push(args);
          return isConnected;
        }
      } as unknown as Analyst;
      const refusal: IRefused = {
        ...REFUSAL,
        reason: 'no_kernel',
        message: 'it has no running kernel'
      };
      const trans = nullTranslator.load('dm_jupyter');
      await chooseKernel(
        { ask: ASK, refusal },
        analyst,
        {} as unknown as Workspace,
        trans
      );
    }

    it('starts one of its kind, says so and asks again without a dialog', async () => {
      await refuse();
      expect(document.querySelector('.jp-Dialog')).toBeNull();
      expect(dispose).toHaveBeenCalled();
      expect(names).toEqual(['python3']);
      expect(asked).toEqual([[ASK, PATH, 'restricted', 'ask']]);
      expect(notices(PATH)[0]).toContain('It has no variables yet');
    });

    it('starts no second one when that does not help', async () => {
      await refuse();
      await refuse();
      expect(names).toHaveLength(1);
      expect(asked).toHaveLength(1);
      expect(drafts.get(PATH).text).toBe('How many?');
      expect(notices(PATH)[1]).toBe(
        '“How many?” was not sent: it has no running kernel'
      );
    });
  });

  it('puts the question back when the person would rather not', async () => {
    await choose(null);
    expect(asked).toEqual([]);
    expect(drafts.get(PATH)).toEqual({
      text: 'How many?',
      files: ['f.csv'],
      variables: ['df']
    });
    expect(notices(PATH)).toEqual([]);
  });

  it.each(['switch', 'new'] as const)(
    'puts the question back, and says why, when this fails: %s',
    async choice => {
      changeKernel = newNotebook = async () => {
        throw new Error('the server said no');
      };
      await choose(choice);
      expect(asked).toEqual([]);
      expect(drafts.get(PATH).text).toBe('How many?');
      expect(notices(PATH)).toEqual([
        '“How many?” was not sent: the server said no'
      ]);
    }
  );

  it('puts the question back where the new notebook is in another page', async () => {
    newNotebook = async () => null;
    await choose('new');
    expect(drafts.get(PATH).text).toBe('How many?');
    expect(notices(PATH)[0]).toContain('not open in this page');
  });

  it('puts the question into the notebook that is shown when nothing is connected', async () => {
    isConnected = false;
    await choose('new');
    expect(drafts.get(NEW_PATH).text).toBe('How many?');
    expect(notices(NEW_PATH)[0]).toContain('no connection');
  });
});
