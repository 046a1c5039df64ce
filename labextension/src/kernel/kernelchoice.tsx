/**
 * What to do with a question when the notebook's kernel is not restricted. Nothing is switched
 * unless the person says so.
 */
import { Dialog, showDialog } from '@jupyterlab/apputils';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';
import { HTMLSelect, ReactWidget } from '@jupyterlab/ui-components';
import type { ReactElement } from 'react';

import type { Analyst, IRefusedAsk } from '../model/analyst';
import { approvalOptions } from '../model/choices';
import type { Approval, IAsk, IRefused } from '../protocol.gen';
import { restartRestricted } from './rerun';
import { asSentence } from '../model/wording';
import { RESTRICTED_KERNEL, folderOf } from '../model/workspace';
import type { Workspace } from '../model/workspace';

type Place = 'rerun' | 'own' | 'new' | 'switch' | 'here';

/** What the person chose. */
interface IChoice {
  readonly place: Place;
  /** Which cells wait, in a kernel that is not restricted. */
  readonly approval: Approval;
}

/** The kernel that was started last for a notebook that had none. */
const started = new WeakMap<NotebookPanel, string>();

/** Asks the person, and does what they chose; a question that is not sent is put back. */
export async function chooseKernel(
  kernelRefusal: IRefusedAsk,
  analyst: Analyst,
  workspace: Workspace,
  trans: TranslationBundle
): Promise<void> {
  const { refusal } = kernelRefusal;
  const notebook = analyst.panel(kernelRefusal.ask.notebook_path);
  /** The question, under the name that its notebook has by now. */
  const named = (): IAsk => {
    const { ask } = kernelRefusal;
    const notebook_path = notebook?.context.localPath ?? ask.notebook_path;
    return { ...ask, notebook_path };
  };
  let path = '';
  let problem = '';
  try {
    let choice: IChoice | null = { place: 'here', approval: 'ask' };
    if (refusal.reason === 'no_kernel') {
      await startKernel(notebook, analyst, refusal, trans);
    } else {
      choice = await chosen(kernelRefusal, analyst, workspace, trans);
    }
    if (choice) {
      const { approval, place } = choice;
      path = await placeFor(place, named, notebook, analyst, workspace, trans);
      const kernel = place === 'own' ? 'own' : 'restricted';
      if (analyst.askAgain(named(), path, kernel, approval)) {
        return;
      }
      problem = trans.__('there is no connection to the analyst');
    }
  } catch (error) {
    problem = (error as Error).message ?? String(error);
  }
  const ask = named();
  path ||= ask.notebook_path;
  analyst.model.settle(ask.notebook_path);
  analyst.putBack(path, ask);
  if (problem) {
    const text = trans.__('“%1” was not sent: %2', ask.question, problem);
    analyst.model.notify(path, text);
  }
}

/** Starts a kernel of the notebook's own kind where it has none; nothing can be lost by that. */
async function startKernel(
  panel: NotebookPanel | null,
  analyst: Analyst,
  refusal: IRefused,
  trans: TranslationBundle
): Promise<void> {
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
  analyst.model.notify(panel.context.localPath, text);
}

/** Returns what the person chose; `null` when they would rather not ask. */
async function chosen(
  { refusal }: IRefusedAsk,
  analyst: Analyst,
  workspace: Workspace,
  trans: TranslationBundle
): Promise<IChoice | null> {
  // Where no layer holds, because the sandbox is switched off, the choice would come back.
  const hasRestricted =
    workspace.hasRestrictedKernel &&
    analyst.status?.containment.active.length !== 0;
  const result = await showDialog<IChoice>({
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
  place: Place,
  named: () => IAsk,
  panel: NotebookPanel | null,
  analyst: Analyst,
  workspace: Workspace,
  trans: TranslationBundle
): Promise<string> {
  if (place === 'rerun' && panel) {
    const stopping = new AbortController();
    const stop = () => stopping.abort();
    const left = await restartRestricted(
      panel,
      workspace,
      line => analyst.model.preparing(named(), line, stop),
      stopping.signal,
      trans
    );
    if (left > 0) {
      const words = trans._n(
        '%1 cell with %analyze was not run again: what it returned is not there.',
        '%1 cells with %analyze were not run again: what they returned is not there.',
        left
      );
      analyst.model.notify(named().notebook_path, words);
    }
  } else if (place === 'switch') {
    await panel?.sessionContext.changeKernel({ name: RESTRICTED_KERNEL });
  } else if (place === 'new') {
    const made = await workspace.newNotebook(folderOf(named().notebook_path));
    if (!made) {
      throw new Error(trans.__('the new notebook is not open in this page'));
    }
    return made.context.localPath;
  }
  return named().notebook_path;
}

/** The body of the dialog. */
class KernelChoices extends ReactWidget implements Dialog.IBodyWidget<IChoice> {
  constructor(
    private readonly _message: string,
    private readonly _hasRestricted: boolean,
    private readonly _trans: TranslationBundle
  ) {
    super();
    this._place = _hasRestricted ? 'rerun' : 'own';
  }

  getValue(): IChoice {
    return { place: this._place, approval: this._approval };
  }

  protected override render(): ReactElement {
    const trans = this._trans;
    return (
      <fieldset className="jp-dm-KernelChoices">
        <legend>{this._message}</legend>
        {this._hasRestricted &&
          this._choice(
            'rerun',
            trans.__(
              'Restart as restricted and run the notebook’s cells again'
            ),
            trans.__(
              'The cells that have run make your variables once more, in order. What they show stays as it is. If one fails, the notebook keeps the kernel that it has.'
            )
          )}
        {this._choice(
          'own',
          trans.__('Run here'),
          trans.__(
            'Keep this kernel and its variables. What the analyst’s cells do there can be all that you can do.'
          )
        )}
        <div className="jp-dm-KernelChoices-more">
          <HTMLSelect
            aria-label={trans.__('Which cells wait for you')}
            defaultValue={this._approval}
            onChange={event => {
              this._approval = event.target.value as Approval;
            }}
            options={approvalOptions(trans)}
          />
        </div>
        {this._hasRestricted && (
          <details>
            <summary>{trans.__('Without the variables')}</summary>
            {this._choice(
              'new',
              trans.__('New notebook'),
              trans.__('Ask in a new notebook with a restricted kernel.')
            )}
            {this._choice(
              'switch',
              trans.__('Switch this notebook'),
              trans.__(
                'Give this notebook the kernel “Python (restricted)”. Its present variables are lost.'
              )
            )}
          </details>
        )}
      </fieldset>
    );
  }

  private _choice(place: Place, label: string, detail: string): ReactElement {
    return (
      <label>
        <input
          type="radio"
          name="jp-dm-kernel"
          value={place}
          defaultChecked={place === this._place}
          onChange={() => {
            this._place = place;
          }}
        />
        <strong>{label}</strong> {detail}
      </label>
    );
  }

  private _place: Place;
  private _approval: Approval = 'ask';
}
