import { Clipboard } from '@jupyterlab/apputils';
import { useEffect, useState } from 'react';
import type { ReactElement } from 'react';

import { usePanel } from './context';
import { Markdown } from './markdown';
import type { IRunPicture } from './pictures';
import { canTryHarder, tryHarder } from './tryharder';
import { agreeingWords, meterWords, stopWords } from './wording';

/** How a run ended: the answer, or why there is none. */
export function Outcome(props: { run: IRunPicture }): ReactElement | null {
  const { trans } = usePanel();
  const { run } = props;
  const reason = stopWords(run, trans);
  const agreeing = agreeingWords(run, trans);
  return (
    <>
      {run.answer && (
        <section
          className="jp-dm-Answer"
          data-testid="dm-answer"
          aria-label={trans.__('Answer')}
        >
          <Markdown source={run.answer} />
        </section>
      )}
      {agreeing && (
        <p
          className={run.agreeing > 1 ? undefined : 'jp-dm-Warning'}
          data-testid="dm-agreeing"
        >
          {agreeing}
        </p>
      )}
      {run.answer && run.unsupported.length > 0 && (
        <p className="jp-dm-Warning">
          {trans.__(
            'Not found in the outputs: %1. Check these yourself.',
            run.unsupported.join(', ')
          )}
        </p>
      )}
      {reason && <p className="jp-dm-Warning">{reason}</p>}
      {run.state === 'undone' && (
        <p>{trans.__('This run’s cells were taken out of the notebook.')}</p>
      )}
    </>
  );
}

/** What the run has used so far, counting while it goes on. */
export function Meter(props: { run: IRunPicture }): ReactElement {
  const { trans } = usePanel();
  const { run } = props;
  const isRunning = run.totals.seconds === null && run.state === 'running';
  const now = useClock(isRunning);
  const elapsed = Math.max(0, now / 1000 - run.openedAt);
  return (
    <p className="jp-dm-Meter" data-testid="dm-meter">
      {meterWords(run, run.totals.seconds ?? elapsed, trans)}
    </p>
  );
}

/** What can be done with an ended run. */
export function RunButtons(props: { run: IRunPicture }): ReactElement {
  const { analyst, trans } = usePanel();
  const { run } = props;
  const { answer, runId } = run;
  const askAgain = () => {
    const path = analyst.model.pathOf(runId) ?? run.notebookPath;
    const { files, question: text, variables } = run;
    void analyst.ask(path, { text, files, variables });
  };
  return (
    <div className="jp-dm-Buttons">
      {run.state !== 'undone' && (
        <button
          type="button"
          className="jp-dm-Button"
          data-testid="dm-undo"
          onClick={() => analyst.undo(runId)}
        >
          {trans.__('Undo this run')}
        </button>
      )}
      <button
        type="button"
        className="jp-dm-Button"
        data-testid="dm-retry"
        disabled={!analyst.isConnected}
        onClick={askAgain}
      >
        {trans.__('Ask again')}
      </button>
      {canTryHarder(run) && (
        <button
          type="button"
          className="jp-dm-Button"
          data-testid="dm-try-harder"
          aria-haspopup="dialog"
          aria-label={trans.__(
            'Try harder: ask several times and take what most answers say'
          )}
          disabled={!analyst.isConnected}
          onClick={() => void tryHarder(run, analyst, trans)}
        >
          {trans.__('Try harder')}
        </button>
      )}
      {answer && (
        <button
          type="button"
          className="jp-dm-Button"
          onClick={() => Clipboard.copyToSystem(answer)}
        >
          {trans.__('Copy answer')}
        </button>
      )}
    </div>
  );
}

/** Returns the time, anew each second while it is wanted. */
function useClock(isTicking: boolean): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    if (!isTicking) {
      return;
    }
    const timer = window.setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [isTicking]);
  return now;
}
