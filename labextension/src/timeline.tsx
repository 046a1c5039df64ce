import { caretDownIcon, caretRightIcon } from '@jupyterlab/ui-components';
import { memo, useEffect, useId, useRef, useState } from 'react';
import type { ReactElement, RefObject } from 'react';

import { usePanel } from './context';
import { Meter, Outcome, RunButtons } from './outcome';
import { waits } from './pictures';
import type { INotebookPicture, IRunPicture } from './pictures';
import { stateOfStop } from './reduce';
import type { IRunSummary } from './rest';
import { Steps } from './steps';
import { besideCellWords, phaseWords, stateWords } from './wording';
import { Told } from './told';

/** The runs of a notebook, oldest first: former ones as a line each, this tab's whole. */
export function Timeline(props: {
  notebook: INotebookPicture;
  /** The run that the person asked to see. */
  shownRun: string | null;
}): ReactElement {
  const { trans } = usePanel();
  const { notebook, shownRun } = props;
  const { past, pending, reopened, runs } = notebook;
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
          <h3 className="jp-dm-Question">{pending.question}</h3>
          <p className="jp-dm-Phase">{trans.__('Sending…')}</p>
        </article>
      )}
    </>
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
  const { trans } = usePanel();
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
      {!isTitled && (
        <h3 className="jp-dm-Question" title={run.question}>
          {run.question}
        </h3>
      )}
      {run.tries > 1 && (
        <p className="jp-dm-Files" data-testid="dm-tries">
          {trans.__('%1 tries', run.tries)}
        </p>
      )}
      {run.files.length > 0 && (
        <p className="jp-dm-Files">{run.files.join(', ')}</p>
      )}
      <StepList run={run} isLatest={isLatest || isRunning} />
      <Phase run={run} />
      <Outcome run={run} />
      <Told run={run} />
      <Meter run={run} />
      {!isRunning && <RunButtons run={run} />}
    </article>
  );
});

/** What a run waits for; after its end, how running its cells again goes on. */
function Phase(props: { run: IRunPicture }): ReactElement | null {
  const { trans } = usePanel();
  const { run } = props;
  const isAtCell = run.steps.some(
    step => step.status === 'running' || waits(step)
  );
  let text = '';
  if (run.isStopping) {
    text = trans.__('Stopping…');
  } else if (run.state !== 'running') {
    text = run.phase;
  } else {
    text = isAtCell ? besideCellWords(run.phase) : phaseWords(run.phase, trans);
  }
  return text ? <p className="jp-dm-Phase">{text}</p> : null;
}

function StepList(props: {
  run: IRunPicture;
  isLatest: boolean;
}): ReactElement | null {
  const { trans } = usePanel();
  const { isLatest, run } = props;
  const [choice, setChoice] = useState<boolean | null>(null);
  const listId = useId();
  if (run.steps.length === 0) {
    return null;
  }
  const isOpen = choice ?? isLatest;
  const Caret = isOpen ? caretDownIcon : caretRightIcon;
  return (
    <>
      <button
        type="button"
        className="jp-dm-Step-toggle jp-dm-StepCount"
        aria-expanded={isOpen}
        aria-controls={listId}
        onClick={() => setChoice(!isOpen)}
      >
        <Caret.react tag="span" className="jp-dm-Caret" />
        {trans._n('%1 step', '%1 steps', run.steps.length)}
      </button>
      <div id={listId} hidden={!isOpen}>
        {isOpen && <Steps run={run} />}
      </div>
    </>
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
        className="jp-dm-Step-toggle"
        aria-expanded={isOpen}
        onClick={() => setIsOpen(!isOpen)}
      >
        <Caret.react tag="span" className="jp-dm-Caret" />
        <span className="jp-dm-Step-title">{summary.question}</span>
        <span className="jp-dm-Status">
          <span aria-hidden="true">{words.sign}</span> {words.text}
        </span>
      </button>
      {isOpen && !run && <p className="jp-dm-Phase">{trans.__('Loading…')}</p>}
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
