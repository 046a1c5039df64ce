/**
 * Asking an answered question again, several times at once, after the person has seen the price.
 */
import { Dialog, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';

import type { IRunPicture } from '../model/pictures';
import type { IAnalyst } from '../model/tokens';
import { chosenModel } from './welcome';
import { triesWords } from '../model/wording';

/** Enough that two answers can outvote one. */
const TRIES = 3;

/** Whether it can be offered: the kernels of the tries have none of the notebook's variables. */
export function canTryHarder(run: IRunPicture): boolean {
  return !!run.answer && run.variables.length === 0;
}

/** Says what it does and costs, and asks the run's question so if the person agrees. */
export async function tryHarder(
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
  await analyst.ask(path, { text, files, tries: TRIES });
}
