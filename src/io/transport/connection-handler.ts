// The handlers of a thread's connections and listeners.

import type { BufferedBytes } from '../buffered-bytes.js';
import type { CertificateEvidence, ConnectStep } from '../shim.js';

/** A connection that holds memory and waits for its own peer. */
export interface Stall {
  readonly id: number;
  /** When it began to hold the memory, and when bytes of the peer last arrived, on the thread's clock. */
  readonly sinceMs: number;
  readonly movedMs: number;
  /** Bytes that it holds, and how many of them are unsent because the peer does not read. */
  readonly bytes: number;
  readonly unsent: number;
  /** Ends the connection. */
  end(): void;
}

/** A peer's certificate during a handshake. See TransportOptions.onVerdict(). */
export interface PresentedCertificate {
  readonly error: number;
  readonly depth: number;
  readonly errorText: string;
  readonly facts: CertificateEvidence | undefined;
  readonly rules: string;
}

/** Callbacks for one connection. Byte ranges are valid until the call returns. */
export interface ConnectionHandler {
  onConnected(): void;
  onData(offset: number, length: number): void;
  /** Called when the peer has half-closed; sending remains possible. */
  onEnd(): void;
  /**
   * Called when the connection is broken (errno), or before onConnected() when the connect failed at `step`. The handler must still close
   * the ID.
   */
  onReset(errno: number, step: ConnectStep): void;
  /** Called when pending bytes exceed the high watermark, and when they have fallen to the low one. */
  onBlocked(): void;
  onDrained(): void;
  /** Called when a handshake of Transport.startTls() has finished. */
  onSecured?(): void;
  /** Called when it has failed, with OpenSSL's reasons joined by '|'; '': the peer has ended it. The handler must still close the ID. */
  onHandshakeFailed?(reason: string): void;
  /** Called during a handshake whose context has rules for the peer. Returns 0 to accept it. An exception refuses it. */
  judgePeer?(peer: PresentedCertificate): number;
  /** Called when one of the above has thrown: the handler ends its connection. Must not throw. */
  onFault(error: unknown): void;
  /** Adds the bytes that are buffered in either direction to the gauges that count them. Called periodically. */
  addBuffered?(sums: BufferedBytes): void;
  /** Called when memory is short. Returns undefined unless the connection holds memory and waits for its peer. */
  stalled?(): Stall | undefined;
}

export interface ListenerHandler {
  /**
   * Called for a new connection; the peer's sockaddr is memory[offset, offset + length). Returns its handler, or undefined if it was
   * closed.
   */
  onAccept(id: number, offset: number, length: number): ConnectionHandler | undefined;
  /** Called after the last connection of a batch for this listener. */
  onAccepted(): void;
  /** Called when accept() has failed (errno). Without free descriptors accepting stops for a while and resumes by itself. */
  onAcceptFailed(errno: number): void;
}
