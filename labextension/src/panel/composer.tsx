import { HTMLSelect, closeIcon, settingsIcon } from '@jupyterlab/ui-components';
import { useCallback, useState } from 'react';
import type { FormEvent, ReactElement, RefObject } from 'react';

import { approvalOptions } from '../model/choices';
import { usePanel, useSignal } from './context';
import type { IDraft } from '../model/draft';
import { runningRun } from '../model/pictures';
import type { INotebookPicture, IRunPicture } from '../model/pictures';
import type { Approval } from '../protocol.gen';
import { UnseenWrites } from './filechanges';
import { Leaving } from './leaving';
import { QuestionField } from './question';
import type { IModelInfo, IStatus } from '../channel/rest';
import { chosenFor, sendDraft } from '../model/sending';
import { chosenModel } from './welcome';
import { WhichData } from './whichdata';
import type { IUnclear } from './whichdata';

/** What must be made clear before a notebook's question is sent. */
interface IFound {
  readonly path: string;
  readonly unclear: IUnclear;
}

/** Where the person writes, chooses, sends and stops. */
export function Composer(props: {
  notebook: INotebookPicture;
  status: IStatus | null;
  isConnected: boolean;
  focusCount: number;
  /** The button that opens and closes "Models and keys". */
  modelsButton: RefObject<HTMLButtonElement>;
  isModels: boolean;
  onModels: () => void;
}): ReactElement {
  const { analyst, trans, workspace } = usePanel();
  const { focusCount, isConnected, notebook, status } = props;
  const { path, refusal } = notebook;
  const { choices } = analyst;
  const [found, setFound] = useState<IFound | null>(null);
  /** The notebooks whose question is on its way to the server. */
  const [sending, setSending] = useState<readonly string[]>([]);
  const choice = useSignal(
    choices.changed,
    useCallback(() => choices.model, [choices])
  );
  const draft = useSignal(
    analyst.drafts.changed,
    useCallback(() => analyst.drafts.get(path), [analyst, path])
  );
  const running = runningRun(notebook);
  const model = chosenModel(status, choice);
  const lacksModel = model !== null && !model.is_present;
  const isBusy = useSignal(
    analyst.queue.changed,
    useCallback(() => analyst.queue.isBusy(path), [analyst, path])
  );
  // While a run works, the question waits in the queue.
  const mustWait = path !== '' && (isBusy || !!notebook.pending || !!running);
  const isReady = mustWait || (isConnected && !sending.includes(path));
  const canSend = isReady && !lacksModel && draft.text.trim() !== '';
  const unclear =
    (found?.path === path ? found.unclear : null) ??
    (refusal?.reason === 'data'
      ? { ...refusal, sentence: refusal.message, word: '' }
      : null);

  const settle = () => {
    setFound(one => (one?.path === path ? null : one));
    if (refusal) {
      analyst.model.settle(path);
    }
  };
  const sendThis = async (question: IDraft, withoutData = false) => {
    if (!isReady || lacksModel || question.text.trim() === '') {
      return;
    }
    settle();
    setSending(paths => [...paths, path]);
    const place = { analyst, workspace, trans, path };
    try {
      const unclear = await sendDraft(place, question, withoutData);
      if (unclear) {
        setFound({ path, unclear });
      }
    } finally {
      setSending(paths => paths.filter(one => one !== path));
    }
  };
  const send = () => sendThis(draft);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void send();
  };

  return (
    <form
      className="jp-dm-Composer"
      aria-label={trans.__('Ask the data analyst')}
      onSubmit={submit}
    >
      {unclear && (
        <WhichData
          unclear={unclear}
          onChoose={one => void sendThis(chosenFor(draft, unclear, one))}
          onWithoutData={() => void sendThis(draft, true)}
          onDismiss={settle}
        />
      )}
      <div className="jp-dm-Composer-box">
        <Chips path={path} files={draft.files} variables={draft.variables} />
        <QuestionField
          path={path}
          text={draft.text}
          focusCount={focusCount}
          onSubmit={() => void send()}
        />
        <div className="jp-dm-Composer-foot">
          <Pickers path={path} status={status}>
            <ModelsButton
              button={props.modelsButton}
              isOpen={props.isModels}
              onClick={props.onModels}
            />
          </Pickers>
          {running && <StopButton run={running} />}
          {(!running || canSend) && (
            <SendButton can={canSend} mustWait={mustWait} />
          )}
        </div>
      </div>
      <UnseenWrites meter={notebook.meter} />
      {lacksModel ? (
        <p className="jp-dm-Leaving" data-testid="dm-why-not">
          {trans.__('Send is off until a model is set up: see above.')}
        </p>
      ) : (
        <Leaving path={path} status={status} draft={draft} />
      )}
    </form>
  );
}

function SendButton(props: { can: boolean; mustWait: boolean }): ReactElement {
  const { trans } = usePanel();
  const { can, mustWait } = props;
  return (
    <button
      type="submit"
      className="jp-dm-Button jp-mod-accept"
      data-testid="dm-send"
      title={mustWait ? trans.__('Send it after the answer above') : undefined}
      disabled={!can}
    >
      {mustWait ? trans.__('Queue') : trans.__('Send')}
    </button>
  );
}

function StopButton(props: { run: IRunPicture }): ReactElement {
  const { analyst, trans } = usePanel();
  const { isStopping, runId } = props.run;
  return (
    <button
      type="button"
      className="jp-dm-Button jp-mod-warn"
      data-testid="dm-stop"
      aria-label={isStopping ? undefined : trans.__('Stop the run')}
      disabled={isStopping}
      onClick={() => analyst.stop(runId)}
    >
      {isStopping ? trans.__('Stopping…') : trans.__('Stop')}
    </button>
  );
}

/** The files and variables that the question is about. */
function Chips(props: {
  path: string;
  files: readonly string[];
  variables: readonly string[];
}): ReactElement | null {
  const { analyst, trans } = usePanel();
  const { files, path, variables } = props;
  if (files.length + variables.length === 0) {
    return null;
  }
  const without = (values: readonly string[], value: string) =>
    values.filter(one => one !== value);
  return (
    <ul className="jp-dm-Chips" aria-label={trans.__('About')}>
      {files.map(file => (
        <Chip
          key={file}
          label={file}
          onRemove={() =>
            analyst.drafts.change(path, { files: without(files, file) })
          }
        />
      ))}
      {variables.map(name => (
        <Chip
          key={`@${name}`}
          label={`@${name}`}
          onRemove={() =>
            analyst.drafts.change(path, { variables: without(variables, name) })
          }
        />
      ))}
    </ul>
  );
}

function Chip(props: { label: string; onRemove: () => void }): ReactElement {
  const { trans } = usePanel();
  const { label, onRemove } = props;
  return (
    <li className="jp-dm-Chip" data-testid="dm-file-chip" title={label}>
      <span>{label}</span>
      <button
        type="button"
        className="jp-dm-IconButton"
        aria-label={trans.__('Leave out %1', label)}
        onClick={onRemove}
      >
        <closeIcon.react tag="span" />
      </button>
    </li>
  );
}

function ModelsButton(props: {
  button: RefObject<HTMLButtonElement>;
  isOpen: boolean;
  onClick: () => void;
}): ReactElement {
  const { trans } = usePanel();
  const label = trans.__('Models and keys…');
  return (
    <button
      ref={props.button}
      type="button"
      className="jp-dm-IconButton"
      data-testid="dm-models-open"
      aria-label={label}
      aria-expanded={props.isOpen}
      title={label}
      onClick={props.onClick}
    >
      <settingsIcon.react tag="span" />
    </button>
  );
}

/** Which model answers, how it is set up, and which cells wait for the person. */
function Pickers(props: {
  path: string;
  status: IStatus | null;
  children: ReactElement;
}): ReactElement {
  const { analyst, trans } = usePanel();
  const { path, status } = props;
  const { choices } = analyst;
  const model = useSignal(
    choices.changed,
    useCallback(() => choices.model, [choices])
  );
  const approval = useSignal(
    choices.changed,
    useCallback(() => analyst.approvalIn(path), [analyst, path])
  );
  const chosen = chosenModel(status, model);
  const listed = status?.models ?? [];
  const isListed = !chosen || listed.some(one => one.name === chosen.name);
  const models = isListed ? listed : [...listed, chosen];
  const modelName = (one: IModelInfo) =>
    one.is_present ? one.label : trans.__('%1 (not here yet)', one.label);
  return (
    <div className="jp-dm-Pickers">
      <HTMLSelect
        data-testid="dm-model"
        aria-label={trans.__('Model')}
        title={chosen?.detail || trans.__('Model')}
        value={chosen?.name ?? ''}
        disabled={models.length === 0}
        onChange={event => {
          choices.model = event.target.value;
        }}
        options={models.map(one => ({
          value: one.name,
          label: modelName(one)
        }))}
      />
      {props.children}
      <HTMLSelect
        data-testid="dm-approval-mode"
        aria-label={trans.__('Which cells wait for you')}
        title={trans.__('Which cells wait for you')}
        value={approval}
        onChange={event =>
          analyst.setApproval(path, event.target.value as Approval)
        }
        options={approvalOptions(trans)}
      />
    </div>
  );
}
