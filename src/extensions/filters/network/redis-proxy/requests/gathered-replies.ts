// The replies of several hosts to one command, and how they become one reply.

import { type Exchange, NO_HOST, UPSTREAM_FAILURE } from '../exchange.js';
import { elementsOf, integerOf, isErrorReply } from '../resp/reply-reader.js';
import { arrayHead, arrayReply, errorReply, integerReply, statusReply } from '../resp/write.js';
import type { ReplyReceiver } from '../upstream/host-client.js';

export type Merge = (replies: readonly Uint8Array[]) => Uint8Array;

const OK = statusReply('OK');

/** Sends the command with this index. */
export type SendPart = (index: number, receiver: ReplyReceiver) => void;

/** A command with more keys than this sends the next ones as replies arrive, so that it does not occupy the worker. */
const MAX_IN_FLIGHT = 1024;

/** Sends `count` commands, and settles the exchange with their merged reply. */
export class GatheredReplies {
  readonly #exchange: Exchange;
  readonly #merge: Merge;
  readonly #send: SendPart;
  readonly #replies: Uint8Array[];
  #sent = 0;
  #replied = 0;
  #isSending = false;

  constructor(exchange: Exchange, count: number, merge: Merge, send: SendPart) {
    this.#exchange = exchange;
    this.#merge = merge;
    this.#send = send;
    this.#replies = new Array<Uint8Array>(count).fill(UPSTREAM_FAILURE);
  }

  /** Sends what may be sent now. */
  start(): void {
    if (this.#isSending) return;
    this.#isSending = true;
    const count = this.#replies.length;
    while (this.#sent < count && this.#sent - this.#replied < MAX_IN_FLIGHT && !this.#exchange.isAbandoned) {
      const index = this.#sent++;
      this.#send(index, this.#receiver(index));
    }
    this.#isSending = false;
    this.#exchange.isPartial = this.#sent < count;
  }

  #receiver(index: number): ReplyReceiver {
    return {
      replied: (reply) => this.#add(index, reply),
      failed: () => this.#add(index, UPSTREAM_FAILURE),
    };
  }

  #add(index: number, reply: Uint8Array): void {
    if (this.#exchange.isAbandoned) return;
    this.#replies[index] = reply === UPSTREAM_FAILURE || reply === NO_HOST ? reply : this.#exchange.hold(reply);
    if (++this.#replied === this.#replies.length) this.#exchange.settle(this.#merge(this.#replies));
    else this.start();
  }
}

/** For the keys of one command: an error counts how many of them have failed. */
function errorsOf(replies: readonly Uint8Array[]): Buffer | undefined {
  const errors = replies.filter(isErrorReply).length;
  return errors === 0 ? undefined : errorReply(`finished with ${errors} error(s)`);
}

export function sumOf(replies: readonly Uint8Array[]): Uint8Array {
  const errors = errorsOf(replies);
  if (errors !== undefined) return errors;
  let sum = 0;
  for (const reply of replies) sum += integerOf(reply) ?? 0;
  return integerReply(sum);
}

export function allOk(replies: readonly Uint8Array[]): Uint8Array {
  return errorsOf(replies) ?? OK;
}

export function listOf(replies: readonly Uint8Array[]): Uint8Array {
  return arrayReply(replies);
}

/** The elements of all replies, one after the other. */
export function joined(replies: readonly Uint8Array[]): Uint8Array {
  let count = 0;
  const parts: Uint8Array[] = [];
  for (const reply of replies) {
    const elements = elementsOf(reply);
    if (elements === undefined) return UPSTREAM_FAILURE;
    count += elements.count;
    parts.push(reply.subarray(elements.at));
  }
  return Buffer.concat([arrayHead(count), ...parts]);
}

export function joinedOrErrors(replies: readonly Uint8Array[]): Uint8Array {
  return errorsOf(replies) ?? joined(replies);
}

/** All hosts must reply the same. */
export function common(replies: readonly Uint8Array[]): Uint8Array {
  const [first, ...others] = replies.map((reply) => Buffer.from(reply));
  return others.every((reply) => reply.equals(first!)) ? first! : errorReply('ERR the replies of the hosts differ');
}

/** The reply of a single host. */
export function onlyOne(replies: readonly Uint8Array[]): Uint8Array {
  return replies.length === 1 ? replies[0]! : errorReply('ERR the replies of several hosts are not combined');
}

/** Applies `merge` unless a host has replied with an error, which is then the reply. */
export function unlessError(merge: Merge): Merge {
  return (replies) => replies.find(isErrorReply) ?? merge(replies);
}
