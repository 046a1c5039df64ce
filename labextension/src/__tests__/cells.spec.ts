import type { Notebook } from '@jupyterlab/notebook';

import { anchors, notebookView } from '../notebook/cells';

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

describe('notebookView', () => {
  const PLOTLY = 'application/vnd.plotly.v1+json';
  const figure = (size: number) => ({
    [PLOTLY]: { data: [{ name: 'n'.repeat(size) }] },
    'text/plain': 'Figure()'
  });

  /** A notebook of code cells, each with outputs of these bundles. */
  function shown(...cells: { [type: string]: unknown }[][]): Notebook {
    const widgets = cells.map((bundles, place) => ({
      model: {
        id: String(place),
        type: 'code',
        executionCount: 1,
        sharedModel: { getSource: () => 'draw()' },
        getMetadata: () => undefined,
        outputs: {
          length: bundles.length,
          get: (index: number) => ({
            type: 'display_data',
            data: bundles[index]
          })
        }
      }
    }));
    return { widgets, activeCellIndex: 0 } as unknown as Notebook;
  }

  it('sends figures that come as JSON or in a page beside the text', () => {
    const page = '<div class="vega-embed"></div>';
    const notebook = shown([
      figure(1),
      { 'text/html': page, 'text/plain': 'alt.Chart(...)' },
      { 'text/html': '<table>', 'text/plain': 'a table' },
      { 'image/png': 'AAAA', 'text/plain': '<Figure>' }
    ]);
    const [cell] = notebookView(notebook, [], 0).cells!;
    expect(cell.output).toBe('a table\n[a figure]');
    expect(cell.figures.map(text => JSON.parse(text))).toEqual([
      { [PLOTLY]: { data: [{ name: 'n' }] } },
      { 'text/html': page }
    ]);
    const { cells } = notebookView(notebook, ['selection'], 0);
    expect(cells![0].figures).toEqual([]);
  });

  it('leaves out what is too large, the farthest first', () => {
    const large = figure(400_000);
    const notebook = shown([large], [figure(2_000_000)], [large], [large]);
    const { cells } = notebookView(notebook, [], 3);
    const sizes = cells!.map(cell => cell.figures.map(text => text.length > 0));
    expect(sizes).toEqual([[false], [false], [true], [true]]);
  });
});
