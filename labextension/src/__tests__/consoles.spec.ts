import { NotebookPanel } from '@jupyterlab/notebook';
import { Signal } from '@lumino/signaling';

import { followConsoles } from '../kernel/consoles';
import type { ConsoleShell } from '../kernel/consoles';

interface ISaid {
  readonly direction: string;
  readonly msg: unknown;
}

class FakeSession {
  constructor(id: string) {
    this.kernel = { id };
  }

  readonly kernel: { id: string };
  readonly anyMessage = new Signal<this, ISaid>(this);

  say(part: object = {}, msg_type = 'execute_request', direction = 'send') {
    const content = { silent: false, store_history: true, ...part };
    const msg = { header: { msg_type }, content };
    this.anyMessage.emit({ direction, msg });
  }
}

/** A widget with a session; a notebook where it is made so. */
function widgetOf(session: FakeSession | null, prototype: object = {}) {
  const sessionContext = {
    session,
    sessionChanged: new Signal<object, object>({})
  };
  return Object.create(prototype, {
    sessionContext: { value: sessionContext }
  });
}

describe('followConsoles', () => {
  let widgets: { sessionContext: { sessionChanged: Signal<object, object> } }[];
  let layoutModified: Signal<object, void>;
  let ran: string[];

  beforeEach(() => {
    widgets = [];
    layoutModified = new Signal<object, void>({});
    ran = [];
    const shell = { layoutModified, widgets: () => widgets.values() };
    followConsoles(shell as unknown as ConsoleShell, id => ran.push(id));
  });

  it('tells once of what a console runs, in each kernel that it comes to have', () => {
    const first = new FakeSession('kernel-1');
    const second = new FakeSession('kernel-2');
    widgets = [widgetOf(first)];
    layoutModified.emit();
    layoutModified.emit();
    first.say();
    widgets[0].sessionContext.sessionChanged.emit({ newValue: second });
    second.say();
    expect(ran).toEqual(['kernel-1', 'kernel-2']);
  });

  it('tells of nothing that a kernel says, that is asked unseen or is a notebook’s', () => {
    const session = new FakeSession('kernel-1');
    const notebook = new FakeSession('kernel-2');
    widgets = [widgetOf(session), widgetOf(notebook, NotebookPanel.prototype)];
    layoutModified.emit();
    session.say({}, 'execute_request', 'recv');
    session.say({}, 'complete_request');
    session.say({ silent: true });
    session.say({ store_history: false });
    notebook.say();
    expect(ran).toEqual([]);
    session.say();
    expect(ran).toEqual(['kernel-1']);
  });
});
