import type { ClientMessage } from '../protocol.gen';

/** A socket whose other end is the test. */
export class FakeSocket {
  static made: FakeSocket[] = [];

  constructor(readonly url: string) {
    FakeSocket.made.push(this);
  }

  onopen: (() => void) | null = null;
  onmessage: ((event: { data: string }) => void) | null = null;
  onclose: (() => void) | null = null;
  readonly sent: ClientMessage[] = [];
  isClosed = false;

  send(text: string): void {
    this.sent.push(JSON.parse(text));
  }

  close(): void {
    this.isClosed = true;
  }

  drop(): void {
    this.onclose?.();
  }
}

export function lastSocket(): FakeSocket {
  return FakeSocket.made[FakeSocket.made.length - 1];
}
