/**
 * The panel's words for what cells did to files. Paths come from a kernel, and are only shown.
 */
import { PathExt } from '@jupyterlab/coreutils';
import type { TranslationBundle } from '@jupyterlab/translation';

import { shownPath } from './invisible';
import type { IFileChange, IKernelMeter } from '../protocol.gen';

/** What became of a file: `discarded` where nobody said yes, `refused` where nobody is asked. */
export type Fate = 'waits' | 'written' | 'discarded' | 'refused';

const NAMED = 5;
const UNITS: readonly string[] = ['B', 'kB', 'MB', 'GB', 'TB'];
/** Files that JupyterLab shows as a table or a picture; what else is text, as text. */
const TABLES_AND_PICTURES: readonly string[] = [
  ...['.csv', '.tsv'],
  ...['.png', '.jpg', '.jpeg', '.gif', '.webp', '.bmp']
];
const TEXTS: readonly string[] = ['.json', '.jsonl', '.txt', '.log', '.md'];

/** The files, what is lost first, then what is special, then plain new ones. */
export function inOrder(files: readonly IFileChange[]): IFileChange[] {
  return [...files].sort((one, other) => rank(one) - rank(other));
}

function rank({ kind, marks, state }: IFileChange): number {
  const isPlain = state === 'written' && marks.length === 0;
  return { removed: 0, changed: 1, made: isPlain ? 3 : 2 }[kind];
}

/** How JupyterLab opens a file on a click; `null` where it does not, as with a program. */
export function viewerOf(file: IFileChange, fate: Fate): 'own' | 'text' | null {
  const isThere = fate === 'written' && file.kind !== 'removed';
  if (!isThere || file.marks.length > 0) {
    return null;
  }
  const ending = PathExt.extname(file.path).toLowerCase();
  if (TABLES_AND_PICTURES.includes(ending)) {
    return 'own';
  }
  return TEXTS.includes(ending) ? 'text' : null;
}

/** What became of a file, its size and what is special about it: `changed · 20 B → 5 B`. */
export function changeWords(
  file: IFileChange,
  fate: Fate,
  trans: TranslationBundle
): string {
  const isDone = fate === 'waits' || fate === 'written';
  const parts = isDone
    ? [doneWords(file, trans), sizes(file)]
    : [undoneWords(file, trans), fateWords(fate, trans)];
  const marks = file.marks.map(mark => markWords(mark, trans));
  return [...parts, ...marks].filter(Boolean).join(' · ');
}

function doneWords(file: IFileChange, trans: TranslationBundle): string {
  switch (file.kind) {
    case 'made':
      return trans.__('new');
    case 'changed':
      return trans.__('changed');
    case 'removed':
      return trans.__('removed');
  }
}

function undoneWords(file: IFileChange, trans: TranslationBundle): string {
  switch (file.kind) {
    case 'made':
      return trans.__('not made');
    case 'changed':
      return trans.__('not changed');
    case 'removed':
      return trans.__('not removed');
  }
}

function fateWords(fate: Fate, trans: TranslationBundle): string {
  return fate === 'discarded' ? trans.__('discarded') : trans.__('refused');
}

/** The sizes that are known: of a kernel without a layer only the names are. */
function sizes({ before_bytes, kind, size_bytes }: IFileChange): string {
  if (kind === 'made') {
    return size_bytes > 0 ? sizeWords(size_bytes) : '';
  }
  if (before_bytes === null) {
    return '';
  }
  const before = sizeWords(before_bytes);
  return kind === 'removed' ? before : `${before} → ${sizeWords(size_bytes)}`;
}

/** A size, short: `512 B`, `1.5 kB`, `23 MB`. */
export function sizeWords(bytes: number): string {
  let size = bytes;
  let unit = 0;
  while (size >= 999.5 && unit < UNITS.length - 1) {
    size /= 1000;
    unit += 1;
  }
  const digits = unit > 0 && size < 9.95 ? 1 : 0;
  return `${size.toFixed(digits)} ${UNITS[unit]}`;
}

function markWords(mark: string, trans: TranslationBundle): string {
  switch (mark) {
    case 'code':
      return trans.__('a program');
    case 'executable':
      return trans.__('can be run as a program');
    case 'a link':
      return trans.__('a link');
    case 'may run code when it is opened':
      return trans.__('may run code when it is opened');
    case 'a notebook that was there':
      return trans.__('a notebook that was there before');
    case 'programs run or obey it unasked':
      return trans.__('programs run or obey it unasked');
    default:
      // Names of modules and files are a kernel's words.
      return shownPath(mark);
  }
}

/** How many files met which fate: `1 removed, 3 new`. */
export function countWords(
  files: readonly IFileChange[],
  fateOf: (file: IFileChange) => Fate,
  trans: TranslationBundle
): string {
  const counts = new Map<string, number>();
  for (const file of inOrder(files)) {
    const fate = fateOf(file);
    const isDone = fate === 'waits' || fate === 'written';
    const words = isDone ? doneWords(file, trans) : fateWords(fate, trans);
    counts.set(words, (counts.get(words) ?? 0) + 1);
  }
  return [...counts].map(([words, count]) => `${count} ${words}`).join(', ');
}

/** The first few names, and how many more there are. */
export function namesWords(
  files: readonly IFileChange[],
  trans: TranslationBundle
): string {
  const names = inOrder(files)
    .slice(0, NAMED)
    .map(file => shownPath(file.path));
  const more = files.length - names.length;
  return more > 0
    ? trans.__('%1 and %2 more', names.join(', '), more)
    : names.join(', ');
}

/** Tells of files that the folder did not take from code that no run ran. */
export function leftOutWords(
  files: readonly IFileChange[],
  trans: TranslationBundle
): string {
  return trans._n(
    '%1 file that code of the notebook changed outside of a run was not taken: %2.',
    '%1 files that code of the notebook changed outside of a run were not taken: %2.',
    files.length,
    namesWords(files, trans)
  );
}

/** What nobody sees of a cell's writing where no layer collects it; empty where one does. */
export function unseenWords(
  meter: IKernelMeter | null,
  trans: TranslationBundle
): string {
  return meter?.is_restricted &&
    meter.layers_missing.includes('workspace_layer')
    ? trans.__(
        'On this machine, cells write straight into your folder. Whether a cell overwrites or deletes files is judged by reading its code, which misses some ways to do it.'
      )
    : '';
}
