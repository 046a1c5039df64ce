/**
 * What `@` in a question can name: data files below the server's folder, and variables of the kernel.
 */
import { PathExt } from '@jupyterlab/coreutils';

import type { IVariable } from '../channel/rest';

/** As `DATA_SUFFIXES` of the server has them, compressed or not. */
const DATA_NAME = new RegExp(
  '[^/]\\.(?:(?:csv|tsv|json|jsonl|ndjson|geojson|parquet|feather|arrows?' +
    '|xlsx|xlsm|xlsb|xls|ods|sqlite3?|db3?|duckdb|dta|z?sav|sas7bdat|xpt)' +
    '(?:\\.(?:gz|bz2|xz|zst))?|zip|tar\\.gz)$',
  'i'
);
const LONGEST_LIST = 8;
/** So many files are listed beside any number of variables. */
const FEWEST_FILES = 5;
const COLUMNS_SHOWN = 4;

/** Something that `@` can name. */
export interface ICandidate {
  readonly kind: 'file' | 'variable';
  /** A path as the contents API gives it, or a variable's name. */
  readonly value: string;
  readonly label: string;
  readonly detail: string;
}

/** The `@` and what follows it, where the caret stands. */
export interface IMention {
  readonly start: number;
  readonly query: string;
}

/** Whether the analyst reads files of this kind. */
export function isDataFile(path: string): boolean {
  return DATA_NAME.test(path);
}

/** Returns the mention that is being typed, or `null`. */
export function mentionAt(text: string, caret: number): IMention | null {
  const match = /(?:^|\s)@([^\s@]*)$/.exec(text.slice(0, caret));
  return match ? { start: caret - match[1].length - 1, query: match[1] } : null;
}

/**
 * Returns what fits the query: the files that the server found for it, or for the query before,
 * then the variables.
 */
export function candidatesFor(
  files: readonly string[],
  variables: readonly IVariable[],
  query: string,
  near: string
): readonly ICandidate[] {
  const wanted = query.toLowerCase();
  const place = (one: ICandidate) => one.label.toLowerCase().indexOf(wanted);
  const fitting = variables
    .map(variableCandidate)
    .filter(one => place(one) >= 0)
    .sort((a, b) => Math.min(place(a), 1) - Math.min(place(b), 1));
  const most = Math.max(FEWEST_FILES, LONGEST_LIST - fitting.length);
  return [
    ...files
      .filter(path => hasInOrder(path.toLowerCase(), wanted))
      .slice(0, most)
      .map(path => fileCandidate(path, near)),
    ...fitting
  ].slice(0, LONGEST_LIST);
}

/** Whether a text has these letters in their order, as the server's search goes by. */
function hasInOrder(text: string, letters: string): boolean {
  let place = 0;
  return [...letters].every(letter => {
    place = text.indexOf(letter, place) + 1;
    return place > 0;
  });
}

function fileCandidate(path: string, near: string): ICandidate {
  const folder = PathExt.dirname(path);
  return {
    kind: 'file',
    value: path,
    label: PathExt.basename(path),
    // Only of a file elsewhere it matters where.
    detail: folder === near ? '' : folder || '/'
  };
}

function variableCandidate(variable: IVariable): ICandidate {
  const columns = variable.columns.map(column => column.name);
  const shown = columns.slice(0, COLUMNS_SHOWN).join(', ');
  return {
    kind: 'variable',
    value: variable.name,
    label: variable.name,
    detail: [
      variable.kind,
      variable.shape.join(' × '),
      columns.length > COLUMNS_SHOWN ? `${shown}, …` : shown
    ]
      .filter(part => part)
      .join(' · ')
  };
}
