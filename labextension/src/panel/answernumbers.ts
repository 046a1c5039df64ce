/**
 * Numbers in a notebook's answers lead to the cells that they come from, as they do in the panel.
 */
import { MarkdownCell } from '@jupyterlab/cells';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';

import { linkNumbers } from '../model/numbers';
import { MARK } from '../notebook/operations';
import { goToCell } from '../notebook/showing';
import type { IAnswerNumber } from '../protocol.gen';

const HEADING = /^## Answer\n\n/;
const MOST_NUMBERS = 200;

/** Links the numbers of all answers in notebooks that are open, or that will be. */
export function linkAnswers(
  tracker: INotebookTracker,
  trans: TranslationBundle
): void {
  const follow = (panel: NotebookPanel) => {
    const known = new WeakSet<MarkdownCell>();
    const look = () => {
      for (const cell of panel.content.widgets) {
        if (cell instanceof MarkdownCell && !known.has(cell)) {
          known.add(cell);
          keepLinked(cell, panel, trans);
        }
      }
    };
    void panel.context.ready.then(() => {
      if (panel.isDisposed) {
        return;
      }
      look();
      panel.content.model?.cells.changed.connect(look);
    });
  };
  tracker.forEach(follow);
  tracker.widgetAdded.connect((_, panel) => follow(panel));
}

/** Links the numbers of a cell each time that it is drawn, if it is an answer. */
function keepLinked(
  cell: MarkdownCell,
  panel: NotebookPanel,
  trans: TranslationBundle
): void {
  const { node } = cell.renderer;
  const link = () => {
    const numbers = numbersOf(cell.model.getMetadata(MARK));
    if (numbers.length > 0 && !node.querySelector('.jp-dm-Number')) {
      const source = cell.model.sharedModel.getSource();
      const answer = source.replace(HEADING, '').replace(/\\\$/g, '$');
      linkNumbers(node, answer, numbers, trans, id => void goToCell(panel, id));
    }
  };
  const observer = new MutationObserver(link);
  observer.observe(node, { childList: true, subtree: true });
  cell.disposed.connect(() => observer.disconnect());
  link();
}

/** The numbers that an answer's metadata hold, which may be a stranger's. */
function numbersOf(mark: unknown): IAnswerNumber[] {
  const { numbers, role } = (mark ?? {}) as Record<string, unknown>;
  if (role !== 'answer' || !Array.isArray(numbers)) {
    return [];
  }
  return numbers.slice(0, MOST_NUMBERS).filter(isNumber);
}

function isNumber(one: unknown): one is IAnswerNumber {
  const { cell_id, full, start, text, verdict, why } = (one ?? {}) as Record<
    string,
    unknown
  >;
  const texts = [cell_id ?? '', text, verdict, why, full ?? ''];
  return (
    texts.every(value => typeof value === 'string') &&
    text !== '' &&
    Number.isInteger(start)
  );
}
