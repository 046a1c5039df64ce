/**
 * What the analyst reads in an open notebook.
 */
import type { ISharedCell } from '@jupyter/ydoc';
import { isCodeCellModel } from '@jupyterlab/cells';
import type { Cell, ICodeCellModel } from '@jupyterlab/cells';
import { isError } from '@jupyterlab/nbformat';
import type { IError } from '@jupyterlab/nbformat';
import type { Notebook, NotebookPanel } from '@jupyterlab/notebook';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';

import { MARK } from './operations';
import type { IAsk, INotebookCell, PartKind } from '../protocol.gen';

const ANCHORS = 20;
const MOST_CELLS = 200;
const MOST_CHARS = 4_000;
const NOTHING: INotebookCell = {
  kind: '',
  source: '',
  output: '',
  count: null,
  role: '',
  id: '',
  figures: []
};
/** Figures that the server puts in words: they come as JSON, or in a page with a script. */
const FIGURE_TYPE = /^application\/vnd\.(plotly|vegalite|vega)\.v[\d.]+\+json$/;
const FIGURE_PAGE = /vega-embed|Plotly\.newPlot\(/;
const MOST_FIGURES = 12;
/** Of the figures of all cells together; the server takes a little more. */
const MOST_FIGURE_CHARS = 900_000;

/** An error that stands in a cell's outputs. */
export interface ICellError {
  readonly source: string;
  readonly name: string;
  readonly value: string;
}

/**
 * Returns the cells below which to write, nearest first: the last cell of the run to follow, if it
 * still has one, else the active cell. Where a run stands right below the active cell, its cells
 * come first: what is new may use what they made, and must run after them.
 */
export function anchors(
  notebook: Notebook,
  followed: string | null,
  active = notebook.activeCellIndex
): string[] {
  const { widgets } = notebook;
  const runs = (notebook.model?.sharedModel.cells ?? []).map(runOf);
  let last = followed === null ? -1 : runs.lastIndexOf(followed);
  if (last < 0) {
    last = active;
    const isInRun = Boolean(runs[last]);
    while (!isInRun && runs[last + 1]) {
      last += 1;
    }
  }
  return widgets
    .slice(0, last + 1)
    .reverse()
    .slice(0, ANCHORS)
    .map(cell => cell.model.id);
}

/** The run that wrote a cell; empty for a cell of the person's. */
function runOf(cell: ISharedCell): string {
  const mark = cell.getMetadata(MARK) as { run?: unknown } | undefined;
  return typeof mark?.run === 'string' ? mark.run : '';
}

/**
 * Returns the cells around the active one, as the server is told of them; what is withheld does not
 * leave the browser.
 */
export function notebookView(
  notebook: Notebook,
  withheld: PartKind[],
  active: number
): Pick<IAsk, 'cells' | 'selected' | 'withheld'> {
  const { widgets } = notebook;
  const isTold = (index: number) =>
    !withheld.includes(index === active ? 'selection' : 'cells');
  const first = Math.max(0, active - MOST_CELLS / 2);
  const near = widgets.slice(first, first + MOST_CELLS);
  const cells = near.map((cell, place) =>
    isTold(first + place) ? told(cell) : { ...NOTHING }
  );
  return {
    cells: withFewFigures(cells, active - first),
    selected: active - first,
    withheld
  };
}

/** Keeps the figures nearest to a cell; of the others it is said that they are too large. */
function withFewFigures(
  cells: INotebookCell[],
  selected: number
): INotebookCell[] {
  let count = MOST_FIGURES;
  let chars = MOST_FIGURE_CHARS;
  const keep = (figure: string) => {
    const fits = count > 0 && figure.length <= chars;
    count -= 1;
    chars -= fits ? figure.length : 0;
    return fits ? figure : '';
  };
  const kept = [...cells];
  const far = (place: number) => Math.abs(place - selected);
  for (const place of [...cells.keys()].sort((a, b) => far(a) - far(b))) {
    const figures = cells[place].figures.slice(0, MOST_FIGURES).map(keep);
    kept[place] = { ...cells[place], figures };
  }
  return kept;
}

function told(cell: Cell): INotebookCell {
  const { model } = cell;
  const own = model.getMetadata('dm_jupyter') as { role?: string } | undefined;
  const isCode = isCodeCellModel(model);
  return {
    kind: model.type,
    source: cut(model.sharedModel.getSource()),
    output: isCode ? cut(outputText(model)) : '',
    count: isCode ? model.executionCount : null,
    role: own?.role ?? '',
    id: model.id,
    figures: isCode ? figuresOf(model) : []
  };
}

/** The bundles of a cell's figures that are no pictures, as JSON. */
function figuresOf(cell: ICodeCellModel): string[] {
  const found: string[] = [];
  for (let index = 0; index < cell.outputs.length; index += 1) {
    const { data } = cell.outputs.get(index);
    const type = figureType(data);
    if (type) {
      found.push(JSON.stringify({ [type]: data[type] }));
    }
  }
  return found;
}

/** The media type in which an output holds a figure; none for a picture and for what is no figure. */
function figureType(data: ReadonlyPartialJSONObject): string | undefined {
  const kinds = Object.keys(data);
  const page = data['text/html'];
  return (
    kinds.find(kind => FIGURE_TYPE.test(kind)) ??
    (typeof page === 'string' && FIGURE_PAGE.test(page)
      ? 'text/html'
      : undefined)
  );
}

/** The cell's outputs as a model reads them: texts, errors, a word for a picture. */
function outputText(cell: ICodeCellModel): string {
  const texts: string[] = [];
  for (let index = 0; index < cell.outputs.length; index += 1) {
    const { data, type } = cell.outputs.get(index);
    const error = data['application/vnd.jupyter.error'];
    const text =
      data['application/vnd.jupyter.stdout'] ??
      data['application/vnd.jupyter.stderr'] ??
      data['text/plain'];
    if (type === 'error' && error) {
      const { ename, evalue } = error as unknown as IError;
      texts.push(`${ename}: ${evalue}`);
    } else if (figureType(data)) {
      continue; // the server puts it in words
    } else if (Object.keys(data).some(kind => kind.startsWith('image/'))) {
      // A restricted kernel tells what it shows; others give the name of a class.
      const isTold = typeof text === 'string' && !text.startsWith('<');
      texts.push(isTold ? `[a figure. ${text}]` : '[a figure]');
    } else if (typeof text === 'string') {
      texts.push(text);
    }
  }
  return texts.join('\n');
}

/** Keeps the ends of a long text; the server cuts it to what the model has room for. */
function cut(text: string): string {
  return text.length <= MOST_CHARS
    ? text
    : `${text.slice(0, MOST_CHARS / 2)}\n…\n${text.slice(-MOST_CHARS / 2)}`;
}

/** Returns the text that a cell has in the open notebook, or `null` where there is none. */
export function liveSource(
  panel: NotebookPanel | null,
  cellId: string
): string | null {
  const cells = panel?.content.model?.sharedModel.cells ?? [];
  return cells.find(cell => cell.getId() === cellId)?.getSource() ?? null;
}

/** Returns the error that a cell ended with, or `null`. */
export function errorOf(cell: Cell | null): ICellError | null {
  // The active cell of a notebook that is being closed has lost its outputs already.
  if (!cell || cell.model.isDisposed || !isCodeCellModel(cell.model)) {
    return null;
  }
  const output = lastError(cell.model);
  return output
    ? {
        source: cell.model.sharedModel.getSource(),
        name: output.ename,
        value: output.evalue
      }
    : null;
}

function lastError(cell: ICodeCellModel): IError | null {
  for (let index = cell.outputs.length - 1; index >= 0; index -= 1) {
    const output = cell.outputs.get(index);
    if (output.type === 'error') {
      const raw = output.toJSON();
      return isError(raw) ? raw : null;
    }
  }
  return null;
}

/** Fences a cell's text, with a fence longer than any in it. */
export function fenced(source: string, language = 'python'): string {
  const longest = Math.max(
    2,
    ...(source.match(/`+/g) ?? []).map(x => x.length)
  );
  const fence = '`'.repeat(longest + 1);
  return `${fence}${language}\n${source}\n${fence}`;
}

/** Words the question about a cell's error; English, because the model reads it. */
export function errorQuestion(
  error: ICellError,
  wish: 'explain' | 'fix'
): string {
  const opening =
    wish === 'fix'
      ? 'Fix the error in this cell and run the corrected cell:'
      : 'Explain the error in this cell, do not run anything unless needed:';
  return `${opening}\n\n${fenced(error.source)}\n\n${error.name}: ${error.value}`;
}

/** Returns the id of the active cell. */
export function cursorOf(panel: NotebookPanel): string {
  const { activeCellIndex, widgets } = panel.content;
  return widgets[activeCellIndex]?.model.id ?? '';
}

/** The place of the cell at which a question was asked; of the active one, where it is gone. */
export function placeOf(panel: NotebookPanel, cursor: string): number {
  const { activeCellIndex, widgets } = panel.content;
  const place = widgets.findIndex(cell => cell.model.id === cursor);
  return place < 0 ? activeCellIndex : place;
}

/** Returns the id of the notebook's kernel; empty where there is none. */
export function kernelOf(panel: NotebookPanel | null): string {
  return panel?.sessionContext.session?.kernel?.id ?? '';
}
