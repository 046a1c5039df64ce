/**
 * What a run does to a notebook, done to the model of an open one.
 *
 * Operations name their cell by its id, never "the current one". They reach only cells that carry
 * the run's mark, so a cell of the person's is never touched; one on a cell that is gone does
 * nothing.
 */
import type { ISharedNotebook, YNotebook } from '@jupyter/ydoc';
import { isCodeCellModel } from '@jupyterlab/cells';
import type { ICellModel, ICodeCellModel } from '@jupyterlab/cells';
import type { IOutput } from '@jupyterlab/nbformat';
import type { INotebookModel } from '@jupyterlab/notebook';
import type { JSONObject } from '@lumino/coreutils';

import type {
  IDeleteCell,
  IFoldCell,
  IInsertCell,
  ISetExecution,
  Operation
} from '../protocol.gen';

/** Key of a cell's metadata that marks it as a run's. */
export const MARK = 'dm_jupyter';

/** The first minor version of format 4 in which each cell has an id. */
const MINOR_WITH_IDS = 5;

/** Returns the place of a cell in the notebook, or -1. */
export function indexOfCell(notebook: INotebookModel, cellId: string): number {
  return notebook.sharedModel.cells.findIndex(cell => cell.getId() === cellId);
}

/**
 * Applies one operation.
 *
 * Outputs stay untrusted: what a restricted kernel prints must not run as a script in this page,
 * which can do all that the person can.
 */
export function applyOperation(
  operation: Operation,
  notebook: INotebookModel
): void {
  switch (operation.op) {
    case 'insert_cell':
      insertCell(operation, notebook);
      return;
    case 'delete_cell':
      deleteCell(operation, notebook);
      return;
    case 'fold_cell':
      foldCell(operation, notebook);
      return;
  }
  const cell = ownCell(notebook, operation.cell_id);
  if (cell && operation.op === 'set_source') {
    setSource(operation.source, cell);
  } else if (cell && isCodeCellModel(cell)) {
    changeOutcome(operation, cell);
  }
}

function changeOutcome(operation: Operation, cell: ICodeCellModel): void {
  const { outputs } = cell;
  switch (operation.op) {
    case 'append_output':
      outputs.add(operation.output as IOutput);
      return;
    case 'replace_output':
      if (operation.index < outputs.length) {
        outputs.set(operation.index, operation.output as IOutput);
      }
      return;
    case 'clear_outputs':
      outputs.clear();
      return;
    case 'set_execution':
      setExecution(operation, cell);
  }
}

/** Leaves a cell that has the text already as it is: the caret in it would move. */
function setSource(source: string, cell: ICellModel): void {
  if (cell.sharedModel.getSource() !== source) {
    cell.sharedModel.setSource(source);
  }
}

function ownCell(notebook: INotebookModel, cellId: string): ICellModel | null {
  const index = indexOfCell(notebook, cellId);
  const cell = index < 0 ? null : notebook.cells.get(index);
  return cell?.getMetadata(MARK) ? cell : null;
}

function insertCell(operation: IInsertCell, notebook: INotebookModel): void {
  if (indexOfCell(notebook, operation.cell_id) >= 0) {
    return;
  }
  const anchor = operation.after
    .map(cellId => indexOfCell(notebook, cellId))
    .find(index => index >= 0);
  const { sharedModel } = notebook;
  const place = anchor === undefined ? sharedModel.cells.length : anchor + 1;
  const isCode = operation.cell_type === 'code';
  // Not undoable: the person's Undo takes back what they did; a run is undone as one.
  sharedModel.transact(() => {
    keepIds(sharedModel);
    sharedModel.insertCell(place, {
      id: operation.cell_id,
      cell_type: operation.cell_type,
      source: operation.source,
      metadata: { ...operation.metadata },
      ...(isCode ? { outputs: [], execution_count: null } : {})
    });
  }, false);
}

/** A notebook of an older format is saved without the ids that the next operations go by. */
function keepIds(notebook: ISharedNotebook): void {
  if (notebook.nbformat === 4 && notebook.nbformat_minor < MINOR_WITH_IDS) {
    (notebook as YNotebook).nbformat_minor = MINOR_WITH_IDS;
  }
}

function deleteCell(operation: IDeleteCell, notebook: INotebookModel): void {
  const cell = ownCell(notebook, operation.cell_id);
  if (!cell) {
    return;
  }
  const { if_source: source } = operation;
  if (source === null || cell.sharedModel.getSource() === source) {
    const { sharedModel } = notebook;
    const index = indexOfCell(notebook, operation.cell_id);
    sharedModel.transact(() => sharedModel.deleteCell(index), false);
  }
}

/**
 * Folds a cell as JupyterLab does, which a click undoes; a cell that the person changed stays.
 */
function foldCell(operation: IFoldCell, notebook: INotebookModel): void {
  const cell = ownCell(notebook, operation.cell_id);
  if (!cell || cell.sharedModel.getSource() !== operation.if_source) {
    return;
  }
  const kept = cell.getMetadata('jupyter') as JSONObject | undefined;
  const isCode = isCodeCellModel(cell);
  const outputs = isCode ? { outputs_hidden: true } : {};
  const jupyter = { ...kept, source_hidden: true, ...outputs };
  if (isCode) {
    // By itself, and first: a cell that hides its source writes back whether its outputs are hidden.
    notebook.sharedModel.transact(
      () => cell.setMetadata('collapsed', true),
      false
    );
  }
  notebook.sharedModel.transact(
    () => cell.setMetadata('jupyter', jupyter),
    false
  );
}

function setExecution(operation: ISetExecution, cell: ICodeCellModel): void {
  if (operation.is_running) {
    cell.executionCount = null;
    cell.executionState = 'running';
    return;
  }
  cell.executionState = 'idle';
  cell.executionCount = operation.execution_count;
}
