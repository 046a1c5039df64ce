import { closeIcon } from '@jupyterlab/ui-components';
import type { TranslationBundle } from '@jupyterlab/translation';
import { useCallback, useEffect, useId, useRef, useState } from 'react';
import type { ReactElement } from 'react';

import { usePanel } from './context';
import { EndpointForm } from './endpointform';
import type { IDownload, IKeptEndpoint, IModelState } from '../channel/rest';

/** How often a download's progress is read. */
const POLL_MS = 500;
const MEGABYTE = 1e6;

/** Brings a model to a server that has none: a download, or an endpoint with its key. */
export function ModelSetup(props: {
  name: string;
  /** Called when an endpoint was set, which ends the set-up. */
  onDone: () => void;
}): ReactElement {
  const { trans } = usePanel();
  const { name, onDone } = props;
  const title = trans.__('Set up a model');
  return (
    <section className="jp-dm-Setup" data-testid="dm-setup" aria-label={title}>
      <h3>{title}</h3>
      <p>
        {trans.__(
          'A language model answers your questions. There is none yet.'
        )}
      </p>
      <Ways name={name} onSet={onDone} />
    </section>
  );
}

/** The same at any time: another endpoint, model or key. */
export function ModelsAndKeys(props: {
  name: string;
  onClose: () => void;
}): ReactElement {
  const { trans } = usePanel();
  const { name, onClose } = props;
  const heading = useRef<HTMLHeadingElement>(null);
  const title = trans.__('Models and keys');
  const focusTop = useCallback(() => heading.current?.focus(), []);
  useEffect(focusTop, [focusTop]);
  return (
    <section className="jp-dm-Setup" data-testid="dm-models" aria-label={title}>
      <div className="jp-dm-Setup-head">
        <h3 ref={heading} tabIndex={-1}>
          {title}
        </h3>
        <button
          type="button"
          className="jp-dm-IconButton"
          data-testid="dm-models-close"
          aria-label={trans.__('Close')}
          title={trans.__('Close')}
          onClick={onClose}
        >
          <closeIcon.react tag="span" />
        </button>
      </div>
      <Ways name={name} onForgotten={focusTop} />
    </section>
  );
}

/** The ways to a model, and what went wrong on them. */
function Ways(props: {
  name: string;
  onSet?: () => void;
  onForgotten?: () => void;
}): ReactElement {
  const { name, onForgotten, onSet } = props;
  const { attempt, error, look, state, work } = useModelState(name);
  return (
    <>
      {state && <OnThisMachine state={state} look={look} work={work} />}
      {state && state.endpoints.length > 0 && (
        <Kept
          endpoints={state.endpoints}
          work={work}
          onUsed={onSet}
          onForgotten={onForgotten}
        />
      )}
      {state?.can_set_endpoint && (
        <EndpointForm
          state={state}
          attempt={attempt}
          work={work}
          onSet={onSet}
        />
      )}
      {state?.why_fixed && <p data-testid="dm-fixed">{state.why_fixed}</p>}
      {error && (
        <p className="jp-dm-Warning" role="alert" data-testid="dm-setup-error">
          {error}
        </p>
      )}
    </>
  );
}

/** The endpoints that are kept: which one answers, and which are kept no longer. */
function Kept(props: {
  endpoints: readonly IKeptEndpoint[];
  work: Work;
  onUsed?: () => void;
  onForgotten?: () => void;
}): ReactElement {
  const { analyst, trans } = usePanel();
  const { endpoints, onForgotten, onUsed, work } = props;
  const { choices, rest } = analyst;
  const title = useId();
  const [said, setSaid] = useState('');
  const use = async ({ base_url, model }: IKeptEndpoint) => {
    if (await work(rest.useEndpoint(base_url, model))) {
      // What was chosen before in the picker is not what the person wants now.
      choices.model = '';
      setSaid(trans.__('%1 at %2 answers from now on.', model, base_url));
      onUsed?.();
    }
  };
  const forget = async ({ base_url, model, name }: IKeptEndpoint) => {
    if (await work(rest.forgetEndpoint(base_url, model))) {
      if (choices.model === name) {
        choices.model = '';
      }
      // Another model answers now, or none.
      await analyst.refreshStatus();
      setSaid(trans.__('%1 at %2 is forgotten.', model, base_url));
      onForgotten?.();
    }
  };
  return (
    <div className="jp-dm-Setup-way" data-testid="dm-kept">
      <h4 id={title}>{trans.__('Kept endpoints')}</h4>
      <ul className="jp-dm-Kept" aria-labelledby={title}>
        {endpoints.map(endpoint => (
          <KeptItem
            key={endpoint.name}
            endpoint={endpoint}
            onUse={() => void use(endpoint)}
            onForget={() => void forget(endpoint)}
          />
        ))}
      </ul>
      <p role="status" data-testid="dm-kept-said">
        {said}
      </p>
    </div>
  );
}

function KeptItem(props: {
  endpoint: IKeptEndpoint;
  onUse: () => void;
  onForget: () => void;
}): ReactElement {
  const { trans } = usePanel();
  const { endpoint, onForget, onUse } = props;
  const { base_url, is_default, model } = endpoint;
  return (
    <li data-testid="dm-kept-endpoint">
      <p>
        <strong>{model}</strong> {base_url}
        <small>{keptWords(endpoint, trans)}</small>
      </p>
      <div className="jp-dm-Buttons">
        <button
          type="button"
          className="jp-dm-Button"
          data-testid="dm-kept-use"
          aria-label={trans.__('Use %1 at %2', model, base_url)}
          aria-pressed={is_default}
          onClick={onUse}
        >
          {trans.__('Use')}
        </button>
        <button
          type="button"
          className="jp-dm-Button"
          data-testid="dm-kept-forget"
          aria-label={trans.__('Forget %1 at %2', model, base_url)}
          onClick={onForget}
        >
          {trans.__('Forget')}
        </button>
      </div>
    </li>
  );
}

function keptWords(endpoint: IKeptEndpoint, trans: TranslationBundle): string {
  if (!endpoint.is_usable) {
    return trans.__('The keyring does not return its key: connect it again.');
  }
  const key = endpoint.has_key
    ? trans.__('with a key')
    : trans.__('without a key');
  return endpoint.is_default ? trans.__('In use, %1', key) : key;
}

/** Waits for an answer of the server; `null` for one that failed, whose reason is shown. */
export type Attempt = <T>(question: Promise<T>) => Promise<T | null>;
/** As `Attempt`, for what changes the model's state. */
export type Work = (change: Promise<IModelState>) => Promise<boolean>;

/** Follows what the server says of its model; reads it again while a download works. */
function useModelState(name: string): {
  state: IModelState | null;
  error: string;
  look: () => void;
  attempt: Attempt;
  work: Work;
} {
  const { analyst } = usePanel();
  const [state, setState] = useState<IModelState | null>(null);
  const [error, setError] = useState('');
  /** Why the last look at a download failed. */
  const [missed, setMissed] = useState<{ readonly why: string } | null>(null);
  const take = useCallback(
    async (next: IModelState) => {
      setState(next);
      if (next.is_ready) {
        await analyst.refreshStatus();
      }
    },
    [analyst]
  );
  const attempt: Attempt = useCallback(async question => {
    setError('');
    try {
      return await question;
    } catch (reason) {
      setError(wordsOf(reason));
      return null;
    }
  }, []);
  const work: Work = useCallback(
    async change => {
      const next = await attempt(change);
      if (next !== null) {
        await take(next);
      }
      return next !== null;
    },
    [attempt, take]
  );
  const look = useCallback(
    () => void work(analyst.rest.model(name)),
    [analyst, name, work]
  );
  useEffect(look, [look]);
  const isRunning = state?.download?.state === 'running';
  useEffect(() => {
    if (!isRunning) {
      return;
    }
    const poll = async () => {
      try {
        await take(await analyst.rest.model(name));
        setMissed(null);
      } catch (reason) {
        setMissed({ why: wordsOf(reason) });
      }
    };
    const timer = setTimeout(() => void poll(), POLL_MS);
    return () => clearTimeout(timer);
    // Each new state starts the next wait, and so does a look that failed.
  }, [analyst, isRunning, missed, name, state, take]);
  // What else went wrong meanwhile stays to be read.
  return { state, error: error || (missed?.why ?? ''), look, attempt, work };
}

function wordsOf(reason: unknown): string {
  return (reason as Error).message ?? String(reason);
}

function OnThisMachine(props: {
  state: IModelState;
  look: () => void;
  work: Work;
}): ReactElement | null {
  const { trans } = usePanel();
  const { look, state, work } = props;
  const { local, obstacle } = state;
  if (!obstacle) {
    return null;
  }
  return (
    <div className="jp-dm-Setup-way">
      <h4>{trans.__('On this machine')}</h4>
      {obstacle.kind === 'model' && local ? (
        <Download local={local} download={state.download} work={work} />
      ) : (
        <>
          <p>{obstacle.text}</p>
          <p>
            {trans.__('Run this in a terminal:')}{' '}
            <code>{obstacle.command}</code>
          </p>
          <button type="button" className="jp-dm-Button" onClick={look}>
            {trans.__('Check again')}
          </button>
        </>
      )}
    </div>
  );
}

function Download(props: {
  local: NonNullable<IModelState['local']>;
  download: IDownload | null;
  work: Work;
}): ReactElement {
  const { analyst, trans } = usePanel();
  const { local, work } = props;
  const download = props.download?.name === local.name ? props.download : null;
  const { rest } = analyst;
  if (download?.state === 'running') {
    return (
      <Progress
        download={download}
        onCancel={() => void work(rest.cancelDownload(local.name))}
      />
    );
  }
  const size = sizeWords(local.size_bytes);
  return (
    <>
      <p>
        {trans.__(
          '%1: free, without an account. Nothing leaves this machine.',
          local.title
        )}
      </p>
      {download?.state === 'failed' && (
        <p className="jp-dm-Warning" role="alert">
          {download.error}
        </p>
      )}
      <button
        type="button"
        className="jp-dm-Button jp-mod-accept"
        data-testid="dm-download"
        onClick={() => void work(rest.startDownload(local.name))}
      >
        {download?.state === 'cancelled'
          ? trans.__('Continue the download (%1)', size)
          : trans.__('Download (%1)', size)}
      </button>
    </>
  );
}

function sizeWords(bytes: number): string {
  return bytes < 1000 * MEGABYTE
    ? `${Math.round(bytes / MEGABYTE)} MB`
    : `${(bytes / MEGABYTE / 1000).toFixed(1)} GB`;
}

function Progress(props: {
  download: IDownload;
  onCancel: () => void;
}): ReactElement {
  const { trans } = usePanel();
  const { done_bytes, stage, total_bytes } = props.download;
  const words =
    stage === 'checking'
      ? trans.__('Checking what has arrived…')
      : stage === 'waiting'
        ? trans.__('Another program is downloading it…')
        : trans.__(
            '%1 of %2 MB',
            Math.round(done_bytes / MEGABYTE).toLocaleString(),
            Math.round(total_bytes / MEGABYTE).toLocaleString()
          );
  return (
    <>
      <progress
        aria-label={trans.__('Download of the model')}
        data-testid="dm-progress"
        max={total_bytes}
        value={done_bytes}
      />
      <p>{words}</p>
      <button
        type="button"
        className="jp-dm-Button"
        data-testid="dm-cancel-download"
        onClick={props.onCancel}
      >
        {trans.__('Cancel')}
      </button>
    </>
  );
}
