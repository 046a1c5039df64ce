/**
 * Waiting for the kernel of an open notebook.
 */
import type { NotebookPanel } from '@jupyterlab/notebook';

/** For a person who is asked which kernel to start; then how often it is looked at. */
const CHOICE_MS = 10_000;

/**
 * Resolves when the notebook's kernel has started, or none will: the person has chosen no kernel,
 * or has closed the notebook. The session's own `ready` does not settle then, and its `initialize`
 * must not be called before the document has told it which kernel it wants.
 *
 * @param signal Ends the wait.
 */
export async function kernelSettled(
  panel: Pick<NotebookPanel, 'context' | 'sessionContext'>,
  signal?: AbortSignal
): Promise<void> {
  const { context, sessionContext } = panel;
  if (sessionContext.isDisposed) {
    return;
  }
  let giveUp = () => undefined as void;
  const givenUp = new Promise<void>(resolve => {
    giveUp = resolve;
  });
  const onClosed = () => giveUp();
  sessionContext.disposed.connect(onClosed);
  signal?.addEventListener('abort', onClosed);
  let timer: ReturnType<typeof setInterval> | undefined;
  try {
    await Promise.race([context.ready, givenUp]);
    timer = setInterval(() => {
      // One that is starting either starts or fails, which makes the session ready.
      if (sessionContext.hasNoKernel) {
        giveUp();
      }
    }, CHOICE_MS);
    await Promise.race([sessionContext.ready, givenUp]);
  } finally {
    clearInterval(timer);
    sessionContext.disposed.disconnect(onClosed);
    signal?.removeEventListener('abort', onClosed);
  }
}
