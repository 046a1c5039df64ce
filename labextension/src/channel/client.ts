/**
 * The one WebSocket to the analyst's server.
 */
import { URLExt } from '@jupyterlab/coreutils';
import type { ServerConnection } from '@jupyterlab/services';
import { JSONExt, UUID } from '@lumino/coreutils';
import type { ReadonlyJSONValue } from '@lumino/coreutils';
import type { IDisposable } from '@lumino/disposable';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

import type { ClientMessage, ServerMessage } from '../protocol.gen';

const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 15_000;

/** What the person said and the server must hear of, even after a break. */
const KEPT_KINDS: readonly ClientMessage['kind'][] = [
  'stop',
  'decide',
  'decide_files',
  'undo',
  'rebuild',
  'take_over',
  'own_cell'
];

/** Connects, reconnects with growing delays, and hands over messages. */
export class ChannelClient implements IDisposable {
  constructor(private readonly _settings: ServerConnection.ISettings) {
    // A machine that wakes up, or finds its network again, should not wait out the delay.
    window.addEventListener('online', this._retryNow);
    window.addEventListener('offline', this._giveUp);
    document.addEventListener('visibilitychange', this._retryNow);
  }

  /** Names this browser tab for as long as it lives. */
  readonly clientId = UUID.uuid4();

  /** Emits each message of the server. */
  get received(): ISignal<this, ServerMessage> {
    return this._received;
  }

  /** Emits whether the connection stands; when it comes, notebooks must attach again. */
  get connectionChanged(): ISignal<this, boolean> {
    return this._connectionChanged;
  }

  get isConnected(): boolean {
    return this._isConnected;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  connect(): void {
    if (this._socket || this._isDisposed) {
      return;
    }
    this._cancelRetry();
    const socket = new this._settings.WebSocket(this._url());
    this._socket = socket;
    socket.onopen = () => this._onOpen();
    socket.onmessage = event => this._onMessage(event);
    socket.onclose = () => this._onClose(socket);
  }

  /**
   * Sends a message; returns whether it left. Decisions of the person leave after the next
   * reconnection at the latest; all else is for whoever sends it to say again.
   */
  send(message: ClientMessage): boolean {
    if (this._socket && this._isConnected) {
      this._socket.send(JSON.stringify(message));
      return true;
    }
    if (KEPT_KINDS.includes(message.kind)) {
      // Said twice, as of each cell that is run meanwhile, only the last one counts.
      const isOther = (one: ClientMessage) =>
        !JSONExt.deepEqual(asJson(one), asJson(message));
      this._kept = [...this._kept.filter(isOther), message];
    }
    return false;
  }

  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    window.removeEventListener('online', this._retryNow);
    window.removeEventListener('offline', this._giveUp);
    document.removeEventListener('visibilitychange', this._retryNow);
    this._cancelRetry();
    this._socket?.close();
    this._socket = null;
    Signal.clearData(this);
  }

  private _url(): string {
    const { appendToken, token, wsUrl } = this._settings;
    const url = URLExt.join(wsUrl, 'dm-jupyter', 'api', 'channel');
    return appendToken && token
      ? `${url}?token=${encodeURIComponent(token)}`
      : url;
  }

  private _onOpen(): void {
    this._delay = FIRST_DELAY_MS;
    this._isConnected = true;
    // Notebooks attach first: a decision is about a run that the server must connect to them.
    this._connectionChanged.emit(true);
    this._kept.splice(0).forEach(message => this.send(message));
  }

  private _onMessage(event: MessageEvent): void {
    this._received.emit(JSON.parse(event.data) as ServerMessage);
  }

  private _onClose(socket: WebSocket): void {
    if (socket !== this._socket || this._isDisposed) {
      return;
    }
    this._socket = null;
    const wasConnected = this._isConnected;
    this._isConnected = false;
    this._retry = window.setTimeout(() => this.connect(), this._delay);
    this._delay = Math.min(this._delay * 2, LONGEST_DELAY_MS);
    if (wasConnected) {
      this._connectionChanged.emit(false);
    }
  }

  private _cancelRetry(): void {
    if (this._retry !== null) {
      clearTimeout(this._retry);
      this._retry = null;
    }
  }

  /** Without a network a socket may stay open, and silent, for minutes. */
  private readonly _giveUp = (): void => {
    const socket = this._socket;
    if (socket) {
      socket.onopen = socket.onmessage = socket.onclose = null;
      socket.close();
      this._onClose(socket);
    }
  };

  private readonly _retryNow = (): void => {
    if (this._retry !== null && !document.hidden) {
      this.connect();
    }
  };

  private _socket: WebSocket | null = null;
  private _isConnected = false;
  private _isDisposed = false;
  private _delay = FIRST_DELAY_MS;
  private _retry: number | null = null;
  private _kept: ClientMessage[] = [];
  private _received = new Signal<this, ServerMessage>(this);
  private _connectionChanged = new Signal<this, boolean>(this);
}

/** A message is JSON, which its interfaces can't say. */
function asJson(message: ClientMessage): ReadonlyJSONValue {
  return message as unknown as ReadonlyJSONValue;
}
