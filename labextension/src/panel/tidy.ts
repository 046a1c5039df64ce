/**
 * *Tidy the notebook*: the server runs the cells that the answer needs again and writes a copy.
 */
import { Notification } from '@jupyterlab/apputils';
import type { ICellModel } from '@jupyterlab/cells';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';

import { saveAlone } from '../notebook/disk';
import { MARK } from '../notebook/operations';
import type { IAnalyst } from '../model/tokens';
import type { Workspace } from '../model/workspace';

const LONGEST_WAIT_MS = 5000;

/** What tidying works with. */
export interface ITidyOptions {
  readonly analyst: IAnalyst;
  readonly workspace: Workspace;
  readonly trans: TranslationBundle;
}

/**
 * Writes the tidy copy of a notebook and opens it; progress, *Cancel* and what came of it are shown
 * as a notification.
 *
 * @param runId The run whose answer is meant; an empty text for the last one.
 */
export async function tidyNotebook(
  path: string,
  runId: string,
  options: ITidyOptions
): Promise<void> {
  const { analyst, trans, workspace } = options;
  const stopping = new AbortController();
  const id = Notification.emit(trans.__('Tidying %1…', path), 'in-progress', {
    autoClose: false,
    actions: [
      {
        label: trans.__('Cancel'),
        callback: event => {
          event.preventDefault(); // the notification stays until the end is known
          stopping.abort();
        }
      }
    ]
  });
  const end = (message: string, type: Notification.TypeOptions) => {
    Notification.update({ id, message, type, autoClose: false, actions: [] });
  };
  try {
    const panel = analyst.panel(path);
    if (panel) {
      await untilAnswerIsThere(panel, runId);
      // The server reads the file. A notebook that changed while it was saved is not marked dirty.
      await saveAlone(panel.context);
    }
    const tidied = await analyst.rest.tidy(path, runId, stopping.signal, line =>
      Notification.update({
        id,
        message: trans.__('Tidying %1: %2', path, line)
      })
    );
    if (!tidied) {
      throw new Error(
        trans.__('The server stopped before the notebook was tidy.')
      );
    }
    end(
      trans.__('%1: %2.', tidied.notebook, tidied.words),
      tidied.is_same ? 'success' : 'warning'
    );
    await workspace.openNotebook(tidied.notebook);
  } catch (error) {
    if (stopping.signal.aborted) {
      end(trans.__('Nothing was written: tidying was cancelled.'), 'info');
    } else {
      end((error as Error).message, 'error');
    }
  }
}

/** Waits until the notebook has the answer that the panel already shows; gives up after seconds. */
async function untilAnswerIsThere(
  panel: NotebookPanel,
  runId: string
): Promise<void> {
  const isAnswer = (cell: ICellModel) => {
    const { role, run } = cell.getMetadata(MARK) ?? {};
    return role === 'answer' && run === runId;
  };
  const end = Date.now() + LONGEST_WAIT_MS;
  while (runId && Date.now() < end) {
    if (Array.from(panel.content.model?.cells ?? []).some(isAnswer)) {
      return;
    }
    await new Promise(resolve => setTimeout(resolve, 50));
  }
}
