// Who is told of what happens to the connections and listeners of a thread.

import type { BufferedBytes } from '../buffered-bytes.js';
import type { ConnectStep } from '../shim.js';

/** A connection that holds memory and can go on only when its own peer does something. */
export interface Stall {
  readonly id: number;
  /** When it began to hold the memory, and when bytes of the peer have come last; of the thread's clock. */
  readonly sinceMs: number;
  readonly movedMs: number;
  /** Bytes that it holds, and how many of them the peer does not take. */
  readonly bytes: number;
  readonly unsent: number;
  /** Ends the connection. */
  end(): void;
}

/** What happens to one connection. Byte ranges are valid until the call returns. */
export interface ConnectionHandler {
  onConnected(): void;
  onData(offset: number, length: number): void;
  /** The peer has ended its direction; sending goes on. */
  onEnd(): void;
  /** The connection is dead (errno); before onConnected() the connect failed at `step`. The handler still closes the id. */
  onReset(errno: number, step: ConnectStep): void;
  /** More than the high watermark waits to be sent; and again less than the low one. */
  onBlocked(): void;
  onDrained(): void;
  /** One of the above threw: the handler ends its connection. Must not throw. */
  onFault(error: unknown): void;
  /** Adds the bytes that wait here, in either direction, to the gauges that count them. Asked once in a while. */
  addBuffered?(sums: BufferedBytes): void;
  /** Called when memory is short: what it holds and waits for its peer with, undefined if that is nothing. */
  stalled?(): Stall | undefined;
}

export interface ListenerHandler {
  /** A new connection; the peer's sockaddr is memory[offset, offset + length). Returns who handles it, or undefined when it was closed. */
  onAccept(id: number, offset: number, length: number): ConnectionHandler | undefined;
  /** A batch has brought all the connections that it has for this listener. */
  onAccepted(): void;
  /** accept() failed (errno). When descriptors are exhausted accepting rests and resumes by itself. */
  onAcceptFailed(errno: number): void;
}
