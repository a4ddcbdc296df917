// What the two ends of a connection may see of each other, for any sequence of operations: every byte once and in order, one
// end after all of them, and a reset only where a peer broke the connection.

import { constants } from 'node:os';
import { pattern } from './harness.js';

const { ENOBUFS, EPIPE } = constants.errno;
const STREAM = pattern(1 << 20, 99);

/** Returns a part of the endlessly repeated STREAM, from which each end sends its own bytes. */
function streamAt(from: number, length: number): Buffer {
  const at = from % STREAM.length;
  if (at + length <= STREAM.length) return STREAM.subarray(at, at + length);
  return Buffer.concat([STREAM.subarray(at), STREAM.subarray(0, at + length - STREAM.length)]);
}

/** A connection, from the request to connect. */
export class Link {
  readonly connecting: End;
  /** Set when it is accepted. */
  accepted: End | undefined;
  /** Why it may end in another way than an orderly one; empty if it may not. */
  disturbed = '';
  /** A Unix socket: it can be closed, but not reset. */
  readonly isLocal: boolean;
  /** A port, or the name of a Unix socket. */
  readonly to: string;
  readonly #wrong: string[];
  readonly #history: string[] = [];

  /** `wrong` collects violations. */
  constructor(to: string, isLocal: boolean, seed: number, wrong: string[]) {
    this.to = to;
    this.isLocal = isLocal;
    this.#wrong = wrong;
    this.connecting = new End(this, 'connecting end', seed);
  }

  accept(seed: number): End {
    if (this.accepted !== undefined) this.blame('accepted twice');
    this.accepted = new End(this, 'accepted end', seed);
    this.accepted.isConnected = true;
    this.note('accepted');
    return this.accepted;
  }

  disturb(why: string): void {
    if (this.disturbed === '') this.disturbed = why;
  }

  note(what: string): void {
    this.#history.push(what);
  }

  blame(what: string): void {
    this.#wrong.push(`${what}: ${this}`);
  }

  toString(): string {
    const disturbed = this.disturbed || 'not disturbed';
    return `connection to ${this.to} (${disturbed}), of which is known:\n  ${this.#history.join('\n  ')}`;
  }
}

export class End {
  readonly link: Link;
  readonly #name: string;
  readonly #seed: number;

  // What it has done.
  sent = 0;
  /** Its FIN follows the bytes it has sent. */
  isFinished = false;
  isPaused = false;
  isFrozen = false;
  /** It has released the connection. */
  isClosed = false;
  /** Its sent bytes may be lost without a notification of the peer. */
  isLossy = false;
  /** It aborted an unfinished exchange. */
  hasReset = false;
  hasHardLimit = false;
  hasSentBehindFin = false;
  /** libuv reports it when it reads the last bytes before the reset. */
  takesResetForEnd = false;

  // What it has seen.
  isConnected = false;
  received = 0;
  isEnded = false;
  isDead = false;
  isBlocked = false;

  constructor(link: Link, name: string, seed: number) {
    this.link = link;
    this.#name = name;
    this.#seed = seed;
  }

  get peer(): End | undefined {
    return this === this.link.connecting ? this.link.accepted : this.link.connecting;
  }

  get isOpen(): boolean {
    return !this.isClosed && !this.isDead;
  }

  /** It may have broken the connection itself, and not know it yet. */
  get mayFail(): boolean {
    return this.hasHardLimit || this.hasSentBehindFin;
  }

  /** Nothing more is due for it. */
  get isDone(): boolean {
    return !this.isOpen || (this.isEnded && !this.isBlocked);
  }

  // ---- what it does

  /** Returns the next bytes to send. */
  take(length: number): Buffer {
    const bytes = streamAt(this.#seed + this.sent, length);
    this.sent += length;
    return bytes;
  }

  does(what: string): void {
    this.#note(what);
  }

  finish(): void {
    this.#note('shuts down');
    this.isFinished = true;
  }

  /** An orderly close; `isPatient`: it waits as long as the peer may need. */
  close(how: string, isPatient: boolean, pending: number): void {
    this.#note(`closes ${how}, ${pending} pending`);
    if (this.isFrozen) {
      // Silently: another holder may have the connection.
      this.link.disturb('closed while frozen');
      this.isLossy = true;
    } else if (!isPatient || this.isDead || !this.isConnected || this.mayFail) {
      this.link.disturb('closed in haste');
      this.isLossy ||= this.link.isLocal;
    }
    this.isFinished = this.isClosed = true;
  }

  reset(pending: number): void {
    if (this.isFrozen) return this.close('by reset', false, pending);
    this.#note('resets');
    this.link.disturb('reset');
    const peer = this.peer;
    this.hasReset = !this.link.isLocal && this.isConnected && !this.isDead && !(this.isFinished && peer?.isFinished);
    this.isLossy ||= this.link.isLocal;
    this.isFinished ||= this.link.isLocal;
    this.isClosed = true;
  }

  // ---- what it sees

  sees(event: string): void {
    this.#note(`sees ${event}`);
    if (this.isClosed) this.#blame(`${event} after its close`);
    if (this.isDead) this.#blame(`${event} behind Reset`);
    if (this.isFrozen) this.#blame(`${event} while frozen`);
  }

  connected(): void {
    this.sees('Connected');
    if (this.isConnected) this.#blame('Connected twice');
    this.isConnected = true;
  }

  data(bytes: Buffer): void {
    this.sees(`${bytes.length} bytes at ${this.received}`);
    if (!this.isConnected) this.#blame('bytes before Connected');
    if (this.isEnded) this.#blame('bytes after End');
    const peer = this.peer;
    if (peer === undefined || this.received + bytes.length > peer.sent) return this.#blame('bytes that were not sent');
    if (!bytes.equals(streamAt(peer.#seed + this.received, bytes.length))) this.#blame('other bytes than were sent');
    this.received += bytes.length;
  }

  ended(): void {
    this.sees('End');
    if (!this.isConnected) this.#blame('End before Connected');
    if (this.isEnded) this.#blame('End twice');
    this.isEnded = true;
    if (this.takesResetForEnd && this.link.disturbed !== '') return;
    const peer = this.peer;
    if (peer === undefined) {
      // An unaccepted Unix connection ends when its listener is closed.
      if (!this.link.isLocal || this.link.disturbed === '') this.#blame('End of an unaccepted connection');
    } else if (!peer.isFinished) this.#blame('End where the peer has not ended');
    else if (this.received !== peer.sent && !peer.isLossy) this.#blame(`End at ${this.received} of ${peer.sent} bytes`);
  }

  wasReset(errno: number): void {
    this.sees(`Reset ${errno}`);
    this.isDead = true;
    if (errno === ENOBUFS && this.hasHardLimit) return this.link.disturb('more was pending than allowed');
    if (errno === EPIPE && this.hasSentBehindFin) return this.link.disturb('sent behind its end');
    if (this.link.disturbed === '') this.#blame(`Reset ${errno}`);
  }

  blocked(): void {
    this.sees('Blocked');
    if (this.isBlocked) this.#blame('Blocked twice');
    this.isBlocked = true;
  }

  drained(): void {
    this.sees('Drained');
    if (!this.isBlocked) this.#blame('Drained without Blocked');
    this.isBlocked = false;
  }

  #note(what: string): void {
    this.link.note(`${this.#name} ${what}`);
  }

  #blame(what: string): void {
    this.link.blame(`${this.#name}: ${what}`);
  }
}
