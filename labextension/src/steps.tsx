import { caretDownIcon, caretRightIcon } from '@jupyterlab/ui-components';
import { memo, useId, useRef, useState } from 'react';
import type { ReactElement, RefObject } from 'react';

import { Approval, FilesApproval } from './approval';
import { usePanel } from './context';
import { FileChanges } from './filechanges';
import { Markdown } from './markdown';
import { isOpenStatus, waits } from './pictures';
import type { IRunPicture, IStepPicture } from './pictures';
import { goToCell } from './showing';
import { StreamingText } from './streaming';
import { asSentence, secondsWords, stepWords } from './wording';

/** Statuses of a cell whose message the person should read at once. */
const LIMIT_STATUSES: readonly string[] = [
  'memory',
  'timeout',
  'killed',
  'denied'
];

/** The turns of a run, the latest open. */
export function Steps(props: { run: IRunPicture }): ReactElement {
  const { run } = props;
  const last = run.steps.length - 1;
  return (
    <ol className="jp-dm-Steps">
      {run.steps.map((step, index) => (
        <Step
          key={step.step}
          runId={run.runId}
          step={step}
          source={
            step.status === 'waiting'
              ? (run.sources[step.cellId ?? ''] ?? '')
              : ''
          }
          isLatest={run.state === 'running' && index === last}
        />
      ))}
    </ol>
  );
}

interface IStepProps {
  runId: string;
  step: IStepPicture;
  /** The text of the step's cell while it waits for the person. */
  source: string;
  isLatest: boolean;
}

const Step = memo(function Step(props: IStepProps): ReactElement {
  const { trans } = usePanel();
  const { isLatest, runId, step } = props;
  const [choice, setChoice] = useState<boolean | null>(null);
  const bodyId = useId();
  const toggle = useRef<HTMLButtonElement>(null);
  const isCut = step.cutBytes > 0;
  const isLimit = isCut || LIMIT_STATUSES.includes(step.status);
  const isOpen = choice ?? (isLatest || isLimit || waits(step));
  const words = stepWords(step.status, trans);
  const Caret = isOpen ? caretDownIcon : caretRightIcon;
  const seconds = step.sampleSeconds + step.cellSeconds;
  return (
    <li className="jp-dm-Step" data-testid="dm-step" data-status={step.status}>
      <div className="jp-dm-Step-head">
        <button
          ref={toggle}
          type="button"
          className="jp-dm-Step-toggle"
          aria-expanded={isOpen}
          aria-controls={bodyId}
          onClick={() => setChoice(!isOpen)}
        >
          <Caret.react tag="span" className="jp-dm-Caret" />
          <span className="jp-dm-Step-title">
            {title(step) || trans.__('Step %1', step.step)}
          </span>
          <span className="jp-dm-Status">
            <span aria-hidden="true">{words.sign}</span> {words.text}
            {isCut && ` · ${trans.__('output cut')}`}
          </span>
          {seconds > 0 && (
            <span className="jp-dm-Seconds">
              {secondsWords(seconds, trans)}
            </span>
          )}
        </button>
        {step.cellId && step.status !== 'skipped' && (
          <CellLink runId={runId} cellId={step.cellId} number={step.step} />
        )}
      </div>
      <div id={bodyId} hidden={!isOpen} className="jp-dm-Step-body">
        {isOpen && <StepBody {...props} isLimit={isLimit} toggle={toggle} />}
      </div>
      {step.files.length > 0 && !isOpenStatus(step.status) && (
        <FileChanges runId={runId} step={step} />
      )}
    </li>
  );
});

function StepBody(
  props: IStepProps & {
    isLimit: boolean;
    toggle: RefObject<HTMLElement>;
  }
): ReactElement {
  const { trans } = usePanel();
  const { isLimit, runId, source, step, toggle } = props;
  const isThinking = step.status === 'thinking';
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
      {!isThinking && step.thought && <Markdown source={step.thought} />}
      {step.isEdited && <p>{trans.__('You changed this cell.')}</p>}
      {step.message && (
        <p className={isLimit ? 'jp-dm-Warning' : undefined}>
          {asSentence(step.message)}
        </p>
      )}
      {step.isStateLost && <StateLost runId={runId} step={step} />}
      {step.status === 'waiting' && step.cellId && (
        <Approval
          runId={runId}
          cellId={step.cellId}
          because={step.waitsBecause}
          source={source}
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

function StateLost(props: { runId: string; step: IStepPicture }): ReactElement {
  const { analyst, trans } = usePanel();
  const { runId, step } = props;
  return (
    <div className="jp-dm-Warning">
      {!step.message && <p>{trans.__('The kernel’s variables are gone.')}</p>}
      <button
        type="button"
        className="jp-dm-Button"
        onClick={() => void analyst.rebuild(runId)}
      >
        {trans.__('Run the notebook’s cells again')}
      </button>
    </div>
  );
}

function CellLink(props: {
  runId: string;
  cellId: string;
  number: number;
}): ReactElement {
  const { analyst, trans } = usePanel();
  const { cellId, number, runId } = props;
  const show = async () => {
    const path = analyst.model.pathOf(runId) ?? '';
    const panel = analyst.panel(path);
    if (!panel || !(await goToCell(panel, cellId))) {
      analyst.model.notify(
        path,
        trans.__('The cell is not in the notebook any more.')
      );
    }
  };
  return (
    <button
      type="button"
      className="jp-dm-Link"
      aria-label={trans.__('Show the cell of step %1', number)}
      onClick={() => void show()}
    >
      {trans.__('Cell')}
    </button>
  );
}

/** The first line of the thought, without the marks of Markdown that a single line shows. */
function title(step: IStepPicture): string {
  const line = step.thought.split('\n').find(one => one.trim()) ?? '';
  return line.replace(/[*_`#]+/g, '').trim();
}
