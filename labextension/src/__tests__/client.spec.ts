import { ServerConnection } from '@jupyterlab/services';

import { ChannelClient } from '../channel/client';
import type { ClientMessage, ServerMessage } from '../protocol.gen';
import { FakeSocket, lastSocket as last } from './socket';

const STOP: ClientMessage = { kind: 'stop', run_id: 'run-1' };
const ACK: ClientMessage = { kind: 'ack', run_id: 'run-1', seq: 3 };

function made(
  settings: Partial<ServerConnection.ISettings> = {}
): ChannelClient {
  return new ChannelClient(
    ServerConnection.makeSettings({
      wsUrl: 'ws://server/base/',
      token: 'a b',
      appendToken: true,
      WebSocket: FakeSocket as unknown as typeof WebSocket,
      ...settings
    })
  );
}

describe('ChannelClient', () => {
  let client: ChannelClient;

  beforeEach(() => {
    jest.useFakeTimers();
    FakeSocket.made = [];
    client = made();
    client.connect();
  });

  afterEach(() => {
    client.dispose();
    jest.useRealTimers();
  });

  it('connects to the channel with the token', () => {
    expect(last().url).toBe(
      'ws://server/base/dm-jupyter/api/channel?token=a%20b'
    );
  });

  it('leaves the token out where a cookie does', () => {
    const other = made({ appendToken: false });
    other.connect();
    expect(last().url).toBe('ws://server/base/dm-jupyter/api/channel');
    other.dispose();
  });

  it('hands over messages', () => {
    const received: ServerMessage[] = [];
    client.received.connect((_, message) => received.push(message));
    last().onopen?.();
    last().onmessage?.({ data: '{"kind":"phase","text":"thinking"}' });
    expect(received).toEqual([{ kind: 'phase', text: 'thinking' }]);
  });

  it('says when the connection comes and goes', () => {
    const states: boolean[] = [];
    client.connectionChanged.connect((_, isConnected) =>
      states.push(isConnected)
    );
    last().onopen?.();
    last().drop();
    jest.advanceTimersByTime(500);
    last().onopen?.();
    expect(states).toEqual([true, false, true]);
  });

  it('waits longer from try to try, and anew after a success', () => {
    const delays = [500, 1000, 2000, 4000, 8000, 15000, 15000];
    delays.forEach((delay, index) => {
      last().drop();
      jest.advanceTimersByTime(delay - 1);
      expect(FakeSocket.made).toHaveLength(index + 1);
      jest.advanceTimersByTime(1);
      expect(FakeSocket.made).toHaveLength(index + 2);
    });
    last().onopen?.();
    last().drop();
    jest.advanceTimersByTime(500);
    expect(FakeSocket.made).toHaveLength(delays.length + 2);
  });

  it('tries at once when the machine is online again', () => {
    last().drop();
    window.dispatchEvent(new Event('online'));
    expect(FakeSocket.made).toHaveLength(2);
    jest.advanceTimersByTime(60_000);
    expect(FakeSocket.made).toHaveLength(2);
  });

  it('takes a socket for lost when the machine is offline', () => {
    const states: boolean[] = [];
    client.connectionChanged.connect((_, isConnected) =>
      states.push(isConnected)
    );
    const socket = last();
    socket.onopen?.();
    window.dispatchEvent(new Event('offline'));
    expect(states).toEqual([true, false]);
    expect(socket.isClosed).toBe(true);
    window.dispatchEvent(new Event('online'));
    expect(FakeSocket.made).toHaveLength(2);
  });

  it('keeps the person’s decisions for after the reconnection', () => {
    expect(client.send(STOP)).toBe(false);
    expect(client.send(ACK)).toBe(false);
    client.connectionChanged.connect(() =>
      client.send({ kind: 'detach', notebook_path: 'x' })
    );
    last().onopen?.();
    expect(last().sent.map(message => message.kind)).toEqual([
      'detach',
      'stop'
    ]);
  });

  it('keeps for after the reconnection, once each, the notebooks whose cells were run', () => {
    const ran = (path: string): ClientMessage => ({
      kind: 'own_cell',
      notebook_path: path
    });
    [ran('a'), STOP, ran('b'), ran('a')].forEach(one => client.send(one));
    last().onopen?.();
    expect(last().sent).toEqual([STOP, ran('b'), ran('a')]);
  });

  it('does not connect again once it is disposed', () => {
    const socket = last();
    client.dispose();
    socket.drop();
    jest.advanceTimersByTime(60_000);
    expect(socket.isClosed).toBe(true);
    expect(FakeSocket.made).toHaveLength(1);
  });
});
