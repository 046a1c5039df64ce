import { caretDownIcon, caretRightIcon } from '@jupyterlab/ui-components';
import { memo, useId, useLayoutEffect, useRef, useState } from 'react';
import type { ReactElement, RefObject } from 'react';

import { Approval, FilesApproval } from './approval';
import { useFocusLost, usePanel } from './context';
import { FileChanges } from './filechanges';
import { Code, Markdown } from './markdown';
import type { IOutputPicture } from '../model/outputs';
import { isOpenStatus, waits } from '../model/pictures';
import type { IRunPicture, IStepPicture } from '../model/pictures';
import { goToCell } from '../notebook/showing';
import { stepTitle } from '../model/steptitle';
import type { IStepPlace } from '../model/steptitle';
import { asSentence, secondsWords, stepWords } from '../model/wording';
import type { IStatusWords } from '../model/wording';

/** Statuses that the sign alone tells, to those who see it. */
const PLAIN_STATUSES: readonly string[] = [
  'ok',
  'answer',
  'thinking',
  'running'
];

/** Statuses of a cell whose message the person should read at once. */
const LIMIT_STATUSES: readonly string[] = [
  'memory',
  'timeout',
  'killed',
  'denied'
];

const NONE: readonly IOutputPicture[] = [];

/** Runs whose first piece of text was painted in this page. */
const painted = new Set<string>();

/** The turns of a run, a line each. */
export function Steps(props: {
  run: IRunPicture;
  /** Takes the focus when the steps go that hold it. */
  focusAfter: RefObject<HTMLElement>;
}): ReactElement {
  const { focusAfter, run } = props;
  const list = useRef<HTMLOListElement>(null);
  useFocusLost(list, () => focusAfter.current?.focus());
  const answers = run.steps.filter(step => step.status === 'answer');
  return (
    <ol ref={list} className="jp-dm-Steps">
      {run.steps.map((step, index) => (
        <Step
          key={step.step}
          runId={run.runId}
          step={step}
          source={run.sources[step.cellId ?? ''] ?? ''}
          outputs={run.outputs[step.cellId ?? ''] ?? NONE}
          isSentBack={index < run.steps.length - 1}
          isSecondAnswer={answers.length > 1 && answers[0] !== step}
        />
      ))}
    </ol>
  );
}

interface IStepProps extends IStepPlace {
  runId: string;
  step: IStepPicture;
  /** The text of the step's cell. */
  source: string;
  /** What the cell showed. */
  outputs: readonly IOutputPicture[];
}

const Step = memo(function Step(props: IStepProps): ReactElement {
  const { trans } = usePanel();
  const { outputs, runId, source, step } = props;
  const [choice, setChoice] = useState<boolean | null>(null);
  const bodyId = useId();
  const toggle = useRef<HTMLButtonElement>(null);
  const isCut = step.cutBytes > 0;
  const isLimit = isCut || LIMIT_STATUSES.includes(step.status);
  const isOpen =
    waits(step) || (choice ?? (step.status === 'thinking' || isLimit));
  const unfold = () => setChoice(!isOpen);
  const title = stepTitle(step, source, outputs, props, trans);
  const Caret = isOpen ? caretDownIcon : caretRightIcon;
  const seconds = step.sampleSeconds + step.cellSeconds;
  const hasCell = step.cellId !== null && step.status !== 'skipped';
  return (
    <li className="jp-dm-Step" data-testid="dm-step" data-status={step.status}>
      <div className="jp-dm-Step-head">
        <button
          ref={toggle}
          type="button"
          className="jp-dm-Step-toggle"
          aria-label={trans.__('Details of step %1', step.step)}
          aria-expanded={isOpen}
          aria-controls={bodyId}
          onClick={unfold}
        >
          <Caret.react tag="span" className="jp-dm-Caret" />
        </button>
        <Row
          runId={runId}
          title={title}
          status={step.status}
          isCut={isCut}
          cellId={hasCell ? step.cellId : null}
          onUnfold={unfold}
        />
        {seconds > 0 && (
          <span className="jp-dm-Seconds">{secondsWords(seconds, trans)}</span>
        )}
      </div>
      <div id={bodyId} hidden={!isOpen} className="jp-dm-Step-body">
        {isOpen && (
          <StepBody
            {...props}
            title={title}
            isLimit={isLimit}
            toggle={toggle}
          />
        )}
      </div>
      {step.files.length > 0 && !isOpenStatus(step.status) && (
        <FileChanges runId={runId} step={step} />
      )}
    </li>
  );
});

/** How a step or a run stands: a sign in its colour, and words where the sign is not enough. */
export function StatusMark(props: {
  words: IStatusWords;
  /** Whether the words are for screen readers only. */
  isBrief: boolean;
}): ReactElement {
  const { isBrief, words } = props;
  return (
    <span className="jp-dm-Status" data-tone={words.tone}>
      <span aria-hidden="true" className="jp-dm-Sign">
        {words.sign}
      </span>{' '}
      <span className={isBrief ? 'jp-dm-Unseen' : undefined}>{words.text}</span>
    </span>
  );
}

/** What the step did; a click goes to its cell, or unfolds a step that has none. */
function Row(props: {
  runId: string;
  title: string;
  status: string;
  isCut: boolean;
  cellId: string | null;
  onUnfold: () => void;
}): ReactElement {
  const { trans } = usePanel();
  const { cellId, isCut, onUnfold, runId, status, title } = props;
  const words = stepWords(status, trans);
  const show = useShownCell(runId);
  return (
    <button
      type="button"
      className="jp-dm-Step-row"
      title={cellId ? trans.__('Show the cell in the notebook') : undefined}
      onClick={() => (cellId ? void show(cellId) : onUnfold())}
    >
      <span className="jp-dm-Step-title">{title}</span>{' '}
      <StatusMark words={words} isBrief={PLAIN_STATUSES.includes(status)} />
      {isCut && <span className="jp-dm-Status"> {trans.__('output cut')}</span>}
    </button>
  );
}

function StepBody(
  props: IStepProps & {
    title: string;
    isLimit: boolean;
    toggle: RefObject<HTMLElement>;
  }
): ReactElement {
  const { trans } = usePanel();
  const { isLimit, outputs, runId, source, step, title, toggle } = props;
  const isThinking = step.status === 'thinking';
  const isWaiting = step.status === 'waiting' && step.cellId !== null;
  // One sentence stands in the row already.
  const says = !isThinking && step.thought.length > title.length + 1;
  return (
    <>
      {isThinking && step.text && (
        <StreamingText runId={runId} text={step.text} />
      )}
      {step.reasoning && (
        <details className="jp-dm-Reasoning">
          <summary>{trans.__('What the model thought')}</summary>
          <p>{step.reasoning}</p>
        </details>
      )}
      {says && <Markdown source={step.thought} />}
      {step.isEdited && <p>{trans.__('You changed this cell.')}</p>}
      {source && !isWaiting && (
        <Code source={source} language={step.language} />
      )}
      {outputs.length > 0 && <CellOutputs outputs={outputs} />}
      {step.facts.length > 0 && (
        <ul
          aria-label={trans.__('What happened to the data')}
          data-testid="dm-facts"
        >
          {step.facts.map(fact => (
            <li key={fact}>{fact}</li>
          ))}
        </ul>
      )}
      {step.message && (
        <p className={isLimit ? 'jp-dm-Warning' : undefined}>
          {asSentence(step.message)}
        </p>
      )}
      {step.isStateLost && <StateLost runId={runId} step={step} />}
      {isWaiting && step.cellId && (
        <Approval
          runId={runId}
          cellId={step.cellId}
          because={step.waitsBecause}
          source={source}
          language={step.language}
          focusAfter={toggle}
        />
      )}
      {step.status === 'files_wait' && step.cellId && (
        <FilesApproval
          runId={runId}
          cellId={step.cellId}
          files={step.files}
          focusAfter={toggle}
        />
      )}
    </>
  );
}

/** What the cell showed, small: the notebook has it whole. */
function CellOutputs(props: {
  outputs: readonly IOutputPicture[];
}): ReactElement {
  const { trans } = usePanel();
  return (
    <div
      className="jp-dm-Outputs"
      role="group"
      aria-label={trans.__('What the cell showed')}
      // What scrolls must be reached with the keyboard.
      tabIndex={0}
      data-testid="dm-outputs"
    >
      {props.outputs.map((output, index) =>
        output.image ? (
          <img
            key={index}
            src={output.image}
            alt={output.text || trans.__('A picture that the cell drew')}
          />
        ) : output.isElsewhere ? (
          <p key={index}>{trans.__('The notebook shows the output.')}</p>
        ) : (
          output.text.trim() && (
            <pre key={index} data-tone={output.isError ? 'failed' : undefined}>
              {output.text.trimEnd()}
            </pre>
          )
        )
      )}
    </div>
  );
}

function StateLost(props: { runId: string; step: IStepPicture }): ReactElement {
  const { analyst, trans } = usePanel();
  const { runId, step } = props;
  const rebuild = () =>
    analyst.rebuild(runId).catch((error: unknown) => {
      const why = (error as Error).message ?? String(error);
      const path = analyst.model.pathOf(runId) ?? '';
      analyst.model.notify(
        path,
        trans.__('The cells were not run again: %1', why)
      );
    });
  return (
    <div className="jp-dm-Warning">
      {!step.message && <p>{trans.__('The kernel’s variables are gone.')}</p>}
      <button
        type="button"
        className="jp-dm-Button"
        onClick={() => void rebuild()}
      >
        {trans.__('Run the notebook’s cells again')}
      </button>
    </div>
  );
}

/** Returns what goes to a cell of the run, or says that it is gone. */
export function useShownCell(runId: string): (cellId: string) => Promise<void> {
  const { analyst, trans } = usePanel();
  return async cellId => {
    const path = analyst.model.pathOf(runId) ?? '';
    const panel = analyst.panel(path);
    if (!panel || !(await goToCell(panel, cellId))) {
      analyst.model.notify(
        path,
        trans.__('The cell is not in the notebook any more.')
      );
    }
  };
}

/**
 * The text of a turn while it comes. Only the new piece is added to the page; Markdown is for when
 * the turn is over.
 */
const StreamingText = memo(function StreamingText(props: {
  runId: string;
  text: string;
}): ReactElement {
  const { runId, text } = props;
  const node = useRef<HTMLPreElement>(null);
  const shown = useRef('');
  useLayoutEffect(() => {
    const parent = node.current;
    if (!parent) {
      return;
    }
    if (text.startsWith(shown.current) && parent.firstChild) {
      const piece = text.slice(shown.current.length);
      (parent.firstChild as Text).appendData(piece);
    } else {
      parent.textContent = text;
    }
    shown.current = text;
    if (text && !painted.has(runId)) {
      painted.add(runId);
      requestAnimationFrame(() => {
        performance.mark('dm:first-token', { detail: { runId } });
      });
    }
  }, [runId, text]);
  return <pre ref={node} className="jp-dm-Streaming" />;
});
