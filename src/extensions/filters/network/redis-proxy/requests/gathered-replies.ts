// The replies of several hosts to one command, and how they become one reply.

import { type Exchange, UPSTREAM_FAILURE } from '../exchange.js';
import { elementsOf, integerOf, isErrorReply } from '../resp/reply-reader.js';
import { arrayHead, arrayReply, errorReply, integerReply, statusReply } from '../resp/write.js';
import type { ReplyReceiver } from '../upstream/host-client.js';

export type Merge = (replies: readonly Uint8Array[]) => Uint8Array;

const OK = statusReply('OK');

/** Collects `count` replies, and settles the exchange with their merged reply. */
export class GatheredReplies {
  readonly #exchange: Exchange;
  readonly #merge: Merge;
  readonly #replies: Uint8Array[];
  #left: number;

  constructor(exchange: Exchange, count: number, merge: Merge) {
    this.#exchange = exchange;
    this.#merge = merge;
    this.#replies = new Array<Uint8Array>(count).fill(UPSTREAM_FAILURE);
    this.#left = count;
  }

  /** Returns the receiver of one of the replies. */
  receiver(index: number): ReplyReceiver {
    return {
      replied: (reply) => this.#add(index, this.#exchange.hold(reply)),
      failed: () => this.#add(index, UPSTREAM_FAILURE),
    };
  }

  #add(index: number, reply: Uint8Array): void {
    if (this.#exchange.isAbandoned) return;
    this.#replies[index] = reply;
    if (--this.#left === 0) this.#exchange.settle(this.#merge(this.#replies));
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
