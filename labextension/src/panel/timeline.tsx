import { PathExt } from '@jupyterlab/coreutils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { caretDownIcon, caretRightIcon } from '@jupyterlab/ui-components';
import { memo, useEffect, useId, useRef, useState } from 'react';
import type { ReactElement, RefObject } from 'react';

import { useFocusLost, usePanel } from './context';
import { Meter, Outcome, RunButtons } from './outcome';
import { waits } from '../model/pictures';
import type { INotebookPicture, IRunPicture } from '../model/pictures';
import { stateOfStop } from '../model/reduce';
import type { IRunSummary } from '../channel/rest';
import { StatusMark, Steps } from './steps';
import { Told } from './told';
import { besideCellWords, phaseWords, stateWords } from '../model/wording';

/** The runs of a notebook, oldest first: former ones as a line each, this tab's whole. */
export function Timeline(props: {
  notebook: INotebookPicture;
  /** The run that the person asked to see. */
  shownRun: string | null;
  /** The field below takes the focus, which was on something that goes. */
  onLeft: () => void;
}): ReactElement {
  const { trans } = usePanel();
  const { notebook, onLeft, shownRun } = props;
  const { past, pending, preparing, reopened, runs, stopPreparing } = notebook;
  const known = new Set(runs.map(run => run.runId));
  const former = past.filter(run => !known.has(run.run_id)).reverse();
  return (
    <>
      {former.map(summary => (
        <PastRun
          key={summary.run_id}
          path={notebook.path}
          summary={summary}
          run={reopened[summary.run_id] ?? null}
          isShown={summary.run_id === shownRun}
        />
      ))}
      {runs.map((run, index) => (
        <Run
          key={run.runId}
          run={run}
          isLatest={index === runs.length - 1}
          isShown={run.runId === shownRun}
        />
      ))}
      {pending && (
        <article className="jp-dm-Run" aria-label={pending.question}>
          <div className="jp-dm-Bubble">
            <h3 className="jp-dm-Question">{pending.question}</h3>
          </div>
          <p className="jp-dm-Phase" role="status">
            <span className="jp-dm-Spinner" aria-hidden="true" />
            {preparing || trans.__('Sending…')}
          </p>
          {preparing && stopPreparing && (
            <StopPreparing onStop={stopPreparing} onLeft={onLeft} />
          )}
        </article>
      )}
    </>
  );
}

function StopPreparing(props: {
  onStop: () => void;
  onLeft: () => void;
}): ReactElement {
  const { trans } = usePanel();
  const { onLeft, onStop } = props;
  const button = useRef<HTMLButtonElement>(null);
  useFocusLost(button, onLeft);
  return (
    <button
      ref={button}
      type="button"
      className="jp-dm-Button"
      data-testid="dm-stop-preparing"
      onClick={onStop}
    >
      {trans.__('Stop')}
    </button>
  );
}

/** One run: question, steps, answer, what it used. */
const Run = memo(function Run(props: {
  run: IRunPicture;
  isLatest: boolean;
  /** Whether the question stands above the run already. */
  isTitled?: boolean;
  isShown?: boolean;
}): ReactElement {
  const { isLatest, isShown = false, isTitled = false, run } = props;
  const node = useRef<HTMLElement>(null);
  useScrolledTo(node, isShown);
  const isRunning = run.state === 'running';
  return (
    <article
      ref={node}
      className="jp-dm-Run"
      data-testid="dm-run"
      data-run-id={run.runId}
      data-state={run.state}
      aria-label={run.question}
    >
      <Bubble run={run} isTitled={isTitled} />
      <StepList run={run} isLatest={isLatest || isRunning} />
      <Told run={run} />
      <Phase run={run} />
      <Outcome run={run} />
      {!isRunning && <RunButtons run={run} />}
    </article>
  );
});

/** The question and what it is about, as the person said it. */
function Bubble(props: {
  run: IRunPicture;
  isTitled: boolean;
}): ReactElement | null {
  const { trans } = usePanel();
  const { isTitled, run } = props;
  // What the question names already is not said twice.
  const about = run.files
    .filter(file => !run.question.includes(PathExt.basename(file)))
    .join(', ');
  if (isTitled && !about && run.tries < 2) {
    return null;
  }
  return (
    <div className="jp-dm-Bubble">
      {!isTitled && (
        <h3 className="jp-dm-Question" title={run.question}>
          {run.question}
        </h3>
      )}
      {about && <p className="jp-dm-Files">{about}</p>}
      {run.tries > 1 && (
        <p className="jp-dm-Files" data-testid="dm-tries">
          {trans.__('up to %1 attempts', run.tries)}
        </p>
      )}
    </div>
  );
}

/** What a run does or waits for, in one line; after its end, how running its cells again goes on. */
function Phase(props: { run: IRunPicture }): ReactElement | null {
  const { trans } = usePanel();
  const { run } = props;
  const isRunning = run.state === 'running';
  const isAsking = run.steps.some(waits) && !run.isStopping;
  const text = statusLine(run, trans);
  return text ? (
    <p className="jp-dm-Phase" data-testid="dm-status">
      {isAsking ? (
        <span className="jp-dm-Sign" data-tone="asks" aria-hidden="true">
          ?
        </span>
      ) : (
        <span className="jp-dm-Spinner" aria-hidden="true" />
      )}
      <span>{text}</span>
      {isRunning && <Meter run={run} />}
    </p>
  ) : null;
}

function statusLine(run: IRunPicture, trans: TranslationBundle): string {
  if (run.isStopping) {
    return trans.__('Stopping…');
  }
  if (run.state !== 'running') {
    return run.phase;
  }
  if (run.steps.some(waits)) {
    return besideCellWords(run.phase) || trans.__('Waits for you');
  }
  return run.steps.some(step => step.status === 'running')
    ? besideCellWords(run.phase) || trans.__('Running the cell…')
    : phaseWords(run.phase, trans);
}

function StepList(props: {
  run: IRunPicture;
  isLatest: boolean;
}): ReactElement | null {
  const { trans } = usePanel();
  const { isLatest, run } = props;
  const [choice, setChoice] = useState<boolean | null>(null);
  const listId = useId();
  const fold = useRef<HTMLButtonElement>(null);
  if (run.steps.length === 0) {
    return null;
  }
  const isOpen = run.steps.some(waits) || (choice ?? isLatest);
  const Caret = isOpen ? caretDownIcon : caretRightIcon;
  return (
    <div>
      <button
        ref={fold}
        type="button"
        className="jp-dm-Fold jp-dm-StepCount"
        aria-expanded={isOpen}
        aria-controls={listId}
        onClick={() => setChoice(!isOpen)}
      >
        <Caret.react tag="span" className="jp-dm-Caret" />
        {trans._n('%1 step', '%1 steps', run.steps.length)}
      </button>
      <div id={listId} hidden={!isOpen}>
        {isOpen && <Steps run={run} focusAfter={fold} />}
      </div>
    </div>
  );
}

/** A run of a former session: a line that fetches the rest when it is opened. */
function PastRun(props: {
  path: string;
  summary: IRunSummary;
  run: IRunPicture | null;
  isShown: boolean;
}): ReactElement {
  const { analyst, trans } = usePanel();
  const { isShown, path, run, summary } = props;
  const [isOpen, setIsOpen] = useState(isShown);
  const node = useRef<HTMLDivElement>(null);
  const state = stateOfStop(summary.stop);
  const words = stateWords(run?.state ?? state, trans);
  const Caret = isOpen ? caretDownIcon : caretRightIcon;

  useEffect(() => {
    if (isShown) {
      setIsOpen(true);
    }
  }, [isShown]);
  useScrolledTo(node, isShown);
  useEffect(() => {
    if (isOpen && !run) {
      analyst.reopen(path, summary.run_id).catch(error => {
        analyst.model.notify(
          path,
          trans.__('The run could not be fetched: %1', error.message)
        );
        setIsOpen(false);
      });
    }
  }, [analyst, isOpen, path, run, summary.run_id, trans]);

  return (
    <div ref={node} className="jp-dm-PastRun">
      <button
        type="button"
        className="jp-dm-Fold"
        aria-expanded={isOpen}
        onClick={() => setIsOpen(!isOpen)}
      >
        <Caret.react tag="span" className="jp-dm-Caret" />
        <span className="jp-dm-Step-title">{summary.question}</span>
        <StatusMark words={words} isBrief={false} />
      </button>
      {isOpen && !run && (
        <p className="jp-dm-Phase">
          <span className="jp-dm-Spinner" aria-hidden="true" />
          {trans.__('Loading…')}
        </p>
      )}
      {isOpen && run && <Run run={run} isLatest isTitled />}
    </div>
  );
}

/** Brings a run into view when the person asks to see it. */
function useScrolledTo(node: RefObject<HTMLElement>, isShown: boolean): void {
  useEffect(() => {
    if (isShown) {
      node.current?.scrollIntoView({ block: 'nearest' });
    }
  }, [isShown, node]);
}
