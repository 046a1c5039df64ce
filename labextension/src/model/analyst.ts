/**
 * The analyst of this browser tab: the person's words to the server, and the server's to the model.
 */
import { PageConfig } from '@jupyterlab/coreutils';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { Contents, ServiceManager } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import { UUID } from '@lumino/coreutils';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

import {
  anchors,
  cursorOf,
  kernelOf,
  notebookView,
  placeOf
} from '../notebook/cells';
import { Choices, approvalOf, tellWithheld } from './choices';
import { ChannelClient } from '../channel/client';
import { saveAlone } from '../notebook/disk';
import { kernelSettled } from '../notebook/kernelstart';
import { Drafts, questionOf } from './draft';
import { LostQuestions, refusalOf } from './lostquestions';
import { AnalystModel } from './model';
import { followed } from './pictures';
import type {
  Approval,
  Decision,
  IAsk,
  IRefused,
  KernelChoice,
  ServerMessage
} from '../protocol.gen';
import { QuestionQueue } from './questionqueue';
import { tellFilesEarly } from './readahead';
import { askOrKeep } from './sending';
import { TabMemory } from './tabmemory';
import { AnalystRest } from '../channel/rest';
import type { IStatus, IToldPart } from '../channel/rest';
import { NotebookSessions } from '../notebook/sessions';
import type { IAnalyst, IQuestion } from './tokens';

/** A question that was refused, and that the person can have worked on by a choice. */
export interface IRefusedAsk {
  readonly ask: IAsk;
  readonly refusal: IRefused;
}

/** Wires the channel, the model and the open notebooks. */
export class Analyst implements IAnalyst {
  constructor(
    private readonly _tracker: INotebookTracker,
    services: ServiceManager.IManager,
    private readonly _trans: TranslationBundle
  ) {
    const { serverSettings } = services;
    this.contents = services.contents;
    this.rest = new AnalystRest(serverSettings);
    this._client = new ChannelClient(serverSettings);
    tellWithheld(this.choices, this._client);
    // Servers of other folders may have had this address before.
    const here = `${serverSettings.baseUrl}:${PageConfig.getOption('serverRoot')}`;
    const storage = window.sessionStorage;
    this.drafts = new Drafts(
      new TabMemory(storage, `dm-jupyter:drafts:${here}`)
    );
    this._sessions = new NotebookSessions(
      _tracker,
      this._client,
      this.model,
      this.rest,
      services.contents,
      _trans
    );
    this.queue = new QuestionQueue({
      model: this.model,
      caughtUp: path => this._sessions.caughtUp(path),
      send: (path, question) => this._askNow(path, question),
      storage,
      storageKey: `dm-jupyter:waiting:${here}`
    });
    this._client.received.connect(this._onMessage, this);
    this._client.connectionChanged.connect(this._onConnection, this);
    this.model.renamed.connect((_, { from, to }) =>
      this.drafts.rename(from, to)
    );
    this._sessions.opened.connect((_, path) => void this.refreshPast(path));
    _tracker.currentChanged.connect(() => {
      // What was written before there was a notebook goes on in this one.
      if (this.currentPath && !this.drafts.get(this.currentPath).text) {
        this.drafts.rename('', this.currentPath);
      }
      this._currentChanged.emit();
    });
    tellFilesEarly(this.drafts, this.choices, message =>
      this._client.send(message)
    );
  }

  readonly model = new AnalystModel();
  readonly drafts: Drafts;
  readonly choices = new Choices();
  readonly queue: QuestionQueue;
  readonly rest: AnalystRest;
  readonly contents: Contents.IManager;

  get isConnected(): boolean {
    return this._client.isConnected;
  }

  get status(): IStatus | null {
    return this._status;
  }

  get statusError(): string {
    return this._statusError;
  }

  get stateChanged(): ISignal<this, void> {
    return this._stateChanged;
  }

  get currentPanel(): NotebookPanel | null {
    return this._tracker.currentWidget;
  }

  get currentPath(): string {
    return this._tracker.currentWidget?.context.localPath ?? '';
  }

  get currentChanged(): ISignal<this, void> {
    return this._currentChanged;
  }

  /** Emits a question that the person must choose a kernel for. */
  get kernelRefused(): ISignal<this, IRefusedAsk> {
    return this._kernelRefused;
  }

  /** Emits a question about links, which the person must agree to. */
  get linkRefused(): ISignal<this, IRefusedAsk> {
    return this._linkRefused;
  }

  /** Opens the channel and reads the server's state. */
  start(): void {
    this._client.connect();
    void this.refreshStatus();
  }

  panel(path: string): NotebookPanel | null {
    return this._sessions.panel(path);
  }

  async ask(path: string, question: IQuestion): Promise<boolean> {
    const panel = this.panel(path);
    if (!panel || !this.queue.isBusy(path)) {
      return this._askNow(path, question);
    }
    const chosen = { ...this.choices.chosen, approval: this.approvalIn(path) };
    this.queue.add(path, { chosen, cursor: cursorOf(panel), ...question });
    return true;
  }

  /** Puts a question that was not sent where the person finds it; what they write stays. */
  putBack(path: string, ask: IAsk): void {
    this.queue.dropAside(ask.request_id);
    if (this._putBack(path, ask)) {
      this.queue.hold(path, 'refused');
    }
  }

  /**
   * Asks a refused question again, in the kernel that the person chose for it.
   *
   * @returns Whether it was sent.
   */
  askAgain(
    ask: IAsk,
    path: string,
    kernel: KernelChoice,
    approval: Approval = 'ask'
  ): boolean {
    const kernelId = kernelOf(this.panel(path));
    if (kernel === 'own') {
      this.choices.allowOwn(kernelId, approval);
    }
    const isElsewhere = path !== ask.notebook_path;
    return this._again({
      ...ask,
      notebook_path: path,
      after: isElsewhere ? [] : ask.after,
      approval: kernel === 'own' ? approval : ask.approval,
      kernel
    });
  }

  /**
   * Asks a refused question again, whose links the person has seen and agreed to.
   *
   * @returns Whether it was sent.
   */
  askAgreed(ask: IAsk, leadTo: readonly string[]): boolean {
    const agreed = new Set([...(ask.agreed ?? []), ...leadTo]);
    return this._again({ ...ask, agreed: [...agreed] });
  }

  async askWanted(path: string): Promise<boolean> {
    const { wanted } = this.model.notebook(path);
    if (!wanted || !this.isConnected) {
      return false;
    }
    this.model.unwant(path);
    const { files, question } = wanted;
    const place = { analyst: this, path, trans: this._trans };
    return askOrKeep(place, {
      text: question,
      files: files.map(file => file.name),
      agreed: files.map(file => file.leads_to),
      // Not the person but code wrote the question.
      approval: this.choices.approval === 'ask' ? 'ask' : 'risky'
    });
  }

  /** Tells the server that the person runs code of their own: it writes into the folder unasked. */
  ranOwn(isMeant: (panel: NotebookPanel) => boolean): void {
    const panel = this._tracker.find(isMeant);
    if (panel) {
      const { localPath } = panel.context;
      this._client.send({ kind: 'own_cell', notebook_path: localPath });
    }
  }

  get cellSelected(): ISignal<unknown, unknown> {
    return this._tracker.activeCellChanged;
  }

  selectedCell(path: string): string {
    return this.panel(path)?.content.activeCell?.model.id ?? '';
  }

  async preview(path: string): Promise<readonly IToldPart[]> {
    const panel = this.panel(path);
    return panel
      ? this.rest.context(this._askFor(panel, path, this.drafts.get(path)))
      : [];
  }

  approvalIn(path: string): Approval {
    const own = this.choices.ownApproval(kernelOf(this.panel(path)));
    return own ?? this.choices.approval;
  }

  setApproval(path: string, approval: Approval): void {
    const kernelId = kernelOf(this.panel(path));
    if (this.choices.ownApproval(kernelId) === null) {
      this.choices.approval = approval;
    } else {
      this.choices.allowOwn(kernelId, approval);
    }
  }

  stop(runId: string): void {
    this.model.stopping(runId);
    this._client.send({ kind: 'stop', run_id: runId });
  }

  decide(
    runId: string,
    cellId: string,
    decision: Decision,
    source?: string
  ): void {
    const word = { run_id: runId, cell_id: cellId, decision };
    this._client.send({ kind: 'decide', ...word, source: source ?? null });
  }

  decideFiles(runId: string, cellId: string, allows: boolean): void {
    const word = { run_id: runId, cell_id: cellId, allows };
    this._client.send({ kind: 'decide_files', ...word });
  }

  undo(runId: string): void {
    this._client.send({ kind: 'undo', run_id: runId });
  }

  async rebuild(runId: string): Promise<void> {
    const context = this.panel(this.model.pathOf(runId) ?? '')?.context;
    if (context?.model.dirty) {
      // The server takes the cells from the file.
      await saveAlone(context);
    }
    this._client.send({ kind: 'rebuild', run_id: runId });
  }

  takeOver(path: string): void {
    this._client.send({ kind: 'take_over', notebook_path: path });
  }

  async refreshStatus(): Promise<void> {
    try {
      this._status = await this.rest.status();
      this._statusError = '';
    } catch (error) {
      this._statusError = String((error as Error).message ?? error);
    }
    this._stateChanged.emit();
  }

  async refreshPast(path: string): Promise<void> {
    try {
      this.model.setPast(path, await this.rest.runs(path));
    } catch (error) {
      // The panel's state tells the person that the server does not answer.
      console.warn('The runs of the notebook could not be listed', error);
    }
  }

  async reopen(path: string, runId: string): Promise<void> {
    this.model.reopen(path, await this.rest.messages(runId));
  }

  private async _askNow(path: string, question: IQuestion): Promise<boolean> {
    const panel = this.panel(path);
    if (!panel || !this.isConnected) {
      return false;
    }
    performance.mark('dm:enter');
    const ask = this._askFor(panel, path, question);
    this._cursors.set(ask.request_id, question.cursor ?? cursorOf(panel));
    const stopping = new AbortController();
    const line = this._trans.__('Waiting for the notebook’s kernel…');
    this.model.preparing(ask, line, () => stopping.abort());
    // The server runs cells in the session that the notebook has by now, under its name by now.
    this._setAside(ask);
    await kernelSettled(panel, stopping.signal).finally(() =>
      this.queue.dropAside(ask.request_id)
    );
    const asked = { ...ask, notebook_path: panel.context.localPath };
    if (!stopping.signal.aborted && !panel.isDisposed) {
      this.model.asked(asked);
      return this._send(asked);
    }
    this.model.settle(asked.notebook_path);
    if (panel.isDisposed) {
      return false;
    }
    throw new Error(this._trans.__('waiting for the kernel was stopped'));
  }

  private _askFor(
    panel: NotebookPanel,
    path: string,
    question: IQuestion
  ): IAsk {
    const { chosen, withheld } = this.choices;
    const { approval, ...asked } = question.chosen ?? chosen;
    const own = this.choices.ownApproval(kernelOf(panel));
    const cursor = question.cursor ?? cursorOf(panel);
    const place = placeOf(panel, cursor);
    const notebook = this.model.notebook(panel.context.localPath);
    return {
      kind: 'ask',
      request_id: UUID.uuid4(),
      notebook_path: path,
      question: question.text,
      files: [...(question.files ?? [])],
      variables: [...(question.variables ?? [])],
      after: anchors(
        panel.content,
        followed(notebook, place, id => this._cursors.get(id) === cursor),
        place
      ),
      ...asked,
      ...notebookView(panel.content, withheld, place),
      approval: approvalOf(own, question, approval),
      kernel: own ? 'own' : 'restricted',
      agreed: [...(question.agreed ?? [])],
      tries: question.tries ?? 1,
      ...(question.withoutData ? { without_data: true } : {})
    };
  }

  /** What stands between the person's Enter and the server may take long, and no reload ends it. */
  private _setAside(ask: IAsk): void {
    const { notebook_path, request_id } = ask;
    const question = questionOf(ask, this._cursors.get(request_id));
    this.queue.setAside(request_id, notebook_path, question);
  }

  private _again(ask: IAsk): boolean {
    this.queue.dropAside(ask.request_id);
    const again: IAsk = { ...ask, request_id: UUID.uuid4() };
    const cursor = this._cursors.get(ask.request_id);
    if (cursor !== undefined) {
      this._cursors.set(again.request_id, cursor);
    }
    this.model.asked(again);
    return this._send(again);
  }

  /** Returns whether the question is in the field; it waits in the queue where that is taken. */
  private _putBack(path: string, ask: IAsk): boolean {
    if (!this.drafts.get(path).text) {
      this.drafts.putBack(path, ask);
      return true;
    }
    const question = questionOf(ask, this._cursors.get(ask.request_id));
    this.queue.putFirst(path, question, 'refused');
    return false;
  }

  private _send(ask: IAsk): boolean {
    const isSent = this._client.send(ask);
    if (isSent) {
      this._lost.sent(ask);
    } else {
      this.model.settle(ask.notebook_path);
    }
    return isSent;
  }

  private _onMessage(_: ChannelClient, message: ServerMessage): void {
    if (message.kind === 'refused') {
      if (message.reason === 'model') {
        // The panel shows what the model lacks by now.
        void this.refreshStatus();
      }
      const ask = this.model.pendingAsk(message.request_id);
      const choice = this._choices[message.reason];
      if (ask && choice) {
        this.model.settle(ask.notebook_path);
        this._setAside(ask);
        choice.emit({ ask, refusal: message });
        return;
      }
      if (ask && !this._putBack(ask.notebook_path, ask)) {
        // The field holds another question, which the refusal is not about.
        this.model.settle(ask.notebook_path);
        this.model.notify(ask.notebook_path, message.message);
        return;
      }
      this.queue.hold(ask?.notebook_path ?? '', 'refused');
    } else if (message.kind === 'kernel_ended') {
      this.queue.hold(message.notebook_path, 'kernel');
    } else if (message.kind === 'run_closed') {
      this.drafts.dropKept(message.run_id);
    }
    this.model.receive(message);
    this._sessions.receive(message);
    this._lost.receive(message);
  }

  /** As if it had been refused; if its run has come and gone meanwhile, that is among the past. */
  private _onLost(ask: IAsk): void {
    this._onMessage(this._client, refusalOf(ask, this._trans));
    void this.refreshPast(ask.notebook_path);
  }

  private _onConnection(_: ChannelClient, isConnected: boolean): void {
    if (!isConnected) {
      // The connection may have taken the word along; said twice, it does no harm.
      this.model
        .stoppingRuns()
        .forEach(runId => this._client.send({ kind: 'stop', run_id: runId }));
      this._lost.cutOff();
    } else if (this._statusError) {
      void this.refreshStatus();
    }
    this._stateChanged.emit();
  }

  private readonly _client: ChannelClient;
  private readonly _sessions: NotebookSessions;
  private readonly _lost = new LostQuestions(this.model, ask =>
    this._onLost(ask)
  );
  /** Where the person stood when they asked, by the question's request. */
  private readonly _cursors = new Map<string, string>();
  private _status: IStatus | null = null;
  private _statusError = '';
  private _stateChanged = new Signal<this, void>(this);
  private _currentChanged = new Signal<this, void>(this);
  private _kernelRefused = new Signal<this, IRefusedAsk>(this);
  private _linkRefused = new Signal<this, IRefusedAsk>(this);
  /** Refusals that are a question to the person. */
  private readonly _choices: {
    readonly [reason in IRefused['reason']]?: Signal<this, IRefusedAsk>;
  } = {
    kernel: this._kernelRefused,
    no_kernel: this._kernelRefused,
    link: this._linkRefused
  };
}
