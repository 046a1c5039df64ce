/**
 * The notebook's file as another hand may have left it.
 */
import type { DocumentRegistry } from '@jupyterlab/docregistry';
import type { ICell, INotebookContent } from '@jupyterlab/nbformat';
import type { INotebookModel } from '@jupyterlab/notebook';
import type { Contents } from '@jupyterlab/services';
import { JSONExt } from '@lumino/coreutils';
import type { JSONArray } from '@lumino/coreutils';

import { MARK } from './operations';

export type NotebookContext = DocumentRegistry.IContext<INotebookModel>;

/** Whether the file is another one than the document was loaded from or saved as. */
export async function differsFromDisk(
  context: NotebookContext,
  contents: Contents.IManager
): Promise<boolean> {
  const known = context.contentsModel;
  const disk = await contents.get(context.path, { content: false, hash: true });
  if (!known) {
    return false;
  }
  return known.hash && disk.hash
    ? known.hash !== disk.hash
    : known.last_modified !== disk.last_modified;
}

/**
 * Whether all that the person wrote into the document is in the file as well, so that reading the
 * file again loses nothing of theirs.
 *
 * @param isRuns Whether a run wrote this source into the cell: then the person did not.
 */
export async function isWhollyOnDisk(
  context: NotebookContext,
  contents: Contents.IManager,
  isRuns: (cellId: string, source: string) => boolean
): Promise<boolean> {
  if (!context.model.dirty) {
    return true;
  }
  const { content } = await contents.get(context.path, { content: true });
  const disk = content as INotebookContent;
  const live = context.model.toJSON() as INotebookContent;
  const onDisk = new Map(disk.cells.map(cell => [cell.id, sourceOf(cell)]));
  return (
    JSONExt.deepEqual(personsCells(live), personsCells(disk)) &&
    live.cells
      .filter(isMarked)
      .every(
        cell =>
          onDisk.get(cell.id) === sourceOf(cell) ||
          isRuns(String(cell.id), sourceOf(cell))
      )
  );
}

function isMarked(cell: ICell): boolean {
  return cell.metadata[MARK] !== undefined;
}

function sourceOf({ source }: ICell): string {
  return Array.isArray(source) ? source.join('') : source;
}

/** What a person writes into and gets out of the cells that are not a run's. */
function personsCells(notebook: INotebookContent): JSONArray {
  return notebook.cells
    .filter(cell => !isMarked(cell))
    .map(
      ({ cell_type, id, outputs, source }) =>
        [cell_type, id, outputs ?? [], source] as JSONArray
    );
}

type Save = () => Promise<void>;

/** How the saves of a document, and what goes with one, come one after the other. */
const turns = new WeakMap<
  NotebookContext,
  (task: (save: Save) => Promise<void>) => Promise<void>
>();

/**
 * Does what a save needs, and saves, after all saves that were asked for before; those that the
 * person asks for from now on queue as well. Two saves at once make the document ask whether to
 * overwrite the file, because the second finds on disk what the first has just written (`Context`
 * of JupyterLab 4.6, and none of its versions queues saves).
 */
async function inTurn(
  context: NotebookContext,
  task: (save: Save) => Promise<void>
): Promise<void> {
  let enter = turns.get(context);
  if (!enter) {
    const save = context.save.bind(context);
    let last: Promise<void> = Promise.resolve();
    enter = next => (last = last.catch(() => undefined).then(() => next(save)));
    context.save = () => saveAlone(context);
    turns.set(context, enter);
  }
  await enter(task);
}

/** Saves the document, never while another save of it works. */
export async function saveAlone(context: NotebookContext): Promise<void> {
  await inTurn(context, save => save());
}

/**
 * Saves the document over what the analyst's server wrote, all of which the document holds.
 *
 * The context compares the file's hash, and its time where there is no hash, with what it last
 * saw, and asks the person when they differ. A rename of the file to its own name changes nothing
 * on disk and makes the context take over the file's present time, without a hash; the margin
 * covers a file that is written once more in between.
 */
export async function saveOver(
  context: NotebookContext,
  contents: Contents.IManager
): Promise<void> {
  await inTurn(context, async save => {
    await contents.rename(context.path, context.path);
    const margin = context.lastModifiedCheckMargin;
    context.lastModifiedCheckMargin = Number.POSITIVE_INFINITY;
    try {
      await save();
    } finally {
      context.lastModifiedCheckMargin = margin;
    }
  });
}
