import {
  RenderMimeRegistry,
  markdownRendererFactory
} from '@jupyterlab/rendermime';
import type { IDocumentManager } from '@jupyterlab/docmanager';
import type { Contents } from '@jupyterlab/services';
import { nullTranslator } from '@jupyterlab/translation';
import axe from 'axe-core';
import { act } from 'react';
import { createRoot } from 'react-dom/client';
import type { Root } from 'react-dom/client';

import { Banners } from '../panel/banners';
import { Choices } from '../model/choices';
import { PanelContext, useFramedSignal } from '../panel/context';
import { UnseenWrites } from '../panel/filechanges';
import { AnalystModel } from '../model/model';
import type { IFileChange, IFilesWanted } from '../protocol.gen';
import { Steps } from '../panel/steps';
import type { IAnalyst } from '../model/tokens';
import { Workspace } from '../model/workspace';
import {
  PATH,
  RUN,
  cellClosed,
  cellOpened,
  changeOf,
  filesDecided,
  filesWait,
  insertCell,
  meterOf,
  operated,
  runClosed,
  runOpened,
  stepOpened
} from './messages';

const OVERWRITTEN = changeOf('sales.csv', {
  kind: 'changed',
  size_bytes: 5,
  before_bytes: 20
});
const TOOL = changeOf('tool.py', { size_bytes: 1500, marks: ['code'] });
const PLANTED = changeOf('polars.py', {
  state: 'refused',
  marks: ['code', 'hides the module polars']
});

const WANTED: IFilesWanted = {
  kind: 'files_wanted',
  notebook_path: PATH,
  question: 'What is in it?',
  files: [{ name: 'secret.csv', leads_to: '/home/me/secret.csv' }]
};

describe('files', () => {
  let model: AnalystModel;
  let choices: Choices;
  let missing: string[];
  let said: unknown[][];
  let host: HTMLElement;
  let root: Root;

  beforeAll(() => {
    HTMLCanvasElement.prototype.getContext = () => null;
    Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true });
  });

  beforeEach(() => {
    model = new AnalystModel();
    choices = new Choices();
    missing = [];
    said = [];
    host = document.body.appendChild(document.createElement('div'));
    root = createRoot(host);
  });

  afterEach(async () => {
    await act(async () => root.unmount());
    host.remove();
  });

  /** What the panel shows of a notebook, without the field. */
  function View(): React.ReactElement {
    const notebook = useFramedSignal(model.changed, () => model.notebook(PATH));
    return (
      <>
        <Banners notebook={notebook} isConnected onLeft={() => undefined} />
        {notebook.runs.map(run => (
          <Steps key={run.runId} run={run} focusAfter={{ current: null }} />
        ))}
        <UnseenWrites meter={notebook.meter} />
      </>
    );
  }

  async function show(): Promise<void> {
    const analyst = {
      model,
      choices,
      isConnected: true,
      contents: {
        get: async (path: string) => {
          if (missing.includes(path)) {
            throw new Error('no such file');
          }
        }
      } as unknown as Contents.IManager,
      decideFiles: (...args: unknown[]) => said.push(['decideFiles', ...args]),
      askWanted: (...args: unknown[]) => said.push(['askWanted', ...args])
    } as unknown as IAnalyst;
    const workspace = {
      openFile: async (...args: unknown[]) => said.push(['openFile', ...args])
    } as unknown as Workspace;
    const context = {
      analyst,
      workspace,
      rendermime: new RenderMimeRegistry({
        initialFactories: [markdownRendererFactory]
      }),
      trans: nullTranslator.load('dm_jupyter')
    };
    await act(async () =>
      root.render(
        <PanelContext.Provider value={context}>
          <View />
        </PanelContext.Provider>
      )
    );
    await settle();
  }

  /** Lets a frame and what it starts come to an end. */
  async function settle(): Promise<void> {
    await act(async () => {
      await new Promise(resolve => setTimeout(resolve, 50));
    });
  }

  function all(id: string): HTMLElement[] {
    return [...host.querySelectorAll<HTMLElement>(`[data-testid="${id}"]`)];
  }

  function one(id: string): HTMLElement {
    expect(all(id)).toHaveLength(1);
    return all(id)[0];
  }

  async function click(element: HTMLElement | null): Promise<void> {
    await act(async () => element?.click());
    await settle();
  }

  async function violations(): Promise<string[]> {
    const { violations } = await axe.run(host, {
      rules: { 'color-contrast': { enabled: false } }
    });
    return violations.map(found => `${found.id}: ${found.help}`);
  }

  function begin(): void {
    model.receive(runOpened());
    model.receive(stepOpened(2));
    model.receive(operated(3, insertCell('cell-1')));
    model.receive(cellOpened());
  }

  /** A run whose only cell has ended, having done this to files. */
  async function showEnded(...files: readonly IFileChange[]): Promise<void> {
    begin();
    model.receive(cellClosed({ files: [...files] }));
    await show();
  }

  function texts(): (string | null)[] {
    return all('dm-file').map(file => file.textContent);
  }

  it('asks about what a cell overwrote, and says nothing is there yet', async () => {
    begin();
    model.receive(filesWait([TOOL, OVERWRITTEN]));
    await show();
    expect(one('dm-step').dataset.status).toBe('files_wait');
    expect(one('dm-step').textContent).toContain('Files wait for you');
    expect(one('dm-files-approval').textContent).toContain(
      '1 changed, 1 new. Your folder has none of it yet.'
    );
    expect(texts()).toEqual([
      'sales.csv changed · 20 B → 5 B',
      'tool.py new · 1.5 kB · a program'
    ]);
    expect(one('dm-files-approval').getAttribute('role')).toBe('group');
    expect(await violations()).toEqual([]);
    await click(one('dm-files-apply'));
    await click(one('dm-files-discard'));
    expect(said).toEqual([
      ['decideFiles', RUN, 'cell-1', true],
      ['decideFiles', RUN, 'cell-1', false]
    ]);
  });

  it.each(['dm-files-apply', 'dm-files-discard'])(
    'keeps the focus at the step after %s',
    async button => {
      begin();
      model.receive(filesWait([OVERWRITTEN]));
      await show();
      one(button).focus();
      model.receive(filesDecided(button === 'dm-files-apply'));
      await settle();
      expect(all(button)).toEqual([]);
      expect(document.activeElement).toBe(
        one('dm-step').querySelector('.jp-dm-Step-toggle')
      );
    }
  );

  it('names what was discarded and what was refused', async () => {
    begin();
    model.receive(filesWait([OVERWRITTEN]));
    model.receive(filesDecided(false));
    model.receive(
      cellClosed({
        seq: 8,
        files: [{ ...OVERWRITTEN, state: 'refused' }, PLANTED]
      })
    );
    await show();
    expect(texts()).toEqual([
      'sales.csv not changed · discarded',
      'polars.py not made · refused · a program · hides the module polars'
    ]);
    expect(one('dm-files').textContent).toContain(
      '2 files: 1 discarded, 1 refused'
    );
  });

  it('drops what waits when the run ends', async () => {
    begin();
    model.receive(filesWait([OVERWRITTEN]));
    model.receive(runClosed({ seq: 9, stop: 'cancelled', answer: null }));
    await show();
    expect(texts()).toEqual(['sales.csv not changed · discarded']);
  });

  it('lists what a cell did without a click, and opens what only shows data', async () => {
    const table = changeOf('out/new.csv', { size_bytes: 12 });
    const text = changeOf('new.json');
    const gone = changeOf('old.csv', { kind: 'removed', before_bytes: 7 });
    const page = changeOf('page.html', {
      marks: ['may run code when it is opened']
    });
    await showEnded(table, text, gone, TOOL, page);
    expect(one('dm-files').textContent).toContain('5 files: 1 removed, 4 new');
    expect(texts()).toEqual([
      'old.csv removed · 7 B',
      'tool.py new · 1.5 kB · a program',
      'page.html new · may run code when it is opened',
      'out/new.csv new · 12 B',
      'new.json new'
    ]);
    const links = [...one('dm-files').querySelectorAll('button')];
    expect(links.map(link => link.textContent)).toEqual([
      'out/new.csv',
      'new.json'
    ]);
    expect(await violations()).toEqual([]);
    for (const link of links) {
      await click(link);
    }
    expect(said).toEqual([
      ['openFile', 'work/out/new.csv', 'own'],
      ['openFile', 'work/new.json', 'text']
    ]);
  });

  it('opens a text as text, whatever usually shows it', async () => {
    const opened: unknown[][] = [];
    const documents = {
      openOrReveal: (...args: unknown[]) => void opened.push(args)
    } as unknown as IDocumentManager;
    await new Workspace(documents).openFile('new.json', 'text');
    await new Workspace(documents).openFile('new.csv', 'own');
    expect(opened).toEqual([
      ['new.json', 'Editor'],
      ['new.csv', undefined]
    ]);
  });

  it('says so when a file has gone since', async () => {
    await showEnded(changeOf('new.csv'));
    missing.push('work/new.csv');
    await click(one('dm-files').querySelector('button'));
    expect(said).toEqual([]);
    expect(host.querySelector('.jp-dm-Banners')?.textContent).toContain(
      'There is no new.csv in the notebook’s folder'
    );
  });

  it('folds more than five away', async () => {
    const names = ['a', 'b', 'c', 'd', 'e', 'f'];
    await showEnded(...names.map(name => changeOf(`${name}.csv`)));
    const toggle = one('dm-files').querySelector('button');
    expect(toggle?.textContent).toBe('6 files: 6 new');
    expect(toggle?.getAttribute('aria-expanded')).toBe('false');
    expect(texts()).toEqual([]);
    await click(toggle);
    expect(toggle?.getAttribute('aria-expanded')).toBe('true');
    expect(texts()).toHaveLength(6);
    expect(await violations()).toEqual([]);
  });

  it('lets no name of a file hide or turn around what it is', async () => {
    await showEnded(
      changeOf('gpj.\u202etxt.csv'),
      changeOf('a\nb.txt'),
      changeOf('c\u3164.txt'),
      changeOf('می\u200cخواهم.csv')
    );
    expect(texts()).toEqual([
      'gpj.\\u{202e}txt.csv new',
      'a\\u{a}b.txt new',
      'c\\u{3164}.txt new',
      'می\u200cخواهم.csv new'
    ]);
  });

  it('shows what code in the kernel wants asked, and asks it', async () => {
    model.receive(WANTED);
    await show();
    const text = one('dm-wanted').textContent;
    expect(text).toContain('What is in it?');
    expect(text).toContain('secret.csv → /home/me/secret.csv');
    expect(await violations()).toEqual([]);
    await click(one('dm-wanted-ask'));
    expect(said).toEqual([['askWanted', PATH]]);
  });

  it('never changes what is about to be agreed to, and forgets it on a click', async () => {
    model.receive(WANTED);
    model.receive({ ...WANTED, question: 'And this?' });
    model.receive({ ...WANTED, question: 'Or this?' });
    await show();
    expect(one('dm-wanted').textContent).toContain('What is in it?');
    await click(one('dm-wanted-dismiss'));
    expect(one('dm-wanted').textContent).toContain('Or this?');
    await click(one('dm-wanted-dismiss'));
    expect(all('dm-wanted')).toEqual([]);
    expect(model.notebook(PATH).wanted).toBeNull();
  });

  it('asks nothing more while a run goes on', async () => {
    begin();
    model.receive(WANTED);
    await show();
    expect((one('dm-wanted-ask') as HTMLButtonElement).disabled).toBe(true);
  });

  it('keeps telling of files that were not taken until it is put away', async () => {
    model.receive(meterOf({ files_left_out: [OVERWRITTEN] }));
    model.receive(meterOf());
    model.receive(meterOf({ files_left_out: [PLANTED, OVERWRITTEN] }));
    await show();
    expect(one('dm-left-out').textContent).toBe(
      '2 files that code of the notebook changed outside of a run were not taken: sales.csv, polars.py.'
    );
    expect(await violations()).toEqual([]);
    await click(one('dm-left-out').querySelector('button'));
    expect(all('dm-left-out')).toEqual([]);
  });

  it('says what the choice of waiting cells can’t see without a layer', async () => {
    model.receive(meterOf({ layers_missing: ['workspace_layer'] }));
    await show();
    expect(one('dm-unseen-writes').textContent).toContain(
      'judged by reading its code'
    );
    await act(async () => {
      choices.approval = 'ask';
    });
    await settle();
    expect(all('dm-unseen-writes')).toEqual([]);
    choices.approval = 'risky';
    model.receive(meterOf());
    await settle();
    expect(all('dm-unseen-writes')).toEqual([]);
  });
});
