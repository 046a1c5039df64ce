/**
 * What a batch of operations means for the view of the notebook.
 */
import type { NotebookPanel } from '@jupyterlab/notebook';

import { indexOfCell } from './operations';
import type { Operation } from '../protocol.gen';

/**
 * Brings the last new cell into view, unless the person is at work in the notebook: their active
 * cell and their place are left alone.
 */
export function showInserted(
  panel: NotebookPanel,
  operations: readonly Operation[]
): void {
  const inserted = operations.filter(one => one.op === 'insert_cell');
  const last = inserted[inserted.length - 1];
  const model = panel.content.model;
  if (!last || !model || panel.node.contains(document.activeElement)) {
    return;
  }
  const index = indexOfCell(model, last.cell_id);
  if (index >= 0 && panel.isVisible) {
    panel.content.scrollToItem(index, 'smart').catch(() => {
      // The person scrolls at the same time.
    });
  }
}

/** Scrolls to a cell and selects it, because the person asked for it. */
export async function goToCell(
  panel: NotebookPanel,
  cellId: string
): Promise<boolean> {
  const { content } = panel;
  const index = content.model ? indexOfCell(content.model, cellId) : -1;
  const cell = content.widgets[index];
  if (!cell) {
    return false;
  }
  await content.scrollToCell(cell, 'smart');
  return true;
}

/** Marks, for measurements, that a cell is first shown running. */
export function markRunning(operations: readonly Operation[]): void {
  for (const operation of operations) {
    if (operation.op === 'set_execution' && operation.is_running) {
      performance.mark('dm:cell-running', {
        detail: { cellId: operation.cell_id }
      });
    }
  }
}
