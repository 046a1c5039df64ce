/**
 * What the person runs in a kernel without its notebook, as in a console beside it.
 */
import type { ILabShell } from '@jupyterlab/application';
import type { ISessionContext } from '@jupyterlab/apputils';
import { NotebookPanel } from '@jupyterlab/notebook';
import type { Kernel, KernelMessage, Session } from '@jupyterlab/services';
import type { Widget } from '@lumino/widgets';

/** What `followConsoles` needs of the page: `layoutModified` comes with each new widget. */
export type ConsoleShell = Pick<ILabShell, 'layoutModified' | 'widgets'>;

/**
 * Calls back with a kernel's id when this page asks the kernel to run code, other than a
 * notebook's: what the person may not see, such as the questions of an inspector, does not count.
 *
 * Only what this page sends counts. What comes from a kernel could be forged there.
 */
export function followConsoles(
  shell: ConsoleShell,
  onRun: (kernelId: string) => void
): void {
  const known = new WeakSet<Widget>();
  const sessions = new WeakSet<Session.ISessionConnection>();
  const onMessage = (
    { kernel }: Session.ISessionConnection,
    { direction, msg }: Kernel.IAnyMessageArgs
  ) => {
    if (direction === 'send' && kernel && isSeen(msg)) {
      onRun(kernel.id);
    }
  };
  const follow = (session: Session.ISessionConnection | null) => {
    if (session && !sessions.has(session)) {
      sessions.add(session);
      session.anyMessage.connect(onMessage);
    }
  };
  const look = () => {
    for (const widget of shell.widgets('main')) {
      const { sessionContext } = widget as { sessionContext?: ISessionContext };
      const isNotebook = widget instanceof NotebookPanel;
      if (sessionContext && !isNotebook && !known.has(widget)) {
        known.add(widget);
        follow(sessionContext.session);
        sessionContext.sessionChanged.connect((_, { newValue }) =>
          follow(newValue)
        );
      }
    }
  };
  shell.layoutModified.connect(look);
  look();
}

/** Whether a message runs code that stays in the kernel's history. */
function isSeen({ content, header }: KernelMessage.IMessage): boolean {
  if (header.msg_type !== 'execute_request') {
    return false;
  }
  const asked = content as KernelMessage.IExecuteRequestMsg['content'];
  return !asked.silent && asked.store_history !== false;
}
