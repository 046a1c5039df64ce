import { useCallback } from 'react';
import type { ReactElement } from 'react';

import { usePanel, useSignal } from './context';
import type { IModelInfo, IStatus } from './rest';
import { layerWords } from './wording';

/** The first-run screen: what runs where, and what leaves the machine. */
export function Welcome(props: {
  status: IStatus | null;
  error: string;
  hasNotebook: boolean;
  onNewNotebook: () => void;
}): ReactElement {
  const { analyst, trans } = usePanel();
  const { error, hasNotebook, status } = props;
  return (
    <section
      className="jp-dm-Welcome"
      data-testid="dm-welcome"
      aria-label={trans.__('About the data analyst')}
    >
      <p>
        {trans.__(
          'Ask a question about your data. The analyst writes cells into the notebook, runs them, and answers from what they print.'
        )}
      </p>
      {!hasNotebook && (
        <p>
          <button
            type="button"
            className="jp-dm-Button jp-mod-accept"
            onClick={props.onNewNotebook}
          >
            {trans.__('New notebook')}
          </button>{' '}
          {trans.__('or open one to begin.')}
        </p>
      )}
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
      {status && <WhatRunsWhere status={status} />}
    </section>
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
    <>
      {status.problems.map(problem => (
        <p key={problem.text} className="jp-dm-Warning">
          {problem.text} {problem.remedy}
        </p>
      ))}
      <dl className="jp-dm-Facts">
        <dt>{trans.__('The model')}</dt>
        <dd>{modelWords(model)}</dd>
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
    </>
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

/** The model that the next question goes to. */
export function chosenModel(
  status: IStatus | null,
  choice: string
): IModelInfo | null {
  const name = choice || status?.default_model;
  return status?.models.find(model => model.name === name) ?? null;
}
