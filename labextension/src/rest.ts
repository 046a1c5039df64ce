/**
 * What the panel asks the analyst's server for.
 */
import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';

import type { RunMessage } from './protocol.gen';

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
  readonly tokens: number;
  readonly seconds: number;
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

  async variables(notebook: string): Promise<readonly IVariable[]> {
    const search = URLExt.objectToQueryString({ notebook });
    return (await (await this._request('variables', search)).json()).variables;
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

function runPath(runId: string): string {
  return `runs/${encodeURIComponent(runId)}`;
}
