/**
 * What a step did, in one line: in the model's own words where it said something.
 */
import type { TranslationBundle } from '@jupyterlab/translation';

import type { IOutputPicture } from './outputs';
import type { IStepPicture } from './pictures';

const LONGEST = 110;
/** A sentence ends with one of these, where something else begins. */
const SENTENCE_END = /[.!?:](?=\s+\S|\s*$)/g;
/** Points that end no sentence. */
const SHORT_FORM = /(?:\b(?:e\.g|i\.e|vs|cf|approx|no|dr|mr|mrs|st)|^\d+)$/i;

/** Lines of code before what a cell is about. */
const PREPARES = /^\s*(?:import|from|%)|=\s*pd\.read_\w+\(/;

/** The part that a step has in its run, which its own messages do not tell. */
export interface IStepPlace {
  /** Whether the step's answer was sent back, so that the model looked at it again. */
  readonly isSentBack: boolean;
  /** Whether an answer before this one was sent back. */
  readonly isSecondAnswer: boolean;
}

/** Returns what the step did, for its row. */
export function stepTitle(
  step: IStepPicture,
  source: string,
  outputs: readonly IOutputPicture[],
  place: IStepPlace,
  trans: TranslationBundle
): string {
  if (step.status === 'answer') {
    return answerTitle(place, trans);
  }
  return (
    firstSentence(step.thought) ||
    comment(source) ||
    plainTitle(step, outputs, trans)
  );
}

function answerTitle(place: IStepPlace, trans: TranslationBundle): string {
  if (place.isSentBack) {
    return trans.__('Drafted an answer');
  }
  return place.isSecondAnswer
    ? trans.__('Checked the answer again')
    : trans.__('Wrote the answer');
}

function plainTitle(
  step: IStepPicture,
  outputs: readonly IOutputPicture[],
  trans: TranslationBundle
): string {
  switch (step.status) {
    case 'thinking':
      return step.text ? trans.__('Writing') : trans.__('Thinking');
    case 'waiting':
    case 'running':
      return trans.__('Wrote a cell');
    case 'void':
      return trans.__('Wrote no code');
    case 'skipped':
      return trans.__('Left a cell out');
  }
  if (!step.cellId) {
    return trans.__('Thought about it');
  }
  if (outputs.some(output => output.image)) {
    return trans.__('Drew a chart');
  }
  return step.language === 'sql'
    ? trans.__('Ran a query')
    : trans.__('Ran a cell');
}

/** The first sentence, without the marks of Markdown that a single line shows. */
export function firstSentence(text: string): string {
  const beforeCode = text.split(/^\s*```/m)[0];
  const line = beforeCode
    .split('\n')
    .map(one => plain(one))
    .find(one => /\p{L}/u.test(one));
  if (!line) {
    return '';
  }
  for (const end of line.matchAll(SENTENCE_END)) {
    if (end[0] !== '.' || !SHORT_FORM.test(line.slice(0, end.index))) {
      return shortened(line.slice(0, end.index + (end[0] === '?' ? 1 : 0)));
    }
  }
  return shortened(line);
}

/** What the code says of itself in a comment at its top. */
function comment(source: string): string {
  for (const line of source.split('\n')) {
    const found = /^\s*(?:#+(?!!)|--)\s*(.*)$/.exec(line);
    if (found) {
      return firstSentence(found[1]);
    }
    if (line.trim() && !PREPARES.test(line)) {
      break;
    }
  }
  return '';
}

/** Without marks, and without signs that turn the writing around. */
function plain(line: string): string {
  return line
    .replace(/\p{Bidi_Control}/gu, '')
    .replace(/^\s*(?:[-*+>]\s+|#+\s+|\d+[.)]\s+)*/, '')
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/[*`#]+|(?<!\w)_+|_+(?!\w)/g, '')
    .trim();
}

function shortened(text: string): string {
  const line = text.trim();
  if (line.length <= LONGEST) {
    return line;
  }
  const cut = line.slice(0, LONGEST);
  return `${cut.slice(0, Math.max(cut.lastIndexOf(' '), LONGEST / 2))}…`;
}
