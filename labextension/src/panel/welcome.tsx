import { useCallback, useEffect, useState } from 'react';
import type { ReactElement } from 'react';

import { usePanel, useSignal } from './context';
import type {
  IExample,
  IModelInfo,
  IModelState,
  IStatus
} from '../channel/rest';
import { folderFor } from '../model/sending';
import { layerWords } from '../model/wording';

/** The layers of which one keeps code from the person's files, and from the network. */
const HOLDS = [
  ['read_only_view', 'landlock'],
  ['network_namespace', 'late_seccomp']
];

/** The first screen: what to ask, and what is safe. */
export function Welcome(props: {
  path: string;
  status: IStatus | null;
  error: string;
  /** Whether the panel has been looked at: before that no file is read for it. */
  wasShown: boolean;
}): ReactElement {
  const { analyst, trans } = usePanel();
  const { error, path, status, wasShown } = props;
  return (
    <section
      className="jp-dm-Welcome"
      data-testid="dm-welcome"
      aria-label={trans.__('About the data analyst')}
    >
      <p>
        {trans.__(
          'Ask a question about your data. The analyst writes cells into a notebook, runs them, and answers from what they print.'
        )}
      </p>
      {error && (
        <div className="jp-dm-Warning">
          <p>{trans.__('The analyst’s server does not answer: %1', error)}</p>
          <button
            type="button"
            className="jp-dm-Button"
            onClick={() => void analyst.refreshStatus()}
          >
            {trans.__('Try again')}
          </button>
        </div>
      )}
      {status && wasShown && <Examples path={path} />}
      {status && <WhatIsSafe status={status} />}
    </section>
  );
}

/** Questions about a file at hand; a click writes one into the field. */
function Examples(props: { path: string }): ReactElement | null {
  const { analyst, trans } = usePanel();
  const { path } = props;
  const examples = useExamples(path);
  const choose = ({ file, question }: IExample) => {
    analyst.drafts.change(path, { text: question, files: [file] });
  };
  if (examples.length === 0) {
    return null;
  }
  return (
    <div className="jp-dm-Examples" data-testid="dm-examples">
      <h3>{trans.__('For example')}</h3>
      {examples.map(example => (
        <button
          key={example.question}
          type="button"
          className="jp-dm-Example"
          data-testid="dm-example"
          title={example.file}
          onClick={() => choose(example)}
        >
          {example.question}
        </button>
      ))}
    </div>
  );
}

/** Asks for questions about the folder where the next one would be asked. */
function useExamples(path: string): readonly IExample[] {
  const { analyst, workspace } = usePanel();
  const near = useSignal(
    workspace.folderChanged,
    useCallback(() => folderFor(path, workspace), [path, workspace])
  );
  const [examples, setExamples] = useState<readonly IExample[]>([]);
  useEffect(() => {
    let isCurrent = true;
    setExamples([]);
    analyst.rest.examples(near).then(
      found => isCurrent && setExamples(found),
      error => console.warn('There are no example questions', error)
    );
    return () => {
      isCurrent = false;
    };
  }, [analyst, near]);
  return examples;
}

function WhatIsSafe(props: { status: IStatus }): ReactElement {
  const { trans } = usePanel();
  const { containment, problems } = props.status;
  const isSafe =
    problems.length === 0 &&
    HOLDS.every(layers =>
      layers.some(layer => containment.active.includes(layer))
    );
  return (
    <>
      {isSafe && (
        <p data-testid="dm-safe">
          {trans.__(
            'It is safe to try: the code has no network, reads only the notebook’s folder, and changes none of your cells.'
          )}
        </p>
      )}
      {problems.map(problem => (
        <p key={problem.text} className="jp-dm-Warning">
          {problem.text} {problem.remedy}
        </p>
      ))}
      <details className="jp-dm-Details" data-testid="dm-details">
        <summary>{trans.__('What runs where, and what protects you')}</summary>
        <WhatRunsWhere status={props.status} />
      </details>
    </>
  );
}

function WhatRunsWhere(props: { status: IStatus }): ReactElement {
  const { analyst, trans } = usePanel();
  const { status } = props;
  const { active, missing } = status.containment;
  const { choices } = analyst;
  const choice = useSignal(
    choices.changed,
    useCallback(() => choices.model, [choices])
  );
  const model = chosenModel(status, choice);
  return (
    <dl className="jp-dm-Facts">
      <dt>{trans.__('The model')}</dt>
      <dd>
        {modelWords(model)}
        {model && !model.is_local && <OwnEndpoint name={model.name} />}
      </dd>
      <dt>{trans.__('What leaves this machine')}</dt>
      <dd>
        {model?.is_local
          ? trans.__('Nothing.')
          : trans.__(
              'Your question, names and samples of the data’s columns, and what the cells print go to the model.'
            )}
      </dd>
      <dt>{trans.__('The code')}</dt>
      <dd>
        {active.length > 0
          ? trans.__(
              'Runs in a restricted kernel on the server’s machine: %1.',
              layerWords(active)
            )
          : trans.__('Runs on the server’s machine, without restrictions.')}
        {missing.length > 0 && (
          <span className="jp-dm-Warning">
            {' '}
            {trans.__('Missing here: %1.', layerWords(missing))}
          </span>
        )}
      </dd>
      <dt>{trans.__('You decide')}</dt>
      <dd>
        {trans.__(
          'Below, choose which cells wait for you. A run can be stopped, and undone as one; your own cells are never changed.'
        )}
      </dd>
    </dl>
  );

  function modelWords(model: IModelInfo | null): string {
    if (!model) {
      return trans.__('None is set up.');
    }
    return model.is_local
      ? trans.__('%1 runs on the server’s own machine.', model.label)
      : trans.__('%1 is called over the network.', model.label);
  }
}

/** Lets the person forget an endpoint that they have set here. */
function OwnEndpoint(props: { name: string }): ReactElement | null {
  const { analyst, trans } = usePanel();
  const { name } = props;
  const [state, setState] = useState<IModelState | null>(null);
  useEffect(() => {
    analyst.rest.model().then(setState, error => {
      console.warn('The model’s set-up could not be read', error);
    });
  }, [analyst, name]);
  const kept = state?.endpoints.find(one => one.name === name);
  if (!kept) {
    return null;
  }
  const forget = async () => {
    await analyst.rest.forgetEndpoint(kept.base_url, kept.model);
    if (analyst.choices.model === name) {
      analyst.choices.model = '';
    }
    await analyst.refreshStatus();
  };
  return (
    <>
      {' '}
      {kept.base_url}{' '}
      <button
        type="button"
        className="jp-dm-Button"
        data-testid="dm-forget-endpoint"
        onClick={() =>
          void forget().catch(error =>
            analyst.model.notify(analyst.currentPath, error.message)
          )
        }
      >
        {trans.__('Forget this endpoint')}
      </button>
    </>
  );
}

/**
 * The model that the next question goes to. One that the server does not list is another one at its
 * endpoint, as far as the panel knows.
 */
export function chosenModel(
  status: IStatus | null,
  choice: string
): IModelInfo | null {
  const name = choice || status?.default_model;
  if (!status || !name) {
    return null;
  }
  const unlisted = { name, label: name, detail: '' };
  return (
    status.models.find(model => model.name === name) ?? {
      ...unlisted,
      is_local: false,
      is_present: true
    }
  );
}
