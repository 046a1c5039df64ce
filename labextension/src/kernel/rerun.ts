/**
 * Gives a notebook a restricted kernel that holds what its cells make. The cells run there first;
 * the notebook keeps its own kernel until all of them have worked, so that nothing is lost.
 */
import { isCodeCellModel } from '@jupyterlab/cells';
import type { ICodeCellModel } from '@jupyterlab/cells';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { Kernel } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';

import type { Workspace } from '../model/workspace';

/** Cells that ask the analyst: run again, they would begin a new run. */
const ASKS = /^\s*(?:[^\s=]+\s*=\s*)?%%?analyze\b/m;
const REASON_CHARS = 300;

interface IRanCell {
  readonly count: number;
  readonly source: string;
}

/**
 * Returns how many cells were left out because they ask the analyst.
 *
 * Runs the cells that have run without an error, in their order, in a new restricted kernel, and
 * switches the notebook to it. What the notebook shows stays as it is.
 *
 * @param onProgress Called with a line before each cell.
 * @param signal Ends it: the new kernel ends with the cell that it runs.
 * @throws Error where a cell failed, it was ended or no kernel came; the notebook has its own kernel
 *   then.
 */
export async function restartRestricted(
  panel: NotebookPanel,
  workspace: Workspace,
  onProgress: (line: string) => void,
  signal: AbortSignal,
  trans: TranslationBundle
): Promise<number> {
  onProgress(trans.__('Starting a restricted kernel…'));
  const { context, sessionContext } = panel;
  const ran = ranCells(panel);
  const cells = ran.filter(({ source }) => !ASKS.test(source));
  const kernel = await workspace.startRestrictedKernel(context.localPath);
  const end = () => void kernel.shutdown().catch(() => undefined);
  signal.addEventListener('abort', end);
  try {
    for (const [place, cell] of cells.entries()) {
      checkStopped(signal, trans);
      onProgress(
        trans.__('Running cell %1 of %2 again…', place + 1, cells.length)
      );
      await runAgain(kernel, cell, trans);
    }
    checkStopped(signal, trans);
    signal.removeEventListener('abort', end);
    await sessionContext.changeKernel({ id: kernel.id });
    return ran.length - cells.length;
  } catch (error) {
    await kernel.shutdown().catch(() => undefined);
    // What a cell says whose kernel was ended is not what went wrong.
    checkStopped(signal, trans);
    throw error;
  } finally {
    kernel.dispose();
  }
}

function checkStopped(signal: AbortSignal, trans: TranslationBundle): void {
  if (signal.aborted) {
    throw new Error(
      trans.__(
        'running the cells again was stopped. The notebook keeps its own kernel, with all variables.'
      )
    );
  }
}

function ranCells(panel: NotebookPanel): IRanCell[] {
  return panel.content.widgets
    .map(cell => cell.model)
    .filter(isCodeCellModel)
    .filter(model => model.executionCount !== null && !hasFailed(model))
    .map(model => ({
      count: model.executionCount ?? 0,
      source: model.sharedModel.getSource()
    }));
}

function hasFailed({ outputs }: ICodeCellModel): boolean {
  for (let index = 0; index < outputs.length; index += 1) {
    if (outputs.get(index).type === 'error') {
      return true;
    }
  }
  return false;
}

async function runAgain(
  kernel: Kernel.IKernelConnection,
  { count, source }: IRanCell,
  trans: TranslationBundle
): Promise<void> {
  const failed = (reason: string) =>
    new Error(
      trans.__(
        'cell [%1] failed when run again in a restricted kernel (%2). The notebook keeps its own kernel, with all variables.',
        count,
        reason.slice(0, REASON_CHARS)
      )
    );
  let content;
  try {
    const future = kernel.requestExecute({ code: source, allow_stdin: false });
    content = (await future.done).content;
  } catch {
    throw failed(trans.__('the kernel ended'));
  }
  if (content.status === 'error') {
    throw failed(`${content.ename}: ${content.evalue}`);
  }
  if (content.status !== 'ok') {
    throw failed(trans.__('it was stopped'));
  }
}
