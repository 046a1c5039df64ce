/**
 * What the panel asks the analyst's server for.
 */
import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';

import type {
  IAsk,
  IDataCandidate,
  IContextPart,
  RunMessage
} from '../protocol.gen';

/** A model that can answer. */
export interface IModelInfo {
  readonly name: string;
  readonly label: string;
  /** Whether it runs on the server's machine, so that nothing is sent elsewhere. */
  readonly is_local: boolean;
  readonly is_present: boolean;
  readonly detail: string;
}

/** How the server stands. */
export interface IStatus {
  readonly version: string;
  readonly models: readonly IModelInfo[];
  readonly default_model: string;
  readonly containment: {
    readonly active: readonly string[];
    readonly missing: readonly string[];
  };
  readonly is_shared: boolean;
  readonly problems: readonly {
    readonly text: string;
    readonly remedy: string;
  }[];
}

/** A run in a list. */
export interface IRunSummary {
  readonly run_id: string;
  readonly notebook_path: string;
  readonly question: string;
  readonly files: readonly string[];
  readonly answer: string | null;
  readonly stop: string | null;
  readonly at: number;
  readonly model: string;
  /** Where the model answered; empty for the server's machine. */
  readonly endpoint: string;
  readonly tokens: number;
  readonly seconds: number;
}

/** What became of a notebook that was to be tidied. */
export interface ITidied {
  /** The new notebook. */
  readonly notebook: string;
  readonly kept: readonly string[];
  readonly left_out: readonly string[];
  /** Whether the answer's cells showed what they had shown before. */
  readonly is_same: boolean;
  /** A sentence for the person. */
  readonly words: string;
}

/** A name in the notebook's kernel. */
export interface IVariable {
  readonly name: string;
  readonly kind: string;
  readonly shape: readonly number[];
  readonly columns: readonly {
    readonly name: string;
    readonly dtype: string;
    readonly samples: readonly string[];
  }[];
}

/** A download of a local model. */
export interface IDownload {
  readonly name: string;
  readonly state: 'running' | 'done' | 'cancelled' | 'failed';
  readonly stage: 'waiting' | 'hub' | 'index' | 'checking';
  readonly done_bytes: number;
  readonly total_bytes: number;
  /** Why it failed; empty when it did not. */
  readonly error: string;
}

/** What a model lacks, and how far its set-up is. */
export interface IModelState {
  readonly is_ready: boolean;
  /** What a person can do first; `null` where nothing need be done. */
  readonly obstacle: {
    readonly kind: 'engine' | 'model' | 'unknown';
    readonly text: string;
    readonly command: string;
  } | null;
  /** What can be downloaded. */
  readonly local: {
    readonly name: string;
    readonly title: string;
    readonly size_bytes: number;
  } | null;
  readonly download: IDownload | null;
  readonly endpoint: {
    readonly base_url: string;
    readonly model: string;
    readonly has_key: boolean;
  } | null;
  /** All that were set in the panel. */
  readonly endpoints: readonly IKeptEndpoint[];
  readonly can_set_endpoint: boolean;
  /** Why not; empty where one can be set. */
  readonly why_fixed: string;
  readonly presets: readonly IPreset[];
  /** Whether a new key goes to the system's keyring, not to a file. */
  readonly uses_keyring: boolean;
}

/** An endpoint that was set in the panel. */
export interface IKeptEndpoint {
  /** As the pickers and questions name it. */
  readonly name: string;
  readonly base_url: string;
  readonly model: string;
  readonly has_key: boolean;
  /** Whether it answers whoever chooses no model. */
  readonly is_default: boolean;
  /** Whether its key could be read. */
  readonly is_usable: boolean;
}

/** An endpoint that many people have. */
export interface IPreset {
  readonly name: string;
  readonly title: string;
  readonly base_url: string;
  readonly needs_key: boolean;
  /** The part of the address that the person replaces; empty for none. */
  readonly blank: string;
}

/** Something that an endpoint can do with a model, or not. */
export interface IAbility {
  readonly name: string;
  /** `null` where nobody knows. */
  readonly is_there: boolean | null;
  readonly how: string;
}

/** What a question would tell the model, and of how many cells, variables or files. */
export interface IToldPart extends IContextPart {
  readonly count: number;
}

/** What a question names. */
export interface IMeaning {
  readonly files: readonly string[];
  readonly variables: readonly string[];
  readonly unclear: readonly {
    readonly word: string;
    readonly sentence: string;
    readonly is_unknown: boolean;
    readonly candidates: readonly IDataCandidate[];
  }[];
}

/** A question to begin with. */
export interface IExample {
  readonly question: string;
  readonly file: string;
}

export type ExportFormat = 'notebook' | 'trajectory';

/** The server's REST interface. */
export class AnalystRest {
  constructor(private readonly _settings: ServerConnection.ISettings) {}

  async status(): Promise<IStatus> {
    return (await this._request('status')).json();
  }

  /** Returns runs, newest first; of all notebooks where `notebook` is empty. */
  async runs(notebook: string, query = ''): Promise<readonly IRunSummary[]> {
    const search = URLExt.objectToQueryString({
      ...(notebook ? { notebook } : {}),
      ...(query ? { query } : {})
    });
    return (await (await this._request('runs', search)).json()).runs;
  }

  async messages(runId: string): Promise<readonly RunMessage[]> {
    return (await (await this._request(runPath(runId))).json()).messages;
  }

  async remove(runId: string): Promise<void> {
    await this._request(runPath(runId), '', { method: 'DELETE' });
  }

  /** Returns the run as a file, with the name that the server gives it. */
  async export(
    runId: string,
    format: ExportFormat
  ): Promise<{ name: string; content: Blob }> {
    const search = URLExt.objectToQueryString({ as: format });
    const response = await this._request(`${runPath(runId)}/export`, search);
    const disposition = response.headers.get('Content-Disposition') ?? '';
    const name = /filename="?([^";]+)"?/.exec(disposition)?.[1];
    const ending = format === 'notebook' ? 'ipynb' : 'jsonl';
    return {
      name: name ?? `run-${runId}.${ending}`,
      content: await response.blob()
    };
  }

  /**
   * Writes the tidy copy of a notebook, whose file is what counts; fails with the reason. Returns
   * `null` where the server stopped before.
   *
   * @param onProgress Gets a line before each cell that is run.
   */
  async tidy(
    notebook: string,
    runId: string,
    signal: AbortSignal,
    onProgress: (line: string) => void
  ): Promise<ITidied | null> {
    const body = JSON.stringify({ notebook, run_id: runId });
    const init = { method: 'POST', body, signal };
    const response = await this._request('tidy', '', init);
    for await (const line of jsonLines(response)) {
      const { error, progress, tidied } = line as {
        error?: string;
        progress?: string;
        tidied?: ITidied;
      };
      if (tidied) {
        return tidied;
      }
      if (error) {
        throw new Error(error);
      }
      onProgress(progress ?? '');
    }
    return null;
  }

  async variables(notebook: string): Promise<readonly IVariable[]> {
    const search = URLExt.objectToQueryString({ notebook });
    return (await (await this._request('variables', search)).json()).variables;
  }

  /** Lists data files that fit what was typed, the best first. */
  async files(match: string, near: string): Promise<readonly string[]> {
    const search = URLExt.objectToQueryString({ match, near });
    return (await (await this._request('files', search)).json()).files;
  }

  /** Says what a question names, in a notebook or from a folder. */
  async meaning(given: {
    question: string;
    notebook: string;
    near: string;
    files: readonly string[];
  }): Promise<IMeaning> {
    return (await this._send('meaning', 'POST', given)).json();
  }

  /** Says what a question would tell the model of its notebook; nothing is sent to a model. */
  async context(ask: IAsk): Promise<readonly IToldPart[]> {
    return (await (await this._send('context', 'POST', ask)).json()).parts;
  }

  /** Lists questions about a data file of the folder. */
  async examples(near: string): Promise<readonly IExample[]> {
    const search = URLExt.objectToQueryString({ near });
    return (await (await this._request('examples', search)).json()).examples;
  }

  /** Says what a model lacks; the server's default one without a name. */
  async model(name = ''): Promise<IModelState> {
    const search = URLExt.objectToQueryString({ name });
    return (await this._request('model', search)).json();
  }

  /** Has an endpoint answer from now on; fails with the reason when it does not. */
  async setEndpoint(
    baseUrl: string,
    model: string,
    apiKey: string
  ): Promise<IModelState> {
    const given = { base_url: baseUrl, model, api_key: apiKey };
    return (await this._send('model', 'POST', given)).json();
  }

  /** Lists the models at an address; an empty key is the one kept for it. */
  async listModels(
    baseUrl: string,
    apiKey: string
  ): Promise<readonly string[]> {
    const given = { base_url: baseUrl, api_key: apiKey };
    return (await (await this._send('model/list', 'POST', given)).json())
      .models;
  }

  /** Finds out what an endpoint can do; an empty key is the one kept for it. */
  async testEndpoint(
    baseUrl: string,
    model: string,
    apiKey: string
  ): Promise<readonly IAbility[]> {
    const given = { base_url: baseUrl, model, api_key: apiKey };
    return (await (await this._send('model/test', 'POST', given)).json()).rows;
  }

  /** Has a kept endpoint answer whoever chooses no model. */
  async useEndpoint(baseUrl: string, model: string): Promise<IModelState> {
    const given = { base_url: baseUrl, model };
    return (await this._send('model/use', 'POST', given)).json();
  }

  async forgetEndpoint(baseUrl: string, model: string): Promise<IModelState> {
    const given = { base_url: baseUrl, model };
    return (await this._send('model', 'DELETE', given)).json();
  }

  async startDownload(name: string): Promise<IModelState> {
    const search = URLExt.objectToQueryString({ name });
    return (await this._send(`model/download${search}`, 'POST')).json();
  }

  async cancelDownload(name: string): Promise<IModelState> {
    const search = URLExt.objectToQueryString({ name });
    return (await this._send(`model/download${search}`, 'DELETE')).json();
  }

  private _send(
    path: string,
    method: 'POST' | 'DELETE',
    given?: object
  ): Promise<Response> {
    const body = given === undefined ? undefined : JSON.stringify(given);
    return this._request(path, '', { method, body });
  }

  private async _request(
    path: string,
    search = '',
    init: RequestInit = {}
  ): Promise<Response> {
    const url = URLExt.join(this._settings.baseUrl, 'dm-jupyter', 'api', path);
    const response = await ServerConnection.makeRequest(
      url + search,
      init,
      this._settings
    );
    if (!response.ok) {
      throw await ServerConnection.ResponseError.create(response);
    }
    return response;
  }
}

/** Parses what arrives of a response, a line at a time. */
async function* jsonLines(response: Response): AsyncGenerator<unknown> {
  const reader = response.body!.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    rest += decoder.decode(value, { stream: !done });
    const lines = rest.split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      yield JSON.parse(line);
    }
    if (done) {
      return;
    }
  }
}

function runPath(runId: string): string {
  return `runs/${encodeURIComponent(runId)}`;
}
