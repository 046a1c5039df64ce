/**
 * What `@` in a question can name: data files beside the notebook, and variables of its kernel.
 */
import { PathExt } from '@jupyterlab/coreutils';
import type { Contents } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';

import type { AnalystRest, IVariable } from './rest';
import { folderOf } from './workspace';

const DATA_EXTENSIONS: readonly string[] = [
  '.csv',
  '.tsv',
  '.json',
  '.jsonl',
  '.parquet',
  '.xlsx',
  '.xls',
  '.ods',
  '.sqlite',
  '.sqlite3',
  '.db'
];
const LONGEST_LIST = 12;
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
  return DATA_EXTENSIONS.includes(PathExt.extname(path).toLowerCase());
}

/** Returns the mention that is being typed, or `null`. */
export function mentionAt(text: string, caret: number): IMention | null {
  const match = /(?:^|\s)@([^\s@]*)$/.exec(text.slice(0, caret));
  return match ? { start: caret - match[1].length - 1, query: match[1] } : null;
}

/** Returns the candidates that the query fits, those that begin with it first. */
export function matching(
  candidates: readonly ICandidate[],
  query: string
): readonly ICandidate[] {
  const wanted = query.toLowerCase();
  const place = (one: ICandidate) => one.label.toLowerCase().indexOf(wanted);
  return candidates
    .filter(one => place(one) >= 0)
    .sort((a, b) => Math.min(place(a), 1) - Math.min(place(b), 1))
    .slice(0, LONGEST_LIST);
}

/** Lists what a question about the notebook can name; what can't be read is left out. */
export async function listCandidates(
  path: string,
  contents: Contents.IManager,
  rest: AnalystRest,
  trans: TranslationBundle
): Promise<readonly ICandidate[]> {
  const [files, variables] = await Promise.allSettled([
    contents.get(folderOf(path), { content: true }),
    rest.variables(path)
  ]);
  const items: Contents.IModel[] =
    files.status === 'fulfilled' ? files.value.content : [];
  const names = variables.status === 'fulfilled' ? variables.value : [];
  return [
    ...items
      .filter(item => item.type === 'file' && isDataFile(item.name))
      .map(item => fileCandidate(item, trans)),
    ...names.map(variable => variableCandidate(variable))
  ];
}

function fileCandidate(
  item: Contents.IModel,
  trans: TranslationBundle
): ICandidate {
  return {
    kind: 'file',
    value: item.path,
    label: item.name,
    detail: trans.__('file')
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
