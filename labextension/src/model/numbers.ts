import type { TranslationBundle } from '@jupyterlab/translation';

import type { IAnswerNumber } from '../protocol.gen';

const DOUBTFUL: readonly string[] = ['unsupported', 'mismatched'];

/**
 * Makes numbers of a rendered answer lead to the cells that they come from, and marks those that
 * the outputs do not bear out.
 */
export function linkNumbers(
  node: HTMLElement,
  answer: string,
  numbers: readonly IAnswerNumber[],
  trans: TranslationBundle,
  show: (cellId: string) => void
): void {
  const characters = Array.from(answer);
  const wanted = numbers.map(number => ({
    number,
    // The server counts characters, JavaScript halves of some of them.
    place: occurrences(answer, number.text).indexOf(
      characters.slice(0, number.start).join('').length
    )
  }));
  const seen = new Map<string, number>();
  const texts = new Set(numbers.map(number => number.text));
  for (const text of textsIn(node)) {
    const found: { at: number; number: IAnswerNumber }[] = [];
    for (const written of texts) {
      for (const at of occurrences(text.data, written)) {
        const place = seen.get(written) ?? 0;
        seen.set(written, place + 1);
        const match = wanted.find(
          one => one.number.text === written && one.place === place
        );
        if (match) {
          found.push({ at, number: match.number });
        }
      }
    }
    // From the end: what stands before keeps its place.
    found.sort((one, other) => other.at - one.at);
    for (const { at, number } of found) {
      wrap(text, at, number, trans, show);
    }
  }
}

/** Returns where a number stands in a text, and not a part of a longer one. */
function occurrences(text: string, written: string): number[] {
  const found: number[] = [];
  for (
    let at = text.indexOf(written);
    at >= 0;
    at = text.indexOf(written, at + written.length)
  ) {
    const before = text.slice(Math.max(0, at - 1), at);
    const after = text.slice(at + written.length, at + written.length + 2);
    if (!/[\w.]/.test(before) && !/^(?:\w|[.,]\d)/.test(after)) {
      found.push(at);
    }
  }
  return found;
}

function textsIn(node: HTMLElement): Text[] {
  const found: Text[] = [];
  const walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    found.push(walker.currentNode as Text);
  }
  return found;
}

function wrap(
  text: Text,
  at: number,
  number: IAnswerNumber,
  trans: TranslationBundle,
  show: (cellId: string) => void
): void {
  const { cell_id: cellId, verdict } = number;
  const isDoubtful = DOUBTFUL.includes(verdict);
  // What stands in a link already leads somewhere else.
  if ((!cellId && !isDoubtful) || text.parentElement?.closest('a')) {
    return;
  }
  const rest = text.splitText(at);
  rest.splitText(number.text.length);
  const element = document.createElement(cellId ? 'button' : 'span');
  element.className = 'jp-dm-Number';
  element.dataset.verdict = verdict;
  element.title = titleOf(number, trans);
  if (cellId) {
    (element as HTMLButtonElement).type = 'button';
    element.addEventListener('click', () => show(cellId));
  }
  rest.replaceWith(element);
  element.append(rest);
}

function titleOf(number: IAnswerNumber, trans: TranslationBundle): string {
  const { cell_id: cellId, full, verdict, why } = number;
  if (verdict === 'mismatched') {
    return trans.__('At odds with the outputs: %1', why);
  }
  if (verdict === 'unsupported') {
    return trans.__('Not found in the outputs');
  }
  const shows = trans.__('Show the cell that it comes from');
  const more = [full, why].filter(Boolean).join('; ');
  return more && cellId ? `${shows} (${more})` : shows;
}
