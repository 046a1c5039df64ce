import type { Notebook } from '@jupyterlab/notebook';

import { anchors } from '../cells';

/** A notebook of `id` cells of the person's and `id@run` cells of runs, one of them active. */
function notebookOf(active: number, ...texts: string[]): Notebook {
  const parts = texts.map(text => text.split('@'));
  const cells = parts.map(([, run]) => ({
    getMetadata: () => (run ? { run, role: 'cell' } : undefined)
  }));
  const widgets = parts.map(([id]) => ({ model: { id } }));
  const model = { sharedModel: { cells } };
  return { model, widgets, activeCellIndex: active } as unknown as Notebook;
}

describe('anchors', () => {
  it('are the active cell and those above it', () => {
    expect(anchors(notebookOf(1, 'a', 'b', 'c'), null)).toEqual(['b', 'a']);
  });

  it('begin with the last cell of the run to follow', () => {
    const notebook = notebookOf(0, 'a', 'q@r1', 'b', 'x@r2', 'y@r2', 'c');
    const below = ['y', 'x', 'b', 'q', 'a'];
    expect(anchors(notebook, 'r2')).toEqual(below);
  });

  it('go by the active cell when that run has no cells left', () => {
    const notebook = notebookOf(1, 'a', 'b', 'c', 'x@r2');
    expect(anchors(notebook, 'gone')).toEqual(['b', 'a']);
  });

  it('do not part the active cell from the runs that were asked from it', () => {
    const notebook = notebookOf(0, 'a', 'x@r1', 'y@r1', 'z@r2', 'b');
    expect(anchors(notebook, null)).toEqual(['z', 'y', 'x', 'a']);
  });

  it("are a run's cell where the person has selected that", () => {
    const notebook = notebookOf(1, 'a', 'x@r1', 'y@r1', 'b');
    expect(anchors(notebook, null)).toEqual(['x', 'a']);
  });

  it('are none in a notebook without cells', () => {
    expect(anchors(notebookOf(-1), null)).toEqual([]);
  });
});
