// The parent's end of a channel on which connections leave for one worker of the child process.
//
// Who owns a connection. At every moment exactly one process may read, write or end it; the other one holds a frozen copy at
// most, and what is done to that does not reach the peer. It changes hands in these steps:
//
//   parent                                child
//   freezes it, sends Offer ───────────>  builds everything it needs, frozen
//                           <───────────  Accept (or Refuse: it has closed its copies, the parent thaws)
//   sends Commit            ───────────>
//                           <───────────  Begun; when the kernel has taken that, it thaws
//   closes its copies
//
// What one process gives to the kernel, the other one reads, also when the sender is dead by then; behind the last message
// comes the channel's end. So whatever is lost, and whoever dies first:
// - The child dies, or closes the channel, before Begun is with the kernel: it has touched nothing. The parent reads the
//   channel's end and no Begun, and thaws what it has frozen, as it was. An Accept that never came is the same case.
// - The child dies after that: the connection ends with the process that owned it.
// - The parent dies before the whole Offer is with the kernel: it ends with the process that owned it. Descriptors go with
//   the last message of an offer, so no half of one keeps a connection open.
// - The parent dies after that: it cannot touch the connection any more. The channel's end behind an Offer means what Commit
//   means, and the child goes on, whether its Accept was heard or not.
// - The child does not answer the Offer in time: the parent takes it back, and thaws when the kernel has taken the Abort, not
//   before; so the child, if it wakes up, reads Abort before it can see the channel's end. If the channel is full of what a
//   hung child does not read, these connections wait for that child or for the end of this process.
// - The child hangs between Accept and Begun: as if it did so a moment later, when the connection is its own.
// - A thread dies, and the process lives: its descriptors are closed, the channel's among them, and it is as above.
// The child closes the channel only after it has let go of what has not begun; the parent only when its worker ends, and
// what it has offered until then is the child's.

import { messageOf } from '../../common/errors/errors.js';
import type { MessageSocketEvents, NativeMessageSocket, NativeShim } from '../../io/shim.js';
import type { Cargo } from '../../listener/travel.js';
import { internalError } from '../../log/internal-errors.js';
import { getLogger } from '../../log/logger.js';
import { decodeMessage, encodeCargo, encodeMessage, TravelError, TravelKind } from './travel-wire.js';

/** What becomes of a connection that was offered; one of the two is called, once. */
export interface Traveller {
  /** It is the child's. */
  left(): void;
  /** It goes on here; the text says why. */
  stays(why: string): void;
}

export interface DepartureLimits {
  /** That the child has not answered for. */
  readonly descriptors: number;
  /** How long it may take. */
  readonly answerMs: number;
}

/** Bytes under way from which on no further connection follows. */
const MAX_BYTES_IN_FLIGHT = 32 * 1024;

const logger = getLogger('main');

export class DepartureChannel implements MessageSocketEvents {
  readonly #shim: NativeShim;
  readonly #socket: NativeMessageSocket;
  readonly #limits: DepartureLimits;
  /** Called when there is room again. */
  readonly #onRoom: () => void;
  readonly #offers = new Map<number, OpenOffer>();
  readonly #waiting: Waiting[] = [];
  #descriptors = 0;
  #bytes = 0;
  #nextKey = 1;
  /** No more offers: the child is gone or does not answer. */
  #isOver = false;

  /** Takes `fd` over. */
  constructor(shim: NativeShim, fd: number, limits: DepartureLimits, onRoom: () => void) {
    this.#shim = shim;
    this.#limits = limits;
    this.#onRoom = onRoom;
    this.#socket = shim.watchMessages(fd, this, true);
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** How many connections of two sockets can be offered now. */
  get room(): number {
    if (this.#isOver || this.#bytes >= MAX_BYTES_IN_FLIGHT) return 0;
    return Math.floor((this.#limits.descriptors - this.#descriptors) / 2);
  }

  /** Offers a frozen connection; its descriptors are copies that are this channel's now. */
  offer(cargo: Cargo, traveller: Traveller): void {
    const fds = cargo.sockets.map(({ fd }) => fd);
    const key = this.#nextKey++;
    let messages: Uint8Array[];
    try {
      if (this.#isOver) throw new TravelError('the child takes no more connections');
      messages = encodeCargo(key, cargo);
    } catch (error) {
      this.#closeAll(fds);
      return traveller.stays(messageOf(error));
    }
    const bytes = messages.reduce((sum, message) => sum + message.length, 0);
    const timer = setTimeout(() => this.#late(key), this.#limits.answerMs);
    this.#offers.set(key, { traveller, timer, bytes, descriptors: fds.length, state: 'sending', fds });
    this.#descriptors += fds.length;
    this.#bytes += bytes;
    messages.forEach((message, index) => {
      const isLast = index === messages.length - 1;
      this.#send({ bytes: message, fds: isLast ? fds : [], key, sent: isLast ? 'offered' : undefined });
    });
  }

  /** The thread ends: what the child has been offered is the child's, anything else stays. */
  close(): void {
    this.#isOver = true;
    for (const [key, offer] of [...this.#offers]) {
      if (offer.state === 'sending') this.#settle(key, (traveller) => traveller.stays('this process ends'));
      else this.#settle(key, (traveller) => traveller.left());
    }
    this.#waiting.length = 0;
    this.#socket.close();
  }

  onMessage(bytes: Uint8Array, fds: readonly number[]): void {
    this.#closeAll(fds);
    try {
      const { kind, key, body } = decodeMessage(bytes);
      const offer = this.#offers.get(key);
      // Taken back meanwhile, which the child will read.
      if (offer === undefined || offer.state === 'aborting') return;
      if (kind === TravelKind.Refuse && offer.state === 'offered') {
        const why = Buffer.from(body).toString();
        this.#settle(key, (traveller) => traveller.stays(why));
      } else if (kind === TravelKind.Accept && offer.state === 'offered') {
        offer.state = 'committed';
        clearTimeout(offer.timer);
        this.#send({ bytes: encodeMessage(TravelKind.Commit, key), fds: [], key, sent: undefined });
      } else if (kind === TravelKind.Begun && offer.state === 'committed') {
        this.#settle(key, (traveller) => traveller.left());
      } else throw new TravelError('an answer to what was not said');
    } catch (error) {
      this.#distrust(messageOf(error));
    }
    if (this.room > 0) this.#onRoom();
  }

  onWritable(): void {
    this.#pump();
    if (this.room > 0) this.#onRoom();
  }

  /** The child is gone, or has let go of everything. */
  onEnd(): void {
    this.#isOver = true;
    this.#waiting.length = 0;
    for (const key of [...this.#offers.keys()]) {
      this.#settle(key, (traveller) => traveller.stays('the child process has gone'));
    }
    this.#onRoom();
  }

  #send(message: Waiting): void {
    this.#waiting.push(message);
    if (this.#waiting.length === 1) this.#pump();
  }

  #pump(): void {
    for (let first = this.#waiting[0]; first !== undefined; first = this.#waiting[0]) {
      try {
        if (!this.#socket.send(first.bytes, first.fds)) return;
      } catch {
        // The peer is gone: its last words are read, then onEnd() says so.
        return;
      }
      this.#waiting.shift();
      this.#sent(first);
    }
  }

  #sent({ key, sent }: Waiting): void {
    const offer = this.#offers.get(key);
    if (offer === undefined) return;
    if (sent === 'offered') {
      this.#closeAll(offer.fds);
      offer.fds = [];
      offer.state = 'offered';
    } else if (sent === 'aborted') this.#settle(key, (traveller) => traveller.stays(LATE));
  }

  #late(key: number): void {
    // Who does not answer once is not asked again.
    this.#isOver = true;
    this.#takeBack(key);
    this.#onRoom();
  }

  #takeBack(key: number): void {
    const offer = this.#offers.get(key);
    if (offer === undefined || offer.state === 'committed' || offer.state === 'aborting') return;
    const isWithChild = offer.state === 'offered';
    // Without its last message an offer is none, and is not completed any more.
    const rest = this.#waiting.filter((message) => message.key !== key);
    this.#waiting.splice(0, this.#waiting.length, ...rest);
    if (isWithChild) offer.state = 'aborting';
    else this.#settle(key, (traveller) => traveller.stays(LATE));
    this.#send({ bytes: encodeMessage(TravelKind.Abort, key), fds: [], key, sent: 'aborted' });
  }

  /** The child says what makes no sense. */
  #distrust(why: string): void {
    logger.warning(`no more connections are handed over to this worker of the child process: ${why}`);
    this.#isOver = true;
    for (const key of [...this.#offers.keys()]) this.#takeBack(key);
  }

  #settle(key: number, tell: (traveller: Traveller) => void): void {
    const offer = this.#offers.get(key)!;
    this.#offers.delete(key);
    clearTimeout(offer.timer);
    this.#closeAll(offer.fds);
    this.#descriptors -= offer.descriptors;
    this.#bytes -= offer.bytes;
    try {
      tell(offer.traveller);
    } catch (error) {
      // The others are to be told of their own all the same.
      internalError('internal error: a connection cannot go on after its hand-over', error);
    }
  }

  #closeAll(fds: readonly number[]): void {
    for (const fd of fds) this.#shim.closeDescriptor(fd);
  }
}

interface OpenOffer {
  readonly traveller: Traveller;
  readonly timer: NodeJS.Timeout;
  readonly bytes: number;
  readonly descriptors: number;
  /** Copies, until the kernel has taken them. */
  fds: readonly number[];
  state: 'sending' | 'offered' | 'committed' | 'aborting';
}

interface Waiting {
  readonly bytes: Uint8Array;
  readonly fds: readonly number[];
  readonly key: number;
  /** What it means that the kernel has taken it. */
  readonly sent: 'offered' | 'aborted' | undefined;
}

const LATE = 'the child process has not answered in time';
