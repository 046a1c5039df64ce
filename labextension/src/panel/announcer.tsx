import type { TranslationBundle } from '@jupyterlab/translation';
import { useEffect, useRef, useState } from 'react';
import type { ReactElement } from 'react';

import { usePanel } from './context';
import { namesWords } from '../model/filewords';
import { waitingStep } from '../model/pictures';
import type { IRunPicture } from '../model/pictures';
import { stateWords, stopWords } from '../model/wording';

/** Says aloud, to those who use a screen reader, what the run does; never in the middle of words. */
export function Announcer(props: { run: IRunPicture | null }): ReactElement {
  const { trans } = usePanel();
  const { run } = props;
  const [text, setText] = useState('');
  const before = useRef<IRunPicture | null>(null);
  useEffect(() => {
    const news = run && announcement(before.current, run, trans);
    before.current = run;
    if (news) {
      setText(news);
    }
  }, [run, trans]);
  return (
    <div className="jp-dm-Unseen" role="status" aria-live="polite">
      {text}
    </div>
  );
}

/** Returns what is new in a run and worth saying; empty where nothing is. */
export function announcement(
  before: IRunPicture | null,
  run: IRunPicture,
  trans: TranslationBundle
): string {
  const known = before?.runId === run.runId ? before : null;
  if (run.state === 'running') {
    return progress(known, run, trans);
  }
  // A run that had ended when it was first seen is no news.
  return known && known.state !== run.state ? ending(run, trans) : '';
}

function progress(
  known: IRunPicture | null,
  run: IRunPicture,
  trans: TranslationBundle
): string {
  const waiting = waitingStep(run);
  const wasWaiting = known && waitingStep(known);
  const isKnown =
    waiting?.step === wasWaiting?.step &&
    waiting?.status === wasWaiting?.status;
  if (waiting && !isKnown) {
    return waiting.status === 'files_wait'
      ? trans.__('Files wait for you: %1', namesWords(waiting.files, trans))
      : trans.__('A cell waits for you: %1', waiting.waitsBecause);
  }
  const isNewStep = run.steps.length > (known?.steps.length ?? 0);
  return isNewStep ? trans.__('Step %1', run.steps.length) : '';
}

function ending(run: IRunPicture, trans: TranslationBundle): string {
  return run.state === 'answered'
    ? trans.__('Answer: %1', run.answer ?? '')
    : stopWords(run, trans) || stateWords(run.state, trans).text;
}
