// The parent's end of a channel on which connections are handed over to one worker of the child process.
//
// Ownership of a connection. At every moment exactly one process may read, write or close it; the other one holds at most a
// frozen copy, which cannot affect the peer. Ownership moves in these steps:
//
//   parent                                child
//   freezes it, sends Offer ───────────>  builds everything it needs, frozen
//                           <───────────  Accept (or Refuse: it has closed its copies, the parent thaws)
//   sends Commit            ───────────>
//                           <───────────  Begun; when the kernel has accepted that, it thaws
//   closes its copies
//
// A process reads everything that its peer has passed to the kernel, even if the peer is dead by then; the channel's end comes
// after the last message. So for each loss, and whichever process dies first:
// - The child dies, or closes the channel, before the kernel has Begun: it has not touched the connection. The parent reads the
//   channel's end without a Begun, and thaws the connection. A missing Accept is the same case.
// - The child dies after that: the connection ends with its owner.
// - The parent dies before the kernel has the complete Offer: the connection ends with its owner. The last message of an offer
//   has the descriptors, so an incomplete offer keeps no connection open.
// - The parent dies after that: it cannot touch the connection any more. The channel's end after an Offer means Commit, and the
//   child continues the connection, whether or not the parent has read its Accept.
// - The child does not answer the Offer in time: the parent aborts it, and thaws when the kernel has accepted the Abort, not
//   before. So a child that resumes reads Abort before the channel's end. If the channel is full because the child hangs, these
//   connections wait for the child or for the end of this process.
// - The child hangs between Accept and Begun: the same as hanging a moment later, when it owns the connection.
// - A thread dies but its process lives: its descriptors are closed, including the channel's; the cases above apply.
// The child closes the channel only after it has dropped the connections that have not begun. The parent closes it only when
// its worker ends; connections offered until then belong to the child.

import { messageOf } from '../../common/errors/errors.js';
import type { MessageSocketEvents, NativeMessageSocket, NativeShim } from '../../io/shim.js';
import type { HandedOverConnection } from '../../listener/hand-over.js';
import { internalError } from '../../log/internal-errors.js';
import { getLogger } from '../../log/logger.js';
import { decodeMessage, encodeConnection, encodeMessage, HandOverError, HandOverKind } from './hand-over-wire.js';

/** Receives the outcome of an offer: exactly one method is called, once. */
export interface OfferEvents {
  /** The connection belongs to the child. */
  moved(): void;
  /** The connection stays in this process; `why` is the reason. */
  kept(why: string): void;
}

export interface SendingLimits {
  /** Maximum of descriptors in unanswered offers. */
  readonly descriptors: number;
  /** How long the child may take to answer. */
  readonly answerMs: number;
}

/** Bytes in flight above which no connection is offered. */
const MAX_BYTES_IN_FLIGHT = 32 * 1024;

const logger = getLogger('main');

export class SendingChannel implements MessageSocketEvents {
  readonly #shim: NativeShim;
  readonly #socket: NativeMessageSocket;
  readonly #limits: SendingLimits;
  /** Called when there is room again. */
  readonly #onRoom: () => void;
  readonly #offers = new Map<number, OpenOffer>();
  readonly #queue: QueuedMessage[] = [];
  #descriptors = 0;
  #bytes = 0;
  #nextKey = 1;
  /** No more offers: the child has ended or does not answer. */
  #hasEnded = false;

  /** Owns `fd`. */
  constructor(shim: NativeShim, fd: number, limits: SendingLimits, onRoom: () => void) {
    this.#shim = shim;
    this.#limits = limits;
    this.#onRoom = onRoom;
    this.#socket = shim.watchMessages(fd, this, true);
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** How many connections of two sockets can be offered now. */
  get room(): number {
    if (this.#hasEnded || this.#bytes >= MAX_BYTES_IN_FLIGHT) return 0;
    return Math.floor((this.#limits.descriptors - this.#descriptors) / 2);
  }

  /** Offers a frozen connection. The channel owns its descriptors, which are copies. */
  offer(handedOver: HandedOverConnection, events: OfferEvents): void {
    const fds = handedOver.sockets.map(({ fd }) => fd);
    const key = this.#nextKey++;
    let messages: Uint8Array[];
    try {
      if (this.#hasEnded) throw new HandOverError('the child takes no more connections');
      messages = encodeConnection(key, handedOver);
    } catch (error) {
      this.#closeAll(fds);
      return events.kept(messageOf(error));
    }
    const bytes = messages.reduce((sum, message) => sum + message.length, 0);
    const timer = setTimeout(() => this.#timedOut(key), this.#limits.answerMs);
    this.#offers.set(key, { events, timer, bytes, descriptors: fds.length, state: 'sending', fds });
    this.#descriptors += fds.length;
    this.#bytes += bytes;
    messages.forEach((message, index) => {
      const isLast = index === messages.length - 1;
      this.#send({ bytes: message, fds: isLast ? fds : [], key, sent: isLast ? 'offered' : undefined });
    });
  }

  /** Called when the thread ends. Offered connections belong to the child; all others stay. */
  close(): void {
    this.#hasEnded = true;
    for (const [key, offer] of [...this.#offers]) {
      if (offer.state === 'sending') this.#settle(key, (events) => events.kept('this process ends'));
      else this.#settle(key, (events) => events.moved());
    }
    this.#queue.length = 0;
    this.#socket.close();
  }

  onMessage(bytes: Uint8Array, fds: readonly number[]): void {
    this.#closeAll(fds);
    try {
      const { kind, key, body } = decodeMessage(bytes);
      const offer = this.#offers.get(key);
      // Aborted meanwhile; the child will read the Abort.
      if (offer === undefined || offer.state === 'aborting') return;
      if (kind === HandOverKind.Refuse && offer.state === 'offered') {
        const why = Buffer.from(body).toString();
        this.#settle(key, (events) => events.kept(why));
      } else if (kind === HandOverKind.Accept && offer.state === 'offered') {
        offer.state = 'committed';
        clearTimeout(offer.timer);
        this.#send({ bytes: encodeMessage(HandOverKind.Commit, key), fds: [], key, sent: undefined });
      } else if (kind === HandOverKind.Begun && offer.state === 'committed') {
        this.#settle(key, (events) => events.moved());
      } else throw new HandOverError('an answer without a matching message');
    } catch (error) {
      this.#abandon(messageOf(error));
    }
    if (this.room > 0) this.#onRoom();
  }

  onWritable(): void {
    this.#pump();
    if (this.room > 0) this.#onRoom();
  }

  /** Called when the child has ended, or has closed the channel after dropping everything. */
  onEnd(): void {
    this.#hasEnded = true;
    this.#queue.length = 0;
    for (const key of [...this.#offers.keys()]) {
      this.#settle(key, (events) => events.kept('the child process has closed the channel'));
    }
    this.#onRoom();
  }

  #send(message: QueuedMessage): void {
    this.#queue.push(message);
    if (this.#queue.length === 1) this.#pump();
  }

  #pump(): void {
    for (let first = this.#queue[0]; first !== undefined; first = this.#queue[0]) {
      try {
        if (!this.#socket.send(first.bytes, first.fds)) return;
      } catch {
        // The peer has ended: its messages are still read, then onEnd() is called.
        return;
      }
      this.#queue.shift();
      this.#sent(first);
    }
  }

  #sent({ key, sent }: QueuedMessage): void {
    const offer = this.#offers.get(key);
    if (offer === undefined) return;
    if (sent === 'offered') {
      this.#closeAll(offer.fds);
      offer.fds = [];
      offer.state = 'offered';
    } else if (sent === 'aborted') this.#settle(key, (events) => events.kept(TIMED_OUT));
  }

  #timedOut(key: number): void {
    // A child that does not answer once gets no more offers.
    this.#hasEnded = true;
    this.#withdraw(key);
    this.#onRoom();
  }

  #withdraw(key: number): void {
    const offer = this.#offers.get(key);
    if (offer === undefined || offer.state === 'committed' || offer.state === 'aborting') return;
    const isWithChild = offer.state === 'offered';
    // Without its last message an offer is incomplete, and remains so.
    const rest = this.#queue.filter((message) => message.key !== key);
    this.#queue.splice(0, this.#queue.length, ...rest);
    if (isWithChild) offer.state = 'aborting';
    else this.#settle(key, (events) => events.kept(TIMED_OUT));
    this.#send({ bytes: encodeMessage(HandOverKind.Abort, key), fds: [], key, sent: 'aborted' });
  }

  /** Called when the child violates the protocol. */
  #abandon(why: string): void {
    logger.warning(`no more connections are handed over to this worker of the child process: ${why}`);
    this.#hasEnded = true;
    for (const key of [...this.#offers.keys()]) this.#withdraw(key);
  }

  #settle(key: number, notify: (events: OfferEvents) => void): void {
    const offer = this.#offers.get(key)!;
    this.#offers.delete(key);
    clearTimeout(offer.timer);
    this.#closeAll(offer.fds);
    this.#descriptors -= offer.descriptors;
    this.#bytes -= offer.bytes;
    try {
      notify(offer.events);
    } catch (error) {
      // The other connections must be settled nevertheless.
      internalError('internal error: a connection cannot continue after its hand-over', error);
    }
  }

  #closeAll(fds: readonly number[]): void {
    for (const fd of fds) this.#shim.closeDescriptor(fd);
  }
}

interface OpenOffer {
  readonly events: OfferEvents;
  readonly timer: NodeJS.Timeout;
  readonly bytes: number;
  readonly descriptors: number;
  /** Copies, until the kernel has accepted them. */
  fds: readonly number[];
  state: 'sending' | 'offered' | 'committed' | 'aborting';
}

interface QueuedMessage {
  readonly bytes: Uint8Array;
  readonly fds: readonly number[];
  readonly key: number;
  /** The state that follows when the kernel has accepted it. */
  readonly sent: 'offered' | 'aborted' | undefined;
}

const TIMED_OUT = 'the child process has not answered in time';
