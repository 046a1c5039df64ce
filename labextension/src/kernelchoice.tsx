/**
 * What to do with a question when the notebook's kernel is not restricted. Nothing is switched
 * unless the person says so: a kernel's variables would be lost.
 */
import { Dialog, showDialog } from '@jupyterlab/apputils';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import type { ReactElement } from 'react';

import type { Analyst, IRefusedAsk } from './analyst';
import { asSentence } from './wording';
import { RESTRICTED_KERNEL, folderOf } from './workspace';
import type { Workspace } from './workspace';

type Choice = 'switch' | 'new' | 'own' | 'here';

/** The kernel that was started last for a notebook that had none. */
const started = new WeakMap<NotebookPanel, string>();

/** Asks the person, and does what they chose; a question that is not sent is put back. */
export async function chooseKernel(
  kernelRefusal: IRefusedAsk,
  analyst: Analyst,
  workspace: Workspace,
  trans: TranslationBundle
): Promise<void> {
  const { ask, refusal } = kernelRefusal;
  let path = ask.notebook_path;
  let problem = '';
  try {
    let choice: Choice | null = 'here';
    if (refusal.reason === 'no_kernel') {
      await startKernel(analyst, kernelRefusal, trans);
    } else {
      choice = await chosen(kernelRefusal, analyst, workspace, trans);
    }
    if (choice) {
      path = await placeFor(choice, path, analyst, workspace, trans);
      const kernel = choice === 'own' ? 'own' : 'restricted';
      if (analyst.askAgain(ask, path, kernel)) {
        return;
      }
      problem = trans.__('there is no connection to the analyst');
    }
  } catch (error) {
    problem = (error as Error).message ?? String(error);
  }
  analyst.drafts.putBack(path, ask);
  if (problem) {
    const text = trans.__('“%1” was not sent: %2', ask.question, problem);
    analyst.model.notify(path, text);
  }
}

/** Starts a kernel of the notebook's own kind where it has none; nothing can be lost by that. */
async function startKernel(
  analyst: Analyst,
  { ask, refusal }: IRefusedAsk,
  trans: TranslationBundle
): Promise<void> {
  const panel = analyst.panel(ask.notebook_path);
  const context = panel?.sessionContext;
  const known = context?.session?.kernel?.id ?? '';
  if (!panel || !context || (known && started.get(panel) === known)) {
    throw new Error(refusal.message);
  }
  const spec = panel.model?.getMetadata('kernelspec') as
    { name?: string } | undefined;
  // The page may hold on to a session that the server does not know any more.
  context.session?.dispose();
  const kernel = await context.changeKernel({
    name: spec?.name ?? RESTRICTED_KERNEL
  });
  if (!kernel) {
    throw new Error(trans.__('the notebook’s kernel could not be started'));
  }
  started.set(panel, kernel.id);
  const text = trans.__(
    'The notebook had no running kernel, so a new one was started. It has no variables yet: run the notebook’s cells again if the question needs them.'
  );
  analyst.model.notify(ask.notebook_path, text);
}

/** Returns what the person chose; `null` when they would rather not ask. */
async function chosen(
  { refusal }: IRefusedAsk,
  analyst: Analyst,
  workspace: Workspace,
  trans: TranslationBundle
): Promise<Choice | null> {
  // Where no layer holds, because the sandbox is switched off, the choice would come back.
  const hasRestricted =
    workspace.hasRestrictedKernel &&
    analyst.status?.containment.active.length !== 0;
  const result = await showDialog<Choice>({
    title: trans.__('Where should this run?'),
    body: new KernelChoices(asSentence(refusal.message), hasRestricted, trans),
    buttons: [
      Dialog.cancelButton({ label: trans.__('Cancel') }),
      Dialog.okButton({ label: trans.__('Continue') })
    ]
  });
  return result.button.accept ? result.value : null;
}

/** Makes the notebook that was chosen ready; returns its path. */
async function placeFor(
  choice: Choice,
  path: string,
  analyst: Analyst,
  workspace: Workspace,
  trans: TranslationBundle
): Promise<string> {
  if (choice === 'switch') {
    const panel = analyst.panel(path);
    await panel?.sessionContext.changeKernel({ name: RESTRICTED_KERNEL });
  } else if (choice === 'new') {
    const panel = await workspace.newNotebook(folderOf(path));
    if (!panel) {
      throw new Error(trans.__('the new notebook is not open in this page'));
    }
    return panel.context.localPath;
  }
  return path;
}

/** The body of the dialog. */
class KernelChoices extends ReactWidget implements Dialog.IBodyWidget<Choice> {
  constructor(
    private readonly _message: string,
    private readonly _hasRestricted: boolean,
    private readonly _trans: TranslationBundle
  ) {
    super();
    this._choice = _hasRestricted ? 'new' : 'own';
  }

  getValue(): Choice {
    return this._choice;
  }

  protected override render(): ReactElement {
    const trans = this._trans;
    const choices: [Choice, string, string][] = [
      [
        'new',
        trans.__('New notebook'),
        trans.__('Ask in a new notebook with a restricted kernel.')
      ],
      [
        'switch',
        trans.__('Switch this notebook'),
        trans.__(
          'Give this notebook the kernel “Python (restricted)”. Its present variables are lost.'
        )
      ],
      [
        'own',
        trans.__('Run here'),
        trans.__(
          'Keep this kernel and approve each cell. What you approve can do all that you can.'
        )
      ]
    ];
    return (
      <fieldset className="jp-dm-KernelChoices">
        <legend>{this._message}</legend>
        {choices
          .filter(([choice]) => this._hasRestricted || choice === 'own')
          .map(([choice, label, detail]) => (
            <label key={choice}>
              <input
                type="radio"
                name="jp-dm-kernel"
                value={choice}
                defaultChecked={choice === this._choice}
                onChange={() => {
                  this._choice = choice;
                }}
              />
              <strong>{label}</strong> {detail}
            </label>
          ))}
      </fieldset>
    );
  }

  private _choice: Choice;
}
