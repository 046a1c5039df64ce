import { isCodeCellModel } from '@jupyterlab/cells';
import type { ICodeCellModel } from '@jupyterlab/cells';
import { NotebookModel } from '@jupyterlab/notebook';

import { applyOperation } from '../notebook/operations';
import { insertCell, printed } from './messages';

const PERSONS = ['first', 'second'];

function notebook(): NotebookModel {
  const model = new NotebookModel();
  model.sharedModel.insertCells(
    0,
    PERSONS.map(id => ({ id, cell_type: 'code', source: id, metadata: {} }))
  );
  return model;
}

function ids(model: NotebookModel): string[] {
  return model.sharedModel.cells.map(cell => cell.getId());
}

function cell(model: NotebookModel, id: string): ICodeCellModel {
  const found = Array.from(model.cells).find(one => one.id === id);
  if (!found || !isCodeCellModel(found)) {
    throw new Error(`there is no code cell ${id}`);
  }
  return found;
}

describe('applyOperation', () => {
  let model: NotebookModel;

  beforeEach(() => {
    // The shared model reads each new cell before it is in a document, and is warned of it.
    jest.spyOn(console, 'warn').mockImplementation();
    model = notebook();
  });

  afterEach(() => {
    model.dispose();
    jest.restoreAllMocks();
  });

  it('inserts below the first anchor that is there', () => {
    applyOperation(insertCell('new', 'x', ['gone', 'first']), model);
    expect(ids(model)).toEqual(['first', 'new', 'second']);
  });

  it('inserts at the end when no anchor is there', () => {
    applyOperation(insertCell('new', 'x', ['gone']), model);
    expect(ids(model)).toEqual(['first', 'second', 'new']);
  });

  it('inserts a cell once', () => {
    applyOperation(insertCell('new', 'x'), model);
    applyOperation(insertCell('new', 'y'), model);
    expect(ids(model)).toEqual(['first', 'second', 'new']);
    expect(cell(model, 'new').sharedModel.getSource()).toBe('x');
  });

  it('keeps the mark of a cell, and what its outputs print untrusted', () => {
    applyOperation(insertCell('new'), model);
    expect(cell(model, 'new').getMetadata('dm_jupyter').role).toBe('cell');
    expect(cell(model, 'new').trusted).toBe(false);
  });

  it('has the ids of the cells saved with the notebook', () => {
    expect(model.nbformatMinor).toBe(4);
    applyOperation(insertCell('new'), model);
    expect(model.toJSON().cells.map(one => one.id)).toEqual([
      ...PERSONS,
      'new'
    ]);
  });

  it('inserts Markdown without what only code has', () => {
    applyOperation(insertCell('text', '# Title', [], 'markdown'), model);
    const json = model.sharedModel.cells[2].toJSON();
    expect(json.cell_type).toBe('markdown');
    expect(json).not.toHaveProperty('outputs');
  });

  it('can’t be undone with the person’s own undo', () => {
    applyOperation(insertCell('new'), model);
    model.sharedModel.undo();
    expect(ids(model)).toContain('new');
  });

  it('joins the pieces of one stream', () => {
    applyOperation(insertCell('new'), model);
    applyOperation(printed('new', 'a\n'), model);
    applyOperation(printed('new', 'b\n'), model);
    const outputs = cell(model, 'new').outputs.toJSON();
    expect(outputs).toEqual([
      { output_type: 'stream', name: 'stdout', text: 'a\nb\n' }
    ]);
    // What is saved is the shared model.
    expect(cell(model, 'new').sharedModel.getOutputs()).toEqual(outputs);
  });

  it('replaces and clears outputs', () => {
    applyOperation(insertCell('new'), model);
    applyOperation(printed('new', 'a'), model);
    const output = {
      output_type: 'display_data',
      data: { 'text/plain': '2' },
      metadata: {}
    };
    const replace = { op: 'replace_output', cell_id: 'new', output } as const;
    applyOperation({ ...replace, index: 5 }, model);
    expect(cell(model, 'new').outputs.get(0).type).toBe('stream');
    applyOperation({ ...replace, index: 0 }, model);
    expect(cell(model, 'new').sharedModel.getOutputs()).toEqual([output]);
    applyOperation({ op: 'clear_outputs', cell_id: 'new' }, model);
    expect(cell(model, 'new').sharedModel.getOutputs()).toEqual([]);
  });

  it('folds a cell, keeps its marks and shows it again at a click', () => {
    applyOperation(insertCell('new', 'x'), model);
    const fold = { op: 'fold_cell', cell_id: 'new', if_source: 'x' } as const;
    applyOperation({ ...fold, if_source: 'as the person left it' }, model);
    expect(cell(model, 'new').getMetadata('jupyter')).toBeUndefined();
    applyOperation(fold, model);
    expect(cell(model, 'new').getMetadata('jupyter')).toEqual({
      source_hidden: true,
      outputs_hidden: true
    });
    expect(cell(model, 'new').getMetadata('collapsed')).toBe(true);
    expect(cell(model, 'new').getMetadata('dm_jupyter').role).toBe('cell');
    model.sharedModel.undo();
    expect(cell(model, 'new').getMetadata('collapsed')).toBe(true);
  });

  it('folds the words of a cell that is text', () => {
    applyOperation(insertCell('text', '# Title', [], 'markdown'), model);
    applyOperation(
      { op: 'fold_cell', cell_id: 'text', if_source: '# Title' },
      model
    );
    const { metadata } = model.sharedModel.cells[2].toJSON();
    expect(metadata.jupyter).toEqual({ source_hidden: true });
  });

  it('folds no cell of the person’s', () => {
    applyOperation(
      { op: 'fold_cell', cell_id: 'first', if_source: 'first' },
      model
    );
    expect(cell(model, 'first').getMetadata('jupyter')).toBeUndefined();
  });

  it('shows a cell running, then its number', () => {
    applyOperation(insertCell('new'), model);
    const change = { op: 'set_execution', cell_id: 'new' } as const;
    applyOperation(
      { ...change, is_running: true, execution_count: null },
      model
    );
    expect(cell(model, 'new').executionState).toBe('running');
    applyOperation({ ...change, is_running: false, execution_count: 7 }, model);
    expect(cell(model, 'new').executionState).toBe('idle');
    expect(cell(model, 'new').executionCount).toBe(7);
  });

  it('changes the text of its own cell only', () => {
    applyOperation(insertCell('new', 'x'), model);
    applyOperation({ op: 'set_source', cell_id: 'new', source: 'y' }, model);
    applyOperation({ op: 'set_source', cell_id: 'first', source: 'y' }, model);
    expect(cell(model, 'new').sharedModel.getSource()).toBe('y');
    expect(cell(model, 'first').sharedModel.getSource()).toBe('first');
  });

  it('deletes a cell only while it has the text that it was given', () => {
    applyOperation(insertCell('new', 'x'), model);
    const remove = { op: 'delete_cell', cell_id: 'new' } as const;
    applyOperation({ ...remove, if_source: 'other' }, model);
    expect(ids(model)).toContain('new');
    applyOperation({ ...remove, if_source: 'x' }, model);
    expect(ids(model)).toEqual(PERSONS);
  });

  it('never deletes a cell of the person’s', () => {
    const operation = { op: 'delete_cell', if_source: null } as const;
    applyOperation({ ...operation, cell_id: 'first' }, model);
    expect(ids(model)).toEqual(PERSONS);
  });

  it('does nothing to a cell that is gone', () => {
    applyOperation(printed('gone', 'a'), model);
    applyOperation({ op: 'clear_outputs', cell_id: 'gone' }, model);
    applyOperation(
      { op: 'delete_cell', cell_id: 'gone', if_source: null },
      model
    );
    expect(ids(model)).toEqual(PERSONS);
  });
});
