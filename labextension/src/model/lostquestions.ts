/**
 * Questions that left on a connection that has gone since. A socket whose network is gone takes
 * messages as before, so only what comes after the next attaching tells whether they arrived.
 */
import type { TranslationBundle } from '@jupyterlab/translation';

import type { AnalystModel } from './model';
import type { IAsk, IRefused, ServerMessage } from '../protocol.gen';

/** Returns what tells of a lost question, as if it had been refused. */
export function refusalOf(ask: IAsk, trans: TranslationBundle): IRefused {
  return {
    kind: 'refused',
    request_id: ask.request_id,
    reason: 'unknown',
    message: trans.__(
      'the connection broke while “%1” was on its way: send it again if no run answers it',
      ask.question
    ),
    files: [],
    candidates: []
  };
}

/** Follows sent questions over a break, and tells of those that no run came of. */
export class LostQuestions {
  constructor(
    private readonly _model: AnalystModel,
    private readonly _onLost: (ask: IAsk) => void
  ) {}

  /** A question has left. */
  sent(ask: IAsk): void {
    this._sent.add(ask.request_id);
  }

  /** The connection is gone. */
  cutOff(): void {
    this._sent.forEach(requestId => this._unsure.add(requestId));
    this._sent.clear();
    this._runsOf.clear();
  }

  /** Takes a message that the model has taken in already. */
  receive(message: ServerMessage): void {
    if (message.kind === 'attached') {
      // The messages of these runs follow, as far as this tab lacks them.
      this._runsOf.set(message.notebook_path, Object.keys(message.in_file));
    } else if ('seq' in message && message.seq > 0) {
      this._heardOf.add(message.run_id);
    } else {
      return;
    }
    this._unsure.forEach(requestId => this._look(requestId));
  }

  private _look(requestId: string): void {
    const ask = this._model.pendingAsk(requestId);
    if (!ask) {
      this._unsure.delete(requestId);
      return;
    }
    const runs = this._runsOf.get(ask.notebook_path);
    if (runs?.every(runId => this._heardOf.has(runId))) {
      this._unsure.delete(requestId);
      this._onLost(ask);
    }
  }

  /** Requests that left on the present connection. */
  private readonly _sent = new Set<string>();
  /** Requests that left on an earlier one, and may have got lost. */
  private readonly _unsure = new Set<string>();
  /** The runs that the server follows, by notebook, since the connection came. */
  private readonly _runsOf = new Map<string, readonly string[]>();
  private readonly _heardOf = new Set<string>();
}
