import {
  RenderMimeRegistry,
  markdownRendererFactory
} from '@jupyterlab/rendermime';
import { NotebookModel } from '@jupyterlab/notebook';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { Contents } from '@jupyterlab/services';
import { nullTranslator } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';
import axe from 'axe-core';
import { act } from 'react';
import { createRoot } from 'react-dom/client';
import type { Root } from 'react-dom/client';

import { Choices } from '../model/choices';
import { PanelContext } from '../panel/context';
import { Drafts } from '../model/draft';
import { AnalystModel } from '../model/model';
import { QuestionQueue } from '../model/questionqueue';
import { applyOperation } from '../notebook/operations';
import type { IAsk, RunMessage } from '../protocol.gen';
import type {
  AnalystRest,
  IAbility,
  IDownload,
  IMeaning,
  IModelState,
  IStatus,
  IToldPart
} from '../channel/rest';
import type { IAnalyst, IQuestion } from '../model/tokens';
import { PanelView } from '../panel/view';
import type { IViewState } from '../panel/view';
import type { Workspace } from '../model/workspace';
import {
  PATH,
  RUN,
  cellClosed,
  cellOpened,
  insertCell,
  numberOf,
  operated,
  printed,
  runClosed,
  runOpened,
  stepClosed,
  stepOpened
} from './messages';

const STATUS: IStatus = {
  version: '1',
  models: [
    {
      name: 'small',
      label: 'Small',
      is_local: true,
      is_present: true,
      detail: ''
    },
    {
      name: 'far',
      label: 'Far',
      is_local: false,
      is_present: true,
      detail: ''
    }
  ],
  default_model: 'small',
  containment: { active: ['landlock', 'late_seccomp'], missing: ['cgroup'] },
  is_shared: false,
  problems: []
};

const VARIABLES = [
  {
    name: 'sales',
    kind: 'DataFrame',
    shape: [3, 2],
    columns: [{ name: 'day', dtype: 'object', samples: [] }]
  }
];

const EXAMPLES = [
  { question: 'Which day in sales.csv is best?', file: 'work/sales.csv' }
];

const DOWNLOAD: IDownload = {
  name: 'small',
  state: 'running',
  stage: 'hub',
  done_bytes: 420_000_000,
  total_bytes: 1_117_000_000,
  error: ''
};

const SETUP: IModelState = {
  is_ready: false,
  obstacle: { kind: 'model', text: 'It is not here.', command: 'pull' },
  local: { name: 'small', title: 'Small', size_bytes: 1_117_000_000 },
  download: null,
  endpoint: null,
  endpoints: [],
  can_set_endpoint: true,
  why_fixed: '',
  presets: [
    {
      name: 'openai',
      title: 'OpenAI',
      base_url: 'https://api.openai.com/v1',
      needs_key: true,
      blank: ''
    },
    {
      name: 'azure',
      title: 'Azure OpenAI',
      base_url: 'https://RESOURCE.openai.azure.com/openai/v1',
      needs_key: true,
      blank: 'RESOURCE'
    }
  ],
  uses_keyring: false
};

/** The set-up of a server whose endpoint was set in the panel. */
const FAR: IModelState = {
  ...SETUP,
  is_ready: true,
  obstacle: null,
  local: null,
  endpoint: { base_url: 'http://far/v1', model: 'far', has_key: true },
  endpoints: [
    {
      name: 'far @ http://far/v1',
      base_url: 'http://far/v1',
      model: 'far',
      has_key: true,
      is_default: true,
      is_usable: true
    }
  ]
};

/** As `FAR`, and one more that is not in use, and one whose key is lost. */
const MORE: IModelState = {
  ...FAR,
  endpoints: [
    ...FAR.endpoints,
    {
      name: 'far @ near.example/v1',
      base_url: 'https://near.example/v1',
      model: 'far',
      has_key: false,
      is_default: false,
      is_usable: true
    },
    {
      name: 'lost @ near.example/v1',
      base_url: 'https://near.example/v1',
      model: 'lost',
      has_key: false,
      is_default: false,
      is_usable: false
    }
  ]
};

const ABILITIES: readonly IAbility[] = [
  { name: 'tool calls', is_there: true, how: 'Chooses the dialect.' },
  { name: 'seed', is_there: false, how: 'Repeats an answer.' },
  { name: 'reasoning', is_there: null, how: 'None was seen.' }
];

const NO_MODEL: IStatus = {
  ...STATUS,
  models: [
    { ...STATUS.models[0], is_present: false, detail: 'It is not here.' }
  ]
};

/** Keeps what the panel says to it. */
class FakeAnalyst {
  readonly model = new AnalystModel();
  readonly drafts = new Drafts();
  readonly choices = new Choices();
  readonly queue: QuestionQueue = new QuestionQueue({
    model: this.model,
    caughtUp: async () => undefined,
    send: async (path, question) => {
      this.said.push(['ask', path, question]);
      return true;
    },
    storage: window.sessionStorage,
    storageKey: 'waiting'
  });
  readonly rest = {
    variables: async () => VARIABLES,
    runs: async () => [],
    examples: async () => EXAMPLES,
    files: async (match: string, near: string) =>
      ['work/sales.csv'].filter(path => path.includes(match) || near === ''),
    meaning: async () => this.meaning,
    model: async () => this.setup,
    setEndpoint: async (...args: unknown[]) => {
      this.said.push(['setEndpoint', ...args]);
      if (args[0] === 'http://wrong/v1') {
        throw new Error('Nothing answers at http://wrong/v1.');
      }
      return { ...this.setup, is_ready: true, obstacle: null };
    },
    listModels: async (...args: unknown[]) => {
      this.said.push(['listModels', ...args]);
      if (args[0] === 'http://wrong/v1') {
        throw new Error('http://wrong/v1 refuses the key. Check it.');
      }
      return ['big', 'small'];
    },
    testEndpoint: async (...args: unknown[]) => {
      this.said.push(['testEndpoint', ...args]);
      await this.answered;
      return ABILITIES;
    },
    useEndpoint: async (url: string, model: string) => {
      this.said.push(['useEndpoint', url, model]);
      const endpoints = this.setup.endpoints.map(one => ({
        ...one,
        is_default: one.base_url === url && one.model === model
      }));
      this.setup = { ...this.setup, endpoints };
      return this.setup;
    },
    forgetEndpoint: async (url: string, model: string) => {
      this.said.push(['forgetEndpoint', url, model]);
      const endpoints = this.setup.endpoints.filter(
        one => one.base_url !== url || one.model !== model
      );
      this.setup = { ...this.setup, endpoints };
      return this.setup;
    },
    startDownload: async (name: string) => {
      this.said.push(['startDownload', name]);
      this.setup = { ...this.setup, download: DOWNLOAD };
      return this.setup;
    },
    cancelDownload: async (name: string) => {
      this.said.push(['cancelDownload', name]);
      const download: IDownload = { ...DOWNLOAD, state: 'cancelled' };
      this.setup = { ...this.setup, download };
      return this.setup;
    }
  } as unknown as AnalystRest;
  readonly contents = {} as unknown as Contents.IManager;
  meaning: IMeaning = { files: [], variables: [], unclear: [] };
  setup: IModelState = SETUP;
  told: readonly IToldPart[] = [];
  /** When the endpoint answers a test. */
  answered: Promise<void> = Promise.resolve();
  refreshStatus = async () => {
    this.said.push(['refreshStatus']);
    this.status = STATUS;
    this.stateChanged.emit();
  };
  readonly stateChanged = new Signal<this, void>(this);
  readonly currentChanged = new Signal<this, void>(this);
  readonly statusError = '';
  readonly currentPanel = null;
  status: IStatus | null = STATUS;
  isConnected = true;
  currentPath = PATH;
  readonly said: unknown[][] = [];

  panel: (path: string) => NotebookPanel | null = () => null;
  ask = async (path: string, question: IQuestion) => {
    if (this.queue.isBusy(path)) {
      this.queue.add(path, question);
    } else {
      this.said.push(['ask', path, question]);
    }
    return true;
  };
  preview = async () => this.told;
  readonly cellSelected = new Signal<this, void>(this);
  selected = 'a';
  selectedCell = () => this.selected;
  approvalIn = () => this.choices.approval;
  setApproval = (_: string, approval: 'ask' | 'risky' | 'auto') => {
    this.choices.approval = approval;
  };
  stop = (...args: unknown[]) => this.said.push(['stop', ...args]);
  decide = (...args: unknown[]) => this.said.push(['decide', ...args]);
  undo = (...args: unknown[]) => this.said.push(['undo', ...args]);
  rebuild = async (...args: unknown[]) => this.said.push(['rebuild', ...args]);
  takeOver = (...args: unknown[]) => this.said.push(['takeOver', ...args]);
}

const ASK: IAsk = {
  kind: 'ask',
  request_id: 'request-1',
  notebook_path: PATH,
  question: 'How many?'
};

const CELL_APPROVED: RunMessage = {
  kind: 'cell_decided',
  run_id: RUN,
  seq: 5,
  at: 1003,
  cell_id: 'cell-1',
  decision: 'approve',
  is_edited: false
};

const STATE: IViewState = {
  page: 'runs',
  shownRun: null,
  focusCount: 0,
  wasShown: true
};

describe('PanelView', () => {
  let analyst: FakeAnalyst;
  let workspace: {
    folder: string;
    folderChanged: Signal<object, void>;
    newNotebook: jest.Mock;
  };
  let host: HTMLElement;
  let root: Root;
  let pages: string[];

  beforeAll(() => {
    // The accessibility check measures icons where there is a canvas.
    HTMLCanvasElement.prototype.getContext = () => null;
    Object.assign(performance, { mark: jest.fn() });
    Element.prototype.scrollIntoView = jest.fn();
    Object.assign(globalThis, {
      IS_REACT_ACT_ENVIRONMENT: true,
      ResizeObserver: class {
        observe(): void {}
        disconnect(): void {}
      }
    });
  });

  beforeEach(() => {
    window.sessionStorage.clear();
    analyst = new FakeAnalyst();
    pages = [];
    workspace = {
      folder: 'work',
      folderChanged: new Signal<object, void>({}),
      newNotebook: jest.fn(async () => ({
        context: { localPath: 'work/Untitled.ipynb' }
      }))
    };
    host = document.body.appendChild(document.createElement('div'));
    root = createRoot(host);
  });

  afterEach(async () => {
    await act(async () => root.unmount());
    host.remove();
  });

  async function show(state: Partial<IViewState> = {}): Promise<void> {
    const trans = nullTranslator.load('dm_jupyter');
    const context = {
      analyst: analyst as unknown as IAnalyst,
      workspace: workspace as unknown as Workspace,
      rendermime: new RenderMimeRegistry({
        initialFactories: [markdownRendererFactory]
      }),
      trans
    };
    await act(async () => {
      root.render(
        <PanelContext.Provider value={context}>
          <PanelView
            state={{ ...STATE, ...state }}
            onPage={page => pages.push(page)}
            onShowRun={() => undefined}
          />
        </PanelContext.Provider>
      );
    });
    await settle();
  }

  /** Lets a frame and what it starts come to an end. */
  async function settle(): Promise<void> {
    await act(async () => {
      await new Promise(resolve => setTimeout(resolve, 50));
    });
  }

  function one(id: string): HTMLElement {
    const found = host.querySelectorAll<HTMLElement>(`[data-testid="${id}"]`);
    expect(found).toHaveLength(1);
    return found[0];
  }

  function all(id: string): HTMLElement[] {
    return [...host.querySelectorAll<HTMLElement>(`[data-testid="${id}"]`)];
  }

  function none(id: string): void {
    expect(host.querySelector(`[data-testid="${id}"]`)).toBeNull();
  }

  function value(name: string): string {
    return (one(`dm-endpoint-${name}`) as HTMLInputElement).value;
  }

  async function fill(name: string, text: string): Promise<void> {
    const field = one(`dm-endpoint-${name}`) as HTMLInputElement;
    await act(async () => {
      const { set } = Object.getOwnPropertyDescriptor(
        HTMLInputElement.prototype,
        'value'
      )!;
      set!.call(field, text);
      field.dispatchEvent(new Event('input', { bubbles: true }));
    });
  }

  async function choose(name: string): Promise<void> {
    const field = one('dm-endpoint-preset') as HTMLSelectElement;
    await act(async () => {
      field.value = name;
      field.dispatchEvent(new Event('change', { bubbles: true }));
    });
  }

  async function type(text: string): Promise<void> {
    const field = one('dm-composer') as HTMLTextAreaElement;
    await act(async () => {
      const { set } = Object.getOwnPropertyDescriptor(
        HTMLTextAreaElement.prototype,
        'value'
      )!;
      set!.call(field, text);
      field.setSelectionRange(text.length, text.length);
      field.dispatchEvent(new Event('input', { bubbles: true }));
    });
    await settle();
  }

  async function press(key: string, shiftKey = false): Promise<void> {
    await act(async () => {
      one('dm-composer').dispatchEvent(
        new KeyboardEvent('keydown', {
          key,
          shiftKey,
          bubbles: true,
          cancelable: true
        })
      );
    });
    await settle();
  }

  async function click(id: string): Promise<void> {
    await act(async () => one(id).click());
    await settle();
  }

  /** Shows or hides what a step did in full. */
  async function unfold(index: number): Promise<void> {
    const steps = host.querySelectorAll('[data-testid="dm-step"]');
    const toggle = steps[index].querySelector('.jp-dm-Step-toggle');
    await act(async () => (toggle as HTMLElement).click());
    await settle();
  }

  /** Presses a button of the dialog that is open. */
  async function answerDialog(button: string): Promise<void> {
    await act(async () =>
      document.querySelector<HTMLElement>(`.jp-Dialog ${button}`)?.click()
    );
    await settle();
  }

  async function violations(): Promise<string[]> {
    const { violations } = await axe.run(host, {
      // Colours are for a real browser to check.
      rules: { 'color-contrast': { enabled: false } }
    });
    return violations.map(found => `${found.id}: ${found.help}`);
  }

  function begin(waitsBecause = ''): void {
    beginWith('print(1)', waitsBecause);
  }

  function beginWith(source: string, waitsBecause: string): void {
    analyst.model.receive(runOpened());
    analyst.model.receive(stepOpened(2));
    analyst.model.receive(operated(3, insertCell('cell-1', source)));
    analyst.model.receive(cellOpened({ waits_because: waitsBecause }));
  }

  /** Opens a view of the notebook; returns its document. */
  function openNotebook(): NotebookModel {
    const model = new NotebookModel();
    const panel = { content: { model } } as unknown as NotebookPanel;
    analyst.panel = path => (path === PATH ? panel : null);
    return model;
  }

  /** Sends a question that is not clear; returns what makes the server say so. */
  async function askUnclearly(): Promise<() => Promise<void>> {
    const unclear = {
      word: 'sale',
      sentence: '“@sale” names no file and no table here.',
      is_unknown: true,
      candidates: [{ kind: 'file', name: 'work/sales.csv' } as const]
    };
    let answer = (_: IMeaning) => undefined as void;
    Object.assign(analyst.rest, {
      meaning: () => new Promise<IMeaning>(resolve => (answer = resolve))
    });
    await show();
    await type('Sum of @sale now');
    await press('Enter');
    return async () => {
      answer({ files: [], variables: [], unclear: [unclear] });
      await settle();
    };
  }

  /** The person turns to another notebook. */
  async function look(path: string): Promise<void> {
    analyst.currentPath = path;
    await act(async () => analyst.currentChanged.emit());
    await settle();
  }

  function waitingText(): string {
    return host.querySelector('.jp-dm-Approval .jp-dm-Code')!.textContent!;
  }

  /** Writes into the field of a cell or a question that waits. */
  async function rewrite(text: string): Promise<void> {
    const field = host.querySelector(
      '.jp-dm-Approval textarea, .jp-dm-Waiting-input'
    )!;
    await act(async () => {
      const { set } = Object.getOwnPropertyDescriptor(
        HTMLTextAreaElement.prototype,
        'value'
      )!;
      set!.call(field, text);
      field.dispatchEvent(new Event('input', { bubbles: true }));
    });
  }

  it('says in one sentence what is safe, and the layers behind a click', async () => {
    await show();
    expect(one('dm-safe').textContent).toContain('safe to try');
    const details = one('dm-details') as HTMLDetailsElement;
    expect(details.open).toBe(false);
    expect(details.textContent).toContain('Nothing.');
    expect(details.textContent).toContain('landlock');
    expect(details.textContent).toContain('Missing here: cgroup');
    expect(await violations()).toEqual([]);
  });

  it('calls nothing safe that no layer holds', async () => {
    const containment = { active: ['landlock'], missing: ['late_seccomp'] };
    const problem = { text: 'The network is open.', remedy: 'Close it.' };
    analyst.status = { ...STATUS, containment, problems: [problem] };
    await show();
    none('dm-safe');
    expect(one('dm-welcome').textContent).toContain('The network is open.');
  });

  it('offers questions about a file at hand, which are not sent yet', async () => {
    await show();
    await click('dm-example');
    expect(analyst.drafts.get(PATH)).toEqual({
      text: 'Which day in sales.csv is best?',
      files: ['work/sales.csv'],
      variables: []
    });
    expect(analyst.said).toEqual([]);
  });

  it('reads no file for a panel that nobody has looked at', async () => {
    await show({ wasShown: false });
    none('dm-examples');
  });

  it('keeps Send off until a model is set up, and says so', async () => {
    analyst.status = NO_MODEL;
    await show();
    await type('How many?');
    expect((one('dm-send') as HTMLButtonElement).disabled).toBe(true);
    expect(one('dm-why-not').textContent).toContain('until a model is set up');
    await press('Enter');
    expect(analyst.said).toEqual([]);
    expect(await violations()).toEqual([]);
  });

  it('downloads a model, shows how far it is, and cancels', async () => {
    analyst.status = NO_MODEL;
    await show();
    expect(one('dm-download').textContent).toBe('Download (1.1 GB)');
    await click('dm-download');
    expect(one('dm-setup').textContent).toContain('420 of 1,117 MB');
    expect((one('dm-progress') as HTMLProgressElement).value).toBe(420_000_000);
    expect(await violations()).toEqual([]);
    await click('dm-cancel-download');
    expect(one('dm-download').textContent).toContain('Continue the download');
    expect(analyst.said).toEqual([
      ['startDownload', 'small'],
      ['cancelDownload', 'small']
    ]);
  });

  it('goes on looking at a download after a look that failed, and says so meanwhile', async () => {
    analyst.status = NO_MODEL;
    const { rest } = analyst as unknown as { rest: { model: unknown } };
    const look = rest.model as () => Promise<IModelState>;
    let looks = 0;
    await show();
    await click('dm-download');
    rest.model = async () => {
      looks += 1;
      if (looks === 1) {
        throw new Error('502 Bad gateway');
      }
      return look();
    };
    analyst.setup = {
      ...analyst.setup,
      download: { ...DOWNLOAD, done_bytes: 840_000_000 }
    };
    const pass = async (test: () => boolean) => {
      for (let count = 0; count < 100 && !test(); count += 1) {
        await settle();
      }
    };
    await pass(() => looks === 1);
    await settle();
    expect(one('dm-setup-error').textContent).toContain('502');
    await pass(() => looks > 1);
    await settle();
    expect((one('dm-progress') as HTMLProgressElement).value).toBe(840_000_000);
    none('dm-setup-error');
  });

  it('says why an endpoint could not be forgotten', async () => {
    const [model] = STATUS.models;
    const name = FAR.endpoints[0].name;
    analyst.status = {
      ...STATUS,
      models: [{ ...model, name, is_local: false }],
      default_model: name
    };
    analyst.setup = FAR;
    Object.assign(analyst.rest, {
      forgetEndpoint: async () => {
        throw new Error('the settings fix the endpoint');
      }
    });
    await show();
    await click('dm-forget-endpoint');
    expect(host.textContent).toContain('The settings fix the endpoint');
  });

  it('says first that the engine is missing, and by which command it comes', async () => {
    analyst.status = NO_MODEL;
    const obstacle = {
      kind: 'engine',
      text: 'A package is missing.',
      command: 'pip install it'
    } as const;
    analyst.setup = { ...SETUP, obstacle };
    await show();
    none('dm-download');
    expect(one('dm-setup').textContent).toContain('pip install it');
    expect(await violations()).toEqual([]);
  });

  it('takes an endpoint that answers, and says why one was not taken', async () => {
    analyst.status = NO_MODEL;
    analyst.choices.model = 'small';
    await show();
    const fill = (url: string) =>
      Object.entries({ url, model: 'big', key: 'secret' }).forEach(
        ([name, value]) => {
          (one(`dm-endpoint-${name}`) as HTMLInputElement).value = value;
        }
      );
    fill('http://wrong/v1');
    await click('dm-connect');
    expect(one('dm-setup-error').textContent).toContain('Nothing answers');
    fill('http://right/v1');
    await click('dm-connect');
    none('dm-setup');
    expect(analyst.choices.model).toBe('');
    expect(analyst.said).toEqual([
      ['setEndpoint', 'http://wrong/v1', 'big', 'secret'],
      ['setEndpoint', 'http://right/v1', 'big', 'secret'],
      ['refreshStatus']
    ]);
    expect((one('dm-send') as HTMLButtonElement).disabled).toBe(true);
    await type('How many?');
    expect((one('dm-send') as HTMLButtonElement).disabled).toBe(false);
  });

  it('fills in the address of a service, and says what is left to fill in', async () => {
    analyst.setup = FAR;
    await show({ page: 'models' });
    expect(value('url')).toBe('http://far/v1');
    expect(value('preset')).toBe('');
    await choose('azure');
    expect(value('url')).toBe('https://RESOURCE.openai.azure.com/openai/v1');
    expect(one('dm-blank').textContent).toContain('Replace RESOURCE');
    await fill('url', 'https://mine.openai.azure.com/openai/v1');
    expect(one('dm-blank').textContent).toBe('');
    expect(value('preset')).toBe('azure');
    await choose('');
    expect(value('url')).toBe('');
    expect(await violations()).toEqual([]);
  });

  it('lists the endpoint’s models in the field of the name', async () => {
    await show({ page: 'models' });
    await click('dm-list-models');
    expect(analyst.said).toEqual([]);
    await fill('url', 'http://wrong/v1');
    await fill('key', 'secret');
    await click('dm-list-models');
    expect(one('dm-setup-error').textContent).toContain('refuses the key');
    await fill('url', 'http://right/v1');
    one('dm-list-models').focus();
    await click('dm-list-models');
    none('dm-setup-error');
    const names = one('dm-endpoint-models').querySelectorAll('option');
    expect([...names].map(name => name.value)).toEqual(['big', 'small']);
    expect(one('dm-endpoint-said').textContent).toContain('2 models');
    expect(document.activeElement).toBe(one('dm-endpoint-model'));
    expect(analyst.said).toEqual([
      ['listModels', 'http://wrong/v1', 'secret'],
      ['listModels', 'http://right/v1', 'secret']
    ]);
    await fill('url', 'http://other/v1');
    expect(one('dm-endpoint-models').childElementCount).toBe(0);
  });

  it('tests an endpoint, and says in words what it can do', async () => {
    analyst.setup = FAR;
    await show({ page: 'models' });
    analyst.said.length = 0;
    await click('dm-test-endpoint');
    const rows = one('dm-abilities').querySelectorAll('tbody tr');
    expect([...rows].map(row => row.children[1].textContent)).toEqual([
      'yes',
      'no',
      'not known'
    ]);
    expect(one('dm-endpoint-said').getAttribute('role')).toBe('status');
    expect(one('dm-endpoint-said').textContent).toContain('answers');
    expect(analyst.said).toEqual([
      ['testEndpoint', 'http://far/v1', 'far', '']
    ]);
    expect(await violations()).toEqual([]);
    await fill('model', 'other');
    none('dm-abilities');
  });

  it('drops what comes of fields that have changed since', async () => {
    analyst.setup = FAR;
    let answer = () => undefined as void;
    analyst.answered = new Promise(resolve => (answer = resolve));
    await show({ page: 'models' });
    one('dm-test-endpoint').focus();
    await click('dm-test-endpoint');
    const button = one('dm-test-endpoint');
    expect(button.getAttribute('aria-disabled')).toBe('true');
    expect(document.activeElement).toBe(button);
    await fill('model', 'other');
    answer();
    await settle();
    none('dm-abilities');
    expect(one('dm-endpoint-said').textContent).toBe('');
    expect(button.getAttribute('aria-disabled')).toBe('false');
  });

  it('opens models and keys beside the picker, and gives the focus back', async () => {
    analyst.setup = FAR;
    await show();
    await click('dm-models-open');
    await show({ page: 'models' });
    expect(one('dm-models-open').getAttribute('aria-expanded')).toBe('true');
    expect(document.activeElement?.textContent).toBe('Models and keys');
    expect(one('dm-kept-endpoint').textContent).toContain(
      'far http://far/v1In use, with a key'
    );
    await fill('key', 'new');
    await click('dm-connect');
    expect(one('dm-endpoint-said').textContent).toContain('Connected. far');
    expect(value('key')).toBe('');
    await click('dm-kept-forget');
    expect(analyst.said).toContainEqual([
      'forgetEndpoint',
      'http://far/v1',
      'far'
    ]);
    none('dm-kept');
    await click('dm-models-close');
    expect(pages).toEqual(['models', 'runs']);
    expect(document.activeElement).toBe(one('dm-models-open'));
  });

  it('lists the kept endpoints, uses one and forgets one', async () => {
    analyst.setup = MORE;
    analyst.choices.model = 'far @ near.example/v1';
    await show({ page: 'models' });
    const items = () => all('dm-kept-endpoint').map(item => item.textContent);
    expect(items()).toEqual([
      expect.stringContaining('In use, with a key'),
      expect.stringContaining('without a key'),
      expect.stringContaining('connect it again')
    ]);
    const uses = () => all('dm-kept-use');
    const pressed = () => uses().map(use => use.getAttribute('aria-pressed'));
    expect(pressed()).toEqual(['true', 'false', 'false']);
    expect(uses()[1].getAttribute('aria-label')).toBe(
      'Use far at https://near.example/v1'
    );
    expect(await violations()).toEqual([]);
    uses()[1].focus();
    await act(async () => uses()[1].click());
    expect(pressed()).toEqual(['false', 'true', 'false']);
    expect(document.activeElement).toBe(uses()[1]);
    expect(analyst.choices.model).toBe('');
    expect(one('dm-kept-said').textContent).toBe(
      'far at https://near.example/v1 answers from now on.'
    );
    analyst.choices.model = 'far @ http://far/v1';
    await act(async () => all('dm-kept-forget')[0].click());
    expect(items().length).toBe(2);
    // Its questions would go nowhere.
    expect(analyst.choices.model).toBe('');
    expect(document.activeElement?.textContent).toBe('Models and keys');
    expect(analyst.said).toContainEqual([
      'useEndpoint',
      'https://near.example/v1',
      'far'
    ]);
    expect(await violations()).toEqual([]);
  });

  it('says why no endpoint can be set', async () => {
    const why_fixed = 'An administrator has locked it.';
    const endpoints: IModelState['endpoints'] = [];
    analyst.setup = { ...FAR, endpoints, can_set_endpoint: false, why_fixed };
    await show({ page: 'models' });
    expect(one('dm-fixed').textContent).toBe(why_fixed);
    none('dm-endpoint');
    none('dm-kept');
    expect(await violations()).toEqual([]);
  });

  it('says where the key is kept', async () => {
    await show({ page: 'models' });
    expect(one('dm-models').textContent).toContain('kept in a file');
    await act(async () => root.render(null));
    analyst.setup = { ...SETUP, uses_keyring: true };
    await show({ page: 'models' });
    expect(one('dm-models').textContent).toContain('keyring');
  });

  it('does not send an @ that names nothing, but what is chosen instead', async () => {
    const unclear = {
      word: 'sale',
      sentence: '“@sale” names no file and no table here.',
      is_unknown: true,
      candidates: [{ kind: 'file', name: 'work/sales.csv' } as const]
    };
    analyst.meaning = { files: [], variables: [], unclear: [unclear] };
    await show();
    await type('Sum of @sale now');
    await press('Enter');
    expect(analyst.said).toEqual([]);
    expect(one('dm-which-data').textContent).toContain('“@sale” names no file');
    none('dm-without-data');
    expect((one('dm-composer') as HTMLTextAreaElement).value).toBe(
      'Sum of @sale now'
    );
    expect(await violations()).toEqual([]);
    await click('dm-candidate');
    expect(analyst.said).toEqual([
      [
        'ask',
        PATH,
        {
          text: 'Sum of sales.csv now',
          files: ['work/sales.csv'],
          variables: []
        }
      ]
    ]);
    none('dm-which-data');
  });

  it('asks back when the server does not know what a question is about', async () => {
    await show();
    analyst.model.asked(ASK);
    analyst.model.receive({
      kind: 'refused',
      request_id: ASK.request_id,
      reason: 'data',
      message: 'Which data is the question about?',
      files: [],
      candidates: [{ kind: 'variable', name: 'sales' }]
    });
    analyst.drafts.putBack(PATH, ASK);
    await settle();
    expect(one('dm-which-data').textContent).toContain('Which data');
    await click('dm-without-data');
    expect(analyst.said).toEqual([
      [
        'ask',
        PATH,
        { text: 'How many?', files: [], variables: [], withoutData: true }
      ]
    ]);
    none('dm-which-data');
  });

  it('asks back in the notebook of the question only', async () => {
    const answer = await askUnclearly();
    await look('work/other.ipynb');
    await type('Another question');
    await answer();
    none('dm-which-data');
    await look(PATH);
    await click('dm-candidate');
    expect(analyst.said).toMatchObject([
      ['ask', PATH, { text: 'Sum of sales.csv now' }]
    ]);
    expect(analyst.drafts.get('work/other.ipynb').text).toBe(
      'Another question'
    );
  });

  it('keeps a question over a reload while its names are looked up', async () => {
    const kept = () => window.sessionStorage.getItem('waiting');
    const answer = await askUnclearly();
    expect(kept()).toContain('Sum of @sale now');
    await answer();
    // It is in the field again.
    expect(kept()).toBeNull();
  });

  it('loses no question that is not clear where another one is written by then', async () => {
    const answer = await askUnclearly();
    await type('Another question');
    await answer();
    // The field does not hold what this would be about.
    none('dm-which-data');
    expect(analyst.drafts.get(PATH).text).toBe('Another question');
    expect(one('dm-waiting-question').textContent).toBe('Sum of @sale now');
  });

  it('loses no question that can’t be sent where another one is written by then', async () => {
    let answer = (_: boolean) => undefined as void;
    analyst.ask = () => new Promise(resolve => (answer = resolve));
    await show();
    await type('How many?');
    await press('Enter');
    await type('And?');
    answer(false);
    await settle();
    expect(analyst.drafts.get(PATH).text).toBe('And?');
    expect(one('dm-waiting-question').textContent).toBe('How many?');
    expect(analyst.queue.get(PATH).held).toBe('refused');
  });

  it('sends in one notebook while another’s question waits for its kernel', async () => {
    const { ask } = analyst;
    analyst.ask = () => new Promise(() => undefined);
    await show();
    await type('How many?');
    await press('Enter');
    await type('And?');
    expect((one('dm-send') as HTMLButtonElement).disabled).toBe(true);
    analyst.ask = ask;
    await look('work/other.ipynb');
    await type('How much?');
    await press('Enter');
    expect(analyst.said).toMatchObject([
      ['ask', 'work/other.ipynb', { text: 'How much?' }]
    ]);
  });

  it('shows a model of the settings that the server does not list, and what goes to it', async () => {
    analyst.choices.model = 'far-mini';
    await show();
    const picker = one('dm-model') as HTMLSelectElement;
    expect(picker.value).toBe('far-mini');
    expect([...picker.options].map(option => option.text)).toEqual([
      'Small',
      'Far',
      'far-mini'
    ]);
    expect(one('dm-leaving').textContent).toContain('Goes to far-mini');
    analyst.choices.model = 'far';
    await settle();
    expect(picker.options).toHaveLength(2);
  });

  it('makes a notebook beside the file that a question names', async () => {
    analyst.currentPath = '';
    analyst.meaning = { files: ['data/far.csv'], variables: [], unclear: [] };
    await show();
    await type('Sum of far.csv');
    await press('Enter');
    expect(workspace.newNotebook).toHaveBeenCalledWith('data');
    expect(analyst.said).toEqual([
      [
        'ask',
        'work/Untitled.ipynb',
        { text: 'Sum of far.csv', files: ['data/far.csv'], variables: [] }
      ]
    ]);
  });

  it('keeps a question for which no notebook could be made', async () => {
    analyst.currentPath = '';
    analyst.meaning = { files: ['data/far.csv'], variables: [], unclear: [] };
    workspace.newNotebook.mockResolvedValue(null);
    await show();
    await type('Sum of far.csv');
    await press('Enter');
    expect(analyst.said).toEqual([]);
    expect(analyst.drafts.get('').text).toBe('Sum of far.csv');
    expect(host.textContent).toContain('open in another page');
  });

  it('makes no notebook for a question about nothing, and asks back', async () => {
    analyst.currentPath = '';
    await show();
    await type('How many?');
    await press('Enter');
    expect(workspace.newNotebook).not.toHaveBeenCalled();
    expect(one('dm-which-data').textContent).toContain('work/sales.csv');
    await click('dm-without-data');
    expect(workspace.newNotebook).toHaveBeenCalledWith('work');
    expect(analyst.said).toHaveLength(1);
  });

  it('sends with Enter, not with Shift and Enter, nor with Escape', async () => {
    await show();
    await type('How many?');
    await press('Enter', true);
    await press('Escape');
    expect(analyst.said).toEqual([]);
    await press('Enter');
    expect(analyst.said).toEqual([
      ['ask', PATH, { text: 'How many?', files: [], variables: [] }]
    ]);
    expect((one('dm-composer') as HTMLTextAreaElement).value).toBe('');
  });

  it('does not send while nothing is connected', async () => {
    analyst.isConnected = false;
    await show();
    await type('How many?');
    await press('Enter');
    expect(analyst.said).toEqual([]);
    expect(one('dm-offline-banner').textContent).toContain('Connecting again');
  });

  it('completes a file after @ with the keyboard', async () => {
    await show();
    await type('Sum up @sa');
    // The search waits for the last key.
    await act(async () => {
      await new Promise(resolve => setTimeout(resolve, 150));
    });
    const shown = one('dm-completion').textContent;
    expect(shown).toContain('sales.csv');
    expect(shown).toContain('DataFrame · 3 × 2 · day');
    expect(await violations()).toEqual([]);
    await press('Enter');
    none('dm-completion');
    expect(one('dm-file-chip').textContent).toContain('work/sales.csv');
    expect(analyst.drafts.get(PATH).text).toBe('Sum up sales.csv ');
  });

  it('completes no file that what was typed since does not fit', async () => {
    await show();
    await type('Sum up @');
    await act(async () => {
      await new Promise(resolve => setTimeout(resolve, 150));
    });
    expect(one('dm-completion').textContent).toContain('sales.csv');
    Object.assign(analyst.rest, { files: () => new Promise(() => undefined) });
    await type('Sum up @other');
    none('dm-completion');
    await press('Enter');
    expect(analyst.drafts.get(PATH).files).toEqual([]);
  });

  it('folds what the model thought', async () => {
    begin();
    analyst.model.receive(cellClosed());
    analyst.model.receive(stepClosed({ reasoning: 'Rows, not columns.' }));
    await show();
    await unfold(0);
    const thoughts = one('dm-step').querySelector('details');
    expect(thoughts?.open).toBe(false);
    expect(thoughts?.textContent).toContain('Rows, not columns.');
    expect(await violations()).toEqual([]);
  });

  it('shows the steps, the answer and what they took', async () => {
    begin();
    analyst.model.receive(cellClosed());
    analyst.model.receive(stepClosed());
    analyst.model.receive(runClosed({ unsupported: ['4711'] }));
    await show();
    expect(one('dm-run').dataset.state).toBe('answered');
    expect(one('dm-step').textContent).toContain('Count the rows');
    expect(one('dm-answer').textContent).toContain('There are **3**.');
    expect(one('dm-run').textContent).toContain(
      'Not found in the outputs: 4711'
    );
    expect(one('dm-meter').textContent).toBe('10 s');
    expect(one('dm-meter').title).toBe(
      '10 s · 2 steps · 1 cell · 80 of 20,000 tokens'
    );
    expect(await violations()).toEqual([]);
    await click('dm-undo');
    await click('dm-retry');
    expect(analyst.said).toEqual([
      ['undo', RUN],
      ['ask', PATH, { text: 'How many?', files: [], variables: [] }]
    ]);
  });

  it('leads from a number of the answer to its cell, and marks what is doubtful', async () => {
    begin();
    analyst.model.receive(cellClosed());
    analyst.model.receive(stepClosed());
    analyst.model.receive(
      runClosed({
        answer: 'In all 3 of 33 are on board 😀, 3 again, 12 % and 99.',
        unsupported: ['3', '99'],
        numbers: [
          numberOf('3', 7, { cell_id: 'cell-1' }),
          numberOf('33', 12),
          numberOf('3', 31, {
            cell_id: 'cell-1',
            verdict: 'mismatched',
            why: '3 is for Adelie, not Gentoo'
          }),
          numberOf('12 %', 40, {
            cell_id: 'cell-1',
            verdict: 'derived',
            why: '3 / 25'
          }),
          numberOf('99', 49, { verdict: 'unsupported' })
        ]
      })
    );
    await show();
    const marked = [
      ...one('dm-answer').querySelectorAll<HTMLElement>('.jp-dm-Number')
    ];
    expect(marked.map(each => [each.tagName, each.textContent])).toEqual([
      ['BUTTON', '3'],
      ['BUTTON', '3'],
      ['BUTTON', '12 %'],
      ['SPAN', '99']
    ]);
    expect(marked[2].title).toContain('3 / 25');
    expect(one('dm-answer').textContent).toContain(
      'In all 3 of 33 are on board 😀, 3 again, 12 % and 99.'
    );
    expect(one('dm-run').textContent).toContain(
      'At odds with the outputs: 3 (3 is for Adelie, not Gentoo)'
    );
    expect(one('dm-run').textContent).toContain(
      'Not found in the outputs: 99.'
    );
    marked[0].focus();
    expect(document.activeElement).toBe(marked[0]);
    analyst.panel = (() => null) as never;
    await act(async () => marked[0].click());
    await settle();
    expect(host.textContent).toContain('not in the notebook any more');
    expect(await violations()).toEqual([]);
  });

  it('shows the code and what it printed and drew, once a step is unfolded', async () => {
    begin();
    analyst.model.receive(operated(5, printed('cell-1', '3 rows')));
    const data = { 'image/png': 'AAAA', 'text/plain': '<Axes: month>' };
    const output = { output_type: 'display_data', data, metadata: {} };
    analyst.model.receive(
      operated(6, { op: 'append_output', cell_id: 'cell-1', output })
    );
    analyst.model.receive(cellClosed({ seq: 7 }));
    analyst.model.receive(stepClosed({ seq: 8, thought: '' }));
    await show();
    none('dm-outputs');
    await unfold(0);
    expect(one('dm-step').textContent).toContain('print(1)');
    const shown = one('dm-outputs');
    expect(shown.textContent).toBe('3 rows');
    const image = shown.querySelector('img');
    expect(image?.src).toBe('data:image/png;base64,AAAA');
    expect(image?.alt).toBe('<Axes: month>');
    expect(await violations()).toEqual([]);
    await unfold(0);
    none('dm-outputs');
  });

  it('goes to the cell by a click on the step’s row', async () => {
    begin();
    analyst.model.receive(cellClosed());
    const looked: string[] = [];
    analyst.panel = ((path: string) => {
      looked.push(path);
      return null;
    }) as never;
    await show();
    const row = one('dm-step').querySelector<HTMLElement>('.jp-dm-Step-row');
    await act(async () => row?.click());
    await settle();
    expect(looked).toEqual([PATH]);
    expect(host.textContent).toContain('not in the notebook any more');
  });

  it('shows one answer where the first was sent back', async () => {
    analyst.model.receive(runOpened());
    analyst.model.receive(stepOpened(2));
    analyst.model.receive(stepClosed({ seq: 3, action: 'answer' }));
    analyst.model.receive(stepOpened(4, 2));
    analyst.model.receive(stepClosed({ seq: 5, step: 2, action: 'answer' }));
    analyst.model.receive(runClosed({ cells: 0 }));
    await show();
    const rows = [...host.querySelectorAll('.jp-dm-Step-title')];
    expect(rows.map(row => row.textContent)).toEqual([
      'Drafted an answer',
      'Checked the answer again'
    ]);
  });

  it('offers the rest in a menu, which the arrow keys go through', async () => {
    begin();
    analyst.model.receive(runClosed());
    await show();
    expect(one('dm-more').getAttribute('aria-expanded')).toBe('false');
    await click('dm-more');
    const entries = [
      ...host.querySelectorAll<HTMLElement>('[role="menuitem"]')
    ];
    expect(document.activeElement).toBe(entries[0]);
    expect(host.querySelector('.jp-dm-Menu')?.textContent).toContain(
      '80 of 20,000 tokens'
    );
    expect(await violations()).toEqual([]);
    const strike = async (key: string) =>
      act(async () => {
        document.activeElement?.dispatchEvent(
          new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true })
        );
      });
    await strike('ArrowUp');
    expect(document.activeElement).toBe(entries[entries.length - 1]);
    await strike('Escape');
    expect(host.querySelector('[role="menu"]')).toBeNull();
    expect(document.activeElement).toBe(one('dm-more'));
    await click('dm-more');
    await act(async () =>
      host.querySelector<HTMLElement>('[role="menuitem"]')?.click()
    );
    expect(analyst.drafts.get(PATH).text).toBe('How many?');
  });

  it('asks again about the same variables, which no try in a fresh kernel has', async () => {
    analyst.model.receive(runOpened({ variables: ['sales'] }));
    analyst.model.receive(runClosed({ seq: 2 }));
    await show();
    none('dm-try-harder');
    await click('dm-retry');
    expect(analyst.said).toEqual([
      ['ask', PATH, { text: 'How many?', files: [], variables: ['sales'] }]
    ]);
  });

  it('tries harder once the person has seen what it costs', async () => {
    begin();
    analyst.model.receive(runClosed());
    await show();
    const dialog = () => document.querySelector('.jp-Dialog');
    await click('dm-try-harder');
    expect(dialog()?.textContent).toContain(
      'The last answer took 80 tokens and 10 s; this takes about 240 tokens and about 30 s at most.'
    );
    expect(dialog()?.textContent).toContain('Nothing leaves this machine.');
    await answerDialog('.jp-mod-reject');
    expect(dialog()).toBeNull();
    expect(analyst.said).toEqual([]);
    await click('dm-try-harder');
    await answerDialog('.jp-mod-accept');
    expect(analyst.said).toEqual([
      ['ask', PATH, { text: 'How many?', files: [], tries: 3 }]
    ]);
  });

  it('says of several tries how many there are and how many agree', async () => {
    analyst.model.receive(runOpened({ tries: 3 }));
    const others = ['There are **4**.'];
    analyst.model.receive(runClosed({ seq: 2, agreeing: 2, tries: 3, others }));
    await show();
    expect(one('dm-tries').textContent).toBe('up to 3 attempts');
    expect(one('dm-agreeing').textContent).toBe('2 of 3 attempts agree');
    expect(one('dm-other').textContent).toBe(
      'Another attempt says: There are **4**.'
    );
    expect(await violations()).toEqual([]);
  });

  it('says in one line what a run does, and why one has no answer', async () => {
    analyst.model.receive(runOpened());
    await show();
    expect(one('dm-status').textContent).toContain('Thinking…');
    analyst.model.receive(stepOpened(2));
    analyst.model.receive(operated(3, insertCell('cell-1')));
    analyst.model.receive(cellOpened());
    await settle();
    expect(one('dm-status').textContent).toContain('Running the cell…');
    analyst.model.receive(
      runClosed({ stop: 'fault', answer: null, turns: 0, cells: 0, tokens: 0 })
    );
    await settle();
    none('dm-status');
    none('dm-copy');
    expect(one('dm-run').textContent).toContain('an unexpected error occurred');
    expect(one('dm-retry').textContent).toBe('Ask again');
    expect(one('dm-meter').title).toBe('10 s · 1 step');
  });

  it('neither tries harder without an answer nor without a server', async () => {
    begin();
    await show();
    none('dm-try-harder');
    analyst.isConnected = false;
    analyst.model.receive(runClosed());
    await settle();
    expect((one('dm-try-harder') as HTMLButtonElement).disabled).toBe(true);
    none('dm-tries');
    none('dm-agreeing');
  });

  it('keeps what could not be asked again, and says why', async () => {
    begin();
    analyst.model.receive(runClosed());
    analyst.isConnected = false;
    await show();
    const retry = () => one('dm-retry') as HTMLButtonElement;
    expect(retry().disabled).toBe(true);
    analyst.isConnected = true;
    await act(async () => analyst.stateChanged.emit());
    expect(retry().disabled).toBe(false);
    // The connection goes while the question is on its way.
    analyst.ask = async () => false;
    await click('dm-retry');
    expect(one('dm-composer').textContent).toBe('How many?');
    expect(host.textContent).toContain('no connection to the analyst');
    await click('dm-try-harder');
    await answerDialog('.jp-mod-accept');
    const [kept] = analyst.queue.get(PATH).waiting;
    expect(kept.question).toMatchObject({ text: 'How many?', tries: 3 });
  });

  it('keeps its end in sight while a run works and its answer is drawn, not after a click', async () => {
    const observers: (() => void)[] = [];
    class Observer {
      constructor(callback: () => void) {
        observers.push(callback);
      }
      observe(): void {}
      disconnect(): void {}
    }
    const before = globalThis.ResizeObserver;
    Object.assign(globalThis, { ResizeObserver: Observer });
    begin();
    await show();
    Object.assign(globalThis, { ResizeObserver: before });
    const frame = host.querySelector('.jp-dm-Scroller') as HTMLElement;
    const grow = (height: number) => {
      Object.defineProperty(frame, 'scrollHeight', {
        value: height,
        configurable: true
      });
      observers.forEach(callback => callback());
    };
    await unfold(0);
    grow(500);
    expect(frame.scrollTop).toBe(500);
    await act(async () => {
      analyst.model.receive(cellClosed());
      analyst.model.receive(runClosed());
    });
    await settle();
    grow(900);
    expect(frame.scrollTop).toBe(900);
    await unfold(0);
    grow(1400);
    expect(frame.scrollTop).toBe(900);
  });

  it('stops what is done before a question is sent', async () => {
    const stop = jest.fn();
    analyst.model.preparing(ASK, 'Running cell 1 of 2 again…', stop);
    await show();
    await click('dm-stop-preparing');
    expect(stop).toHaveBeenCalled();
    analyst.model.asked(ASK);
    await settle();
    none('dm-stop-preparing');
  });

  it('stops a run, and says at once that it does', async () => {
    begin();
    analyst.stop = runId => {
      analyst.model.stopping(runId as string);
      return analyst.said.push(['stop', runId]);
    };
    await show();
    none('dm-send');
    await click('dm-stop');
    expect(one('dm-stop').textContent).toBe('Stopping…');
    expect(analyst.said).toEqual([['stop', RUN]]);
  });

  it('lets a waiting cell be run, changed or left out', async () => {
    begin('it writes a file');
    await show();
    expect(one('dm-step').textContent).toContain('It writes a file');
    expect(host.querySelector('.jp-dm-Unseen')?.textContent).toContain(
      'A cell waits for you'
    );
    expect(await violations()).toEqual([]);
    await click('dm-approve');
    await click('dm-skip');
    await click('dm-edit');
    await click('dm-approve');
    expect(analyst.said).toEqual([
      ['decide', RUN, 'cell-1', 'approve', 'print(1)'],
      ['decide', RUN, 'cell-1', 'skip'],
      ['decide', RUN, 'cell-1', 'approve', 'print(1)']
    ]);
  });

  it('shows a waiting cell to the letter', async () => {
    const source = "# ```\nprint('$5 and $6')\n";
    analyst.model.receive(runOpened());
    analyst.model.receive(stepOpened(2));
    analyst.model.receive(operated(3, insertCell('cell-1', source)));
    analyst.model.receive(cellOpened({ waits_because: 'it prints' }));
    await show();
    expect(one('dm-step').querySelector('.jp-dm-Code')?.textContent).toContain(
      source
    );
  });

  it('shows a waiting cell as it is in the notebook, and runs what it shows', async () => {
    const model = openNotebook();
    begin('it writes a file');
    await show();
    expect(waitingText()).toContain('print(1)');
    none('dm-changed-in-notebook');
    applyOperation(insertCell('cell-1'), model);
    const cell = model.sharedModel.cells[model.sharedModel.cells.length - 1];
    await act(async () => cell.setSource('remove("all")'));
    await settle();
    expect(waitingText()).toContain('remove("all")');
    expect(waitingText()).not.toContain('print(1)');
    expect(one('dm-changed-in-notebook').textContent).toContain(
      'as you changed it in the notebook'
    );
    await click('dm-approve');
    expect(analyst.said).toEqual([
      ['decide', RUN, 'cell-1', 'approve', 'remove("all")']
    ]);
  });

  it('shows the signs of a waiting cell that hide or turn the writing around', async () => {
    const hidden = 'x = "a\u202e\u2066# b\u2069"\u200b\u3164';
    beginWith(`${hidden}\n\tprint("\u2714\ufe0f")`, 'it prints');
    await show();
    expect(waitingText()).toContain(
      'x = "a\\u{202e}\\u{2066}# b\\u{2069}"\\u{200b}\\u{3164}\n\tprint("\u2714\ufe0f")'
    );
    await click('dm-edit');
    const said = one('dm-panel').querySelector('.jp-dm-Approval [role=status]');
    expect(said?.textContent).toBe(
      'This text has invisible characters: \\u{202e}, \\u{2066}, \\u{2069}, \\u{200b}, \\u{3164}'
    );
  });

  it('shows joined letters and signs of a waiting cell as they are written', async () => {
    const joined = [
      '\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645',
      '\u0915\u094d\u200d\u0937',
      '\u{1f468}\u200d\u{1f469}\u200d\u{1f467}',
      '\u2764\ufe0f\u200d\u{1f525}',
      '\u{1f9d1}\u{1f3fd}\u200d\u{1f4bb}'
    ].join(' ');
    beginWith(`x = "${joined}"  # a\u200cb\u200d "\u200d`, 'it prints');
    await show();
    expect(waitingText()).toContain(
      `x = "${joined}"  # a\\u{200c}b\\u{200d} "\\u{200d}`
    );
  });

  it('keeps what the person changes in a waiting cell while they look elsewhere', async () => {
    begin('it writes a file');
    await show();
    await click('dm-edit');
    await rewrite('print("mine")');
    await look('work/other.ipynb');
    none('dm-approve');
    await look(PATH);
    expect(one('dm-approve').textContent).toBe('Run the edited cell');
    await click('dm-approve');
    expect(analyst.said).toEqual([
      ['decide', RUN, 'cell-1', 'approve', 'print("mine")']
    ]);
    await click('dm-edit');
    await look('work/other.ipynb');
    await look(PATH);
    expect(one('dm-approve').textContent).toBe('Run');
  });

  it('unfolds a step that the person has folded, once it waits for them', async () => {
    analyst.model.receive(runOpened());
    analyst.model.receive(stepOpened(2));
    await show();
    await unfold(0);
    analyst.model.receive(operated(3, insertCell('cell-1')));
    analyst.model.receive(cellOpened({ waits_because: 'it writes a file' }));
    await settle();
    await click('dm-skip');
    expect(analyst.said).toEqual([['decide', RUN, 'cell-1', 'skip']]);
  });

  it('unfolds a run that the person has folded, once it waits for them', async () => {
    analyst.model.receive(runOpened());
    analyst.model.receive(stepOpened(2));
    await show();
    const fold = host.querySelector<HTMLElement>('.jp-dm-StepCount')!;
    await act(async () => fold.click());
    none('dm-step');
    analyst.model.receive(operated(3, insertCell('cell-1')));
    analyst.model.receive(cellOpened({ waits_because: 'it writes a file' }));
    await settle();
    one('dm-approve');
    analyst.model.receive(CELL_APPROVED);
    await settle();
    none('dm-step');
  });

  it.each([
    ['dm-approve', CELL_APPROVED],
    ['dm-skip', cellClosed({ status: 'skipped' })]
  ] as const)('keeps the focus at the step after %s', async (...row) => {
    const [button, answer] = row;
    begin('it writes a file');
    await show();
    one(button).focus();
    await click(button);
    expect(document.activeElement).toBe(one(button));
    analyst.model.receive(answer);
    await settle();
    none(button);
    expect(document.activeElement).toBe(
      one('dm-step').querySelector('.jp-dm-Step-toggle')
    );
  });

  it('keeps the focus at a run that folds again when a cell is decided on', async () => {
    analyst.model.receive(runOpened());
    analyst.model.receive(stepOpened(2));
    await show();
    const fold = host.querySelector<HTMLElement>('.jp-dm-StepCount')!;
    await act(async () => fold.click());
    analyst.model.receive(operated(3, insertCell('cell-1')));
    analyst.model.receive(cellOpened({ waits_because: 'it writes a file' }));
    await settle();
    one('dm-approve').focus();
    analyst.model.receive(CELL_APPROVED);
    await settle();
    none('dm-step');
    expect(document.activeElement).toBe(fold);
  });

  it('hands the focus to the question when a button goes that held it', async () => {
    analyst.model.preparing(ASK, 'Running cell 1 of 2 again…', () => undefined);
    await show();
    one('dm-stop-preparing').focus();
    analyst.model.settle(PATH);
    await settle();
    expect(document.activeElement).toBe(one('dm-composer'));
    analyst.model.notify(PATH, 'The kernel ended.');
    await settle();
    const dismiss = host.querySelector<HTMLElement>('.jp-dm-Banner button')!;
    dismiss.focus();
    await act(async () => dismiss.click());
    await settle();
    expect(document.activeElement).toBe(one('dm-composer'));
  });

  it('leaves the focus where the person writes when a cell is decided on', async () => {
    begin('it writes a file');
    await show();
    one('dm-composer').focus();
    analyst.model.receive(CELL_APPROVED);
    await settle();
    none('dm-approve');
    expect(document.activeElement).toBe(one('dm-composer'));
  });

  it('tells a screen reader of a refusal, a dead kernel and a lost connection', async () => {
    await show();
    // What comes into a region is told only where the region was there before.
    const region = host.querySelector('.jp-dm-Banners');
    expect(region?.getAttribute('role')).toBe('status');
    analyst.model.asked(ASK);
    analyst.model.receive({
      kind: 'refused',
      request_id: ASK.request_id,
      reason: 'busy',
      message: 'a run goes on',
      files: [],
      candidates: []
    });
    analyst.model.notify(PATH, 'the kernel has died');
    analyst.isConnected = false;
    await act(async () => analyst.stateChanged.emit());
    await settle();
    expect(region?.textContent).toContain('A run goes on');
    expect(region?.textContent).toContain('The kernel has died');
    expect(region?.textContent).toContain('Connecting again');
    expect(await violations()).toEqual([]);
  });

  it('says which limit a cell met, and offers to fill the kernel again', async () => {
    begin();
    analyst.model.receive(
      cellClosed({
        status: 'memory',
        message: 'stopped at 1.5 GB',
        state_lost: true
      })
    );
    await show();
    expect(one('dm-step').textContent).toContain('Stopped at 1.5 GB');
    const buttons = Array.from(one('dm-step').querySelectorAll('button'));
    await act(async () =>
      buttons.find(one => one.textContent?.includes('again'))?.click()
    );
    expect(analyst.said).toEqual([['rebuild', RUN]]);
  });

  it('says of a cell that has run that output was cut, and how much', async () => {
    begin();
    const message = '9,000 bytes of output were cut: the limit is 4 bytes.';
    analyst.model.receive(cellClosed({ cut_bytes: 9000, message }));
    analyst.model.receive(stepClosed());
    analyst.model.receive(stepOpened(7, 2));
    await show();
    const [step] = Array.from(
      document.querySelectorAll('[data-testid="dm-step"]')
    );
    expect(step.textContent).toContain('output cut');
    expect(step.textContent).toContain(message);
  });

  it('says what a cell did to the data, and that an answer rests on nothing', async () => {
    begin();
    const facts = ["no row has Country == 'Great Britain' (of 541,909)"];
    const rests_on = `This answer rests on a selection without rows: ${facts[0]}.`;
    analyst.model.receive(cellClosed({ facts }));
    analyst.model.receive(stepClosed());
    analyst.model.receive(runClosed({ rests_on }));
    await show();
    expect(one('dm-rests-on').textContent).toBe(rests_on);
    await unfold(0);
    expect(one('dm-facts').textContent).toBe(facts[0]);
    expect(await violations()).toEqual([]);
  });

  it('shows the answer as people read it, and what a cleaning changed below it', async () => {
    begin();
    const ending = [
      'Saved people-clean.csv: 4 of 6 rows kept; 2 duplicate rows dropped.'
    ];
    const answer = 'The mean is 3.4567890123 kg.';
    const shown = 'The mean is 3.46 kg.';
    const full = '3.4567890123';
    const numbers = [numberOf('3.46', 12, { cell_id: 'cell-1', full })];
    analyst.model.receive(cellClosed());
    analyst.model.receive(stepClosed());
    analyst.model.receive(runClosed({ answer, shown, ending, numbers }));
    await show();
    expect(one('dm-answer').textContent).toContain(shown);
    expect(one('dm-answer').textContent).not.toContain(full);
    expect(one('dm-ending').textContent).toBe(ending[0]);
    const link = document.querySelector<HTMLElement>('.jp-dm-Number');
    expect(link?.title).toContain(full);
    expect(await violations()).toEqual([]);
  });

  it('says that another tab writes, and takes over', async () => {
    analyst.model.receive({
      kind: 'attached',
      notebook_path: PATH,
      is_owner: false,
      is_shared: false,
      in_file: {}
    });
    await show();
    await act(async () =>
      one('dm-owner-banner').querySelector('button')?.click()
    );
    expect(analyst.said).toEqual([['takeOver', PATH]]);
  });

  it('draws only the steps that changed', async () => {
    begin();
    analyst.model.receive(cellClosed());
    analyst.model.receive(stepClosed());
    analyst.model.receive(stepOpened(7, 2));
    await show();
    const [first] = host.querySelectorAll('[data-testid="dm-step"]');
    const seen = jest.fn();
    const observer = new MutationObserver(seen);
    observer.observe(first, { subtree: true, childList: true });
    const delta = { kind: 'text_delta', run_id: RUN, seq: 0, step: 2 } as const;
    analyst.model.receive({ ...delta, text: 'One, ', is_whole: false });
    await settle();
    const text = host.querySelector('.jp-dm-Streaming')?.firstChild;
    analyst.model.receive({ ...delta, text: 'two', is_whole: false });
    await settle();
    observer.disconnect();
    expect(seen).not.toHaveBeenCalled();
    // The same text node has grown.
    expect(host.querySelector('.jp-dm-Streaming')?.firstChild).toBe(text);
    expect(text?.textContent).toBe('One, two');
  });

  it('shows the history', async () => {
    await show({ page: 'history' });
    // The search waits for the last key.
    await act(async () => {
      await new Promise(resolve => setTimeout(resolve, 300));
    });
    expect(one('dm-history')).toBeTruthy();
    expect(await violations()).toEqual([]);
  });

  describe('while a run works', () => {
    beforeEach(async () => {
      analyst.model.receive(runOpened());
      await show();
    });

    const asked = () => analyst.said.filter(([word]) => word === 'ask');
    const waiting = () =>
      all('dm-waiting-question').map(one => one.textContent);

    async function queueUp(text: string): Promise<void> {
      await type(text);
      await press('Enter');
      await settle();
    }

    async function click(id: string): Promise<void> {
      await act(async () => all(id)[0].click());
      await settle();
    }

    it('shows a question that waits, says so, and sends it after the answer', async () => {
      await queueUp('And by month?');
      expect(waiting()).toEqual(['And by month?']);
      expect(one('dm-composer').textContent).toBe('');
      expect(host.textContent).toContain('Your question waits for the run.');
      expect(asked()).toEqual([]);
      const { violations } = await axe.run(host);
      expect(violations).toEqual([]);
      await act(async () => analyst.model.receive(runClosed()));
      await settle();
      expect(asked()).toMatchObject([['ask', PATH, { text: 'And by month?' }]]);
      none('dm-waiting');
    });

    it('gives a question back to the field, and to nobody else', async () => {
      await queueUp('first');
      await queueUp('second');
      await click('dm-waiting-take-back');
      expect(one('dm-composer').textContent).toBe('first');
      expect(document.activeElement).toBe(one('dm-composer'));
      await click('dm-waiting-take-back');
      expect(one('dm-composer').textContent).toBe('first');
      none('dm-waiting');
      expect(host.textContent).toContain('“second” was taken back');
    });

    it('changes a question in its place, also after a look elsewhere', async () => {
      await queueUp('first');
      await click('dm-waiting-edit');
      await rewrite('better');
      await look('work/other.ipynb');
      none('dm-waiting-input');
      await look(PATH);
      const field = one('dm-waiting-input') as HTMLTextAreaElement;
      expect(field.value).toBe('better');
      await act(async () => {
        field.dispatchEvent(
          new KeyboardEvent('keydown', { key: 'Enter', bubbles: true })
        );
      });
      await settle();
      expect(waiting()).toEqual(['better']);
      expect(document.activeElement).toBe(one('dm-composer'));
    });

    it('keeps the change of a question when the person turns to another one', async () => {
      await queueUp('first');
      await queueUp('second');
      await click('dm-waiting-edit');
      await rewrite('better');
      await click('dm-waiting-edit');
      expect((one('dm-waiting-input') as HTMLTextAreaElement).value).toBe(
        'second'
      );
      expect(waiting()[0]).toBe('better');
    });

    it('sends nothing after a stopped run until the person says so', async () => {
      await queueUp('first');
      await act(async () =>
        analyst.model.receive(runClosed({ stop: 'cancelled' }))
      );
      await settle();
      expect(asked()).toEqual([]);
      expect(one('dm-waiting').textContent).toContain(
        'Not sent, because the run was stopped'
      );
      await click('dm-waiting-send');
      expect(asked()).toHaveLength(1);
    });
  });

  it('says what goes to an endpoint before it does, and lets each part be left out', async () => {
    analyst.choices.model = 'far';
    analyst.told = [
      { kind: 'selection', text: 'The selected cell: a = 1', count: 1 },
      { kind: 'cells', text: '[1] b = 2', count: 3 },
      { kind: 'variables', text: '- df', count: 2 }
    ];
    await show();
    analyst.drafts.addFile(PATH, 'work/sales.csv');
    await type('How many?');
    await act(async () => {
      await new Promise(resolve => setTimeout(resolve, 400));
    });
    const line = one('dm-leaving').querySelector('summary')!.textContent;
    expect(line).toBe(
      'Sends to Far: the question, columns and examples of sales.csv, the selected cell, 3 cells, 2 variables'
    );
    expect(one('dm-leaving').textContent).toContain('[1] b = 2');
    await act(async () => one('dm-tell-cells').click());
    expect(analyst.choices.withheld).toEqual(['cells']);
    await act(async () => one('dm-tell-cells').click());
    expect(analyst.choices.withheld).toEqual([]);
  });

  it('says anew what goes to an endpoint once another cell is selected', async () => {
    analyst.choices.model = 'far';
    analyst.told = [{ kind: 'selection', text: 'a = 1', count: 1 }];
    await show();
    await type('How many?');
    const wait = () =>
      act(async () => {
        await new Promise(resolve => setTimeout(resolve, 400));
      });
    await wait();
    expect(one('dm-leaving').textContent).toContain('a = 1');
    analyst.told = [{ kind: 'selection', text: 'b = 2', count: 1 }];
    analyst.selected = 'b';
    await act(async () => analyst.cellSelected.emit());
    await wait();
    expect(one('dm-leaving').textContent).toContain('b = 2');
  });
});
