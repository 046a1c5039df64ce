import { Clipboard, Dialog, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { copyIcon, refreshIcon, undoIcon } from '@jupyterlab/ui-components';
import type { LabIcon } from '@jupyterlab/ui-components';
import { useCallback, useEffect, useState } from 'react';
import type { ReactElement } from 'react';

import { usePanel, useSignal } from './context';
import { shownPath } from '../model/invisible';
import { download } from './history';
import { tryHarderIcon } from './icon';
import { Markdown } from './markdown';
import { MenuButton } from './menu';
import { linkNumbers } from '../model/numbers';
import type { IRunPicture } from '../model/pictures';
import type { ExportFormat } from '../channel/rest';
import { askOrKeep } from '../model/sending';
import { useShownCell } from './steps';
import { tidyNotebook } from './tidy';
import type { IAnalyst } from '../model/tokens';
import { chosenModel } from './welcome';
import {
  agreeingWords,
  doubtWords,
  meterWords,
  secondsWords,
  stopWords,
  triesWords
} from '../model/wording';

/** Enough that two answers can outvote one. */
const TRIES = 3;

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
          <LinkedAnswer run={run} answer={run.answer} />
        </section>
      )}
      {run.answer && run.ending.length > 0 && (
        <ul className="jp-dm-Ending" data-testid="dm-ending">
          {run.ending.map(line => (
            <li key={line}>{shownPath(line)}</li>
          ))}
        </ul>
      )}
      {agreeing && (
        <p
          className={run.agreeing > 1 ? 'jp-dm-Agreeing' : 'jp-dm-Warning'}
          data-testid="dm-agreeing"
        >
          {agreeing}
        </p>
      )}
      {agreeing &&
        run.others.map(other => (
          <p key={other} className="jp-dm-Warning" data-testid="dm-other">
            {trans.__('Another attempt says: %1', other)}
          </p>
        ))}
      {run.answer &&
        doubtWords(run, trans).map(words => (
          <p key={words} className="jp-dm-Warning">
            {words}
          </p>
        ))}
      {run.answer && run.restsOn && (
        <p className="jp-dm-Warning" data-testid="dm-rests-on">
          {run.restsOn}
        </p>
      )}
      {reason && <p className="jp-dm-Warning">{reason}</p>}
      {run.state === 'undone' && (
        <p>{trans.__('This run’s cells were taken out of the notebook.')}</p>
      )}
    </>
  );
}

/** The answer, whose numbers lead to the cells that they come from. */
function LinkedAnswer(props: {
  run: IRunPicture;
  answer: string;
}): ReactElement {
  const { trans } = usePanel();
  const { answer, run } = props;
  const { numbers, runId } = run;
  const show = useShownCell(runId);
  const onRendered = useCallback(
    (node: HTMLElement) =>
      linkNumbers(node, answer, numbers, trans, id => void show(id)),
    // A function that shows a cell is made anew each time and does the same.
    [answer, numbers, runId, trans]
  );
  return <Markdown source={answer} onRendered={onRendered} />;
}

/** How long the run has gone on, counting; what else it used is in the tooltip. */
export function Meter(props: { run: IRunPicture }): ReactElement {
  const { trans } = usePanel();
  const { run } = props;
  const isRunning = run.totals.seconds === null && run.state === 'running';
  const now = useClock(isRunning);
  const elapsed = Math.max(0, now / 1000 - run.openedAt);
  const seconds = run.totals.seconds ?? elapsed;
  return (
    <span
      className="jp-dm-Meter"
      data-testid="dm-meter"
      title={meterWords(run, seconds, trans)}
    >
      {isRunning && seconds < 10
        ? trans.__('%1 s', Math.floor(seconds))
        : secondsWords(seconds, trans)}
    </span>
  );
}

/** What can be done with an ended run: icons, *Undo* apart, the rest in a menu. */
export function RunButtons(props: { run: IRunPicture }): ReactElement {
  const { analyst, trans } = usePanel();
  const { run } = props;
  const { answer, runId } = run;
  const isConnected = useSignal(
    analyst.stateChanged,
    useCallback(() => analyst.isConnected, [analyst])
  );
  const askAgain = () => {
    const path = analyst.model.pathOf(runId) ?? run.notebookPath;
    const { files, question: text, variables } = run;
    const question = { text, files, variables };
    void askOrKeep({ analyst, path, trans }, question);
  };
  return (
    <div className="jp-dm-RunButtons">
      {answer && (
        <IconButton
          id="dm-copy"
          label={trans.__('Copy answer')}
          icon={copyIcon}
          onClick={() => void Clipboard.copyToSystem(answer)}
        />
      )}
      <IconButton
        id="dm-retry"
        label={trans.__('Ask again')}
        icon={refreshIcon}
        // Without an answer it is what to do next.
        isNamed={!answer}
        isDisabled={!isConnected}
        onClick={askAgain}
      />
      {canTryHarder(run) && (
        <IconButton
          id="dm-try-harder"
          label={trans.__(
            'Try harder: ask several times and take what most answers say'
          )}
          icon={tryHarderIcon}
          opensDialog
          isDisabled={!isConnected}
          onClick={() => void tryHarder(run, analyst, trans)}
        />
      )}
      <span className="jp-dm-Apart">
        <Meter run={run} />
        {run.state !== 'undone' && (
          <IconButton
            id="dm-undo"
            label={trans.__('Undo this run')}
            text={trans.__('Undo')}
            icon={undoIcon}
            isNamed
            onClick={() => analyst.undo(runId)}
          />
        )}
        <More run={run} />
      </span>
    </div>
  );
}

/** What is wanted less often, and what the run used. */
function More(props: { run: IRunPicture }): ReactElement {
  const panel = usePanel();
  const { analyst, trans } = panel;
  const { run } = props;
  const path = analyst.model.pathOf(run.runId) ?? run.notebookPath;
  const save = (format: ExportFormat) => () => {
    analyst.rest
      .export(run.runId, format)
      .then(download, error => analyst.model.notify(path, error.message));
  };
  const edit = () => {
    const { files, question: text, variables } = run;
    analyst.drafts.change(path, { text, files, variables });
  };
  return (
    <MenuButton
      label={trans.__('More about this run')}
      items={[
        { label: trans.__('Change the question'), act: edit },
        ...(run.answer && run.state !== 'undone'
          ? [
              {
                label: trans.__('Tidy the notebook'),
                act: () => void tidyNotebook(path, run.runId, panel)
              }
            ]
          : []),
        { label: trans.__('Download as a notebook'), act: save('notebook') },
        {
          label: trans.__('Download as a trajectory (JSONL)'),
          act: save('trajectory')
        }
      ]}
      note={meterWords(run, run.totals.seconds ?? 0, trans)}
    />
  );
}

/** A button that is an icon, with its name in the tooltip; or beside it where it is named. */
function IconButton(props: {
  id: string;
  label: string;
  /** What is read on it, where that is not the whole label. */
  text?: string;
  icon: LabIcon;
  isNamed?: boolean;
  isDisabled?: boolean;
  opensDialog?: boolean;
  onClick: () => void;
}): ReactElement {
  const { icon: Icon, isNamed, label } = props;
  return (
    <button
      type="button"
      className={`jp-dm-IconButton${isNamed ? ' jp-mod-named' : ''}`}
      data-testid={props.id}
      aria-label={label}
      aria-haspopup={props.opensDialog ? 'dialog' : undefined}
      title={label}
      disabled={props.isDisabled}
      onClick={props.onClick}
    >
      <Icon.react tag="span" />
      {isNamed && <span>{props.text ?? label}</span>}
    </button>
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

/** Whether to try harder can be offered: the kernels of the tries have none of the notebook's variables. */
function canTryHarder(run: IRunPicture): boolean {
  return !!run.answer && run.variables.length === 0;
}

/**
 * Asks an answered question again, several times at once, if the person agrees to what that does
 * and costs.
 */
async function tryHarder(
  run: IRunPicture,
  analyst: IAnalyst,
  trans: TranslationBundle
): Promise<void> {
  const model = chosenModel(analyst.status, analyst.choices.model);
  const staying = model?.is_local
    ? [trans.__('Nothing leaves this machine.')]
    : [];
  const lines = [...triesWords(run, TRIES, trans), ...staying];
  const answer = await showDialog({
    title: trans.__('Try harder?'),
    body: (
      <div className="jp-dm-TryHarder" data-testid="dm-try-harder-dialog">
        {lines.map(line => (
          <p key={line}>{line}</p>
        ))}
      </div>
    ),
    buttons: [
      Dialog.cancelButton({ label: trans.__('Cancel') }),
      Dialog.okButton({ label: trans.__('Try harder') })
    ]
  });
  if (!answer.button.accept) {
    return;
  }
  const path = analyst.model.pathOf(run.runId) ?? run.notebookPath;
  const { files, question: text } = run;
  const question = { text, files, tries: TRIES };
  await askOrKeep({ analyst, path, trans }, question);
}
