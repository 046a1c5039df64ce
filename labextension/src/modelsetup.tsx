import { useCallback, useEffect, useState } from 'react';
import type { FormEvent, ReactElement } from 'react';

import { usePanel } from './context';
import type { IDownload, IModelState } from './rest';

/** How often a download's progress is read. */
const POLL_MS = 500;
const MEGABYTE = 1e6;
/** What the fields may look like when they are filled in. */
const ADDRESS = 'https://api.openai.com/v1';
const MODEL = 'gpt-4.1-mini';

/** Brings a model to a server that has none: a download, or an endpoint with its key. */
export function ModelSetup(props: { name: string }): ReactElement {
  const { trans } = usePanel();
  const { name } = props;
  const { error, look, state, work } = useModelState(name);
  return (
    <section
      className="jp-dm-Setup"
      data-testid="dm-setup"
      aria-label={trans.__('Set up a model')}
    >
      <h3>{trans.__('Set up a model')}</h3>
      <p>
        {trans.__(
          'A language model answers your questions. There is none yet.'
        )}
      </p>
      {state && <OnThisMachine state={state} look={look} work={work} />}
      {state?.can_set_endpoint && <EndpointForm work={work} />}
      {error && (
        <p className="jp-dm-Warning" role="alert" data-testid="dm-setup-error">
          {error}
        </p>
      )}
    </section>
  );
}

type Work = (change: Promise<IModelState>) => Promise<boolean>;

/** Follows what the server says of its model; reads it again while a download works. */
function useModelState(name: string): {
  state: IModelState | null;
  error: string;
  look: () => void;
  work: Work;
} {
  const { analyst } = usePanel();
  const [state, setState] = useState<IModelState | null>(null);
  const [error, setError] = useState('');
  const work = useCallback(
    async (change: Promise<IModelState>) => {
      try {
        const next = await change;
        setState(next);
        setError('');
        if (next.is_ready) {
          await analyst.refreshStatus();
        }
        return true;
      } catch (reason) {
        setError((reason as Error).message ?? String(reason));
        return false;
      }
    },
    [analyst]
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
    const timer = setTimeout(look, POLL_MS);
    return () => clearTimeout(timer);
    // Each new state starts the next wait.
  }, [isRunning, look, state]);
  return { state, error, look, work };
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

function EndpointForm(props: { work: Work }): ReactElement {
  const { analyst, trans } = usePanel();
  const { choices, rest } = analyst;
  const [isAsking, setAsking] = useState(false);
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = event.currentTarget;
    const given = new FormData(form);
    const text = (name: string) => String(given.get(name) ?? '');
    setAsking(true);
    const isSet = await props.work(
      rest.setEndpoint(text('url'), text('model'), text('key'))
    );
    setAsking(false);
    if (isSet) {
      form.reset();
      // A local model that was chosen before is not the one that was set up.
      choices.model = '';
    }
  };
  return (
    <form
      className="jp-dm-Setup-way"
      autoComplete="off"
      onSubmit={event => void submit(event)}
    >
      <h4>{trans.__('Or an endpoint')}</h4>
      <p>
        {trans.__(
          'Any service that speaks the OpenAI interface. Your questions, names and samples of columns, and what cells print will go to it.'
        )}
      </p>
      <Field name="url" label={trans.__('Address')} placeholder={ADDRESS} />
      <Field name="model" label={trans.__('Model')} placeholder={MODEL} />
      <Field name="key" label={trans.__('Key')} isSecret />
      <p className="jp-dm-Leaving">
        {trans.__(
          'The key is kept in a file that only your account on the server can read. No notebook, restricted kernel or log gets it.'
        )}
      </p>
      <button
        type="submit"
        className="jp-dm-Button"
        data-testid="dm-connect"
        disabled={isAsking}
      >
        {isAsking ? trans.__('Asking the endpoint…') : trans.__('Connect')}
      </button>
    </form>
  );
}

function Field(props: {
  name: string;
  label: string;
  placeholder?: string;
  isSecret?: boolean;
}): ReactElement {
  const { isSecret, label, name, placeholder } = props;
  return (
    <label className="jp-dm-Field">
      <span>{label}</span>
      <input
        name={name}
        type={isSecret ? 'password' : 'text'}
        className="jp-dm-Input"
        data-testid={`dm-endpoint-${name}`}
        placeholder={placeholder}
        required={!isSecret}
        // A password manager would keep the key, and fill in another one.
        autoComplete={isSecret ? 'new-password' : 'off'}
        spellCheck={false}
      />
    </label>
  );
}
