// One command of a client, until the client has its reply.

import { type Scope, Timer } from '../../../sdk.js';
import type { Fault } from './faults.js';
import type { RedisProxyContext } from './proxy-context.js';
import { isErrorReply } from './resp/reply-reader.js';
import { errorReply } from './resp/write.js';
import { CommandStats } from './stats.js';
import type { HostClient, ReplyReceiver } from './upstream/host-client.js';

/** The client, which gets replies in the order of its commands. */
export interface ReplyOrder {
  /** The exchange has its reply. */
  settled(exchange: Exchange): void;
  /** A host of the exchange accepts commands more slowly than they come. */
  slowedBy(host: HostClient): void;
}

/** Smaller commands need no reservation: the client has a limit for all of them. */
const FREE_BYTES = 4096;
/** Smaller replies that wait need no reservation. */
const FREE_REPLY_BYTES = 256;

export const UPSTREAM_FAILURE = errorReply('upstream failure');
export const NO_HOST = errorReply('no upstream host');
const FAULT = errorReply('Fault Injected: Error');

export class Exchange implements ReplyReceiver {
  readonly proxy: RedisProxyContext;
  /** Bytes of the command. */
  readonly length: number;
  reply: Uint8Array | undefined;
  /** Parts of the command are not sent yet: the next commands must not come before them. */
  isPartial = false;
  /** The client is gone. */
  isAbandoned = false;
  readonly #order: ReplyOrder;
  readonly #startMs: number;
  #counts: Scope | undefined;
  #fault: Fault | undefined;
  #timer: Timer<Exchange> | undefined;
  #reserved = 0;

  constructor(proxy: RedisProxyContext, order: ReplyOrder, length: number) {
    this.proxy = proxy;
    this.length = length;
    this.#order = order;
    this.#startMs = proxy.clock.monotonicMs;
  }

  /** Begins to count the command. Returns false if a fault replies in place of a host. */
  begin(name: string): boolean {
    this.#counts = this.proxy.stats.commands.get(name);
    this.#counts?.increment(CommandStats.at.total);
    const fault = this.proxy.faults?.pick(name, this.proxy.random);
    if (fault === undefined) return true;
    if (fault.isError) this.#counts?.increment(CommandStats.at.error_fault);
    else this.#counts?.increment(CommandStats.at.delay_fault);
    if (fault.delayMs > 0) this.#fault = fault;
    if (!fault.isError) return true;
    this.settle(FAULT);
    return false;
  }

  /** Reserves what a large command needs until it has its reply. Returns false if there is no room. */
  reserve(): boolean {
    const { length } = this;
    if (length <= FREE_BYTES) return true;
    // The words, and the bytes for the host.
    if (!this.proxy.clientMemory.reserve(2 * length)) return false;
    this.#reserved += 2 * length;
    return true;
  }

  slowedBy(host: HostClient): void {
    if (!this.isAbandoned) this.#order.slowedBy(host);
  }

  replied(reply: Uint8Array): void {
    this.settle(reply);
  }

  failed(): void {
    this.settle(UPSTREAM_FAILURE);
  }

  /** Gives the client this reply, which the exchange copies if the client must wait for it. */
  settle(reply: Uint8Array): void {
    if (this.isAbandoned || this.reply !== undefined) return;
    const { clock, wheel } = this.proxy;
    if (this.#counts !== undefined) {
      this.#counts.increment(isErrorReply(reply) ? CommandStats.at.error : CommandStats.at.success);
      const ms = clock.monotonicMs - this.#startMs;
      this.#counts.record(CommandStats.at.latency, Math.floor(this.proxy.countsMicros ? ms * 1000 : ms));
    }
    this.reply = reply;
    if (this.#fault === undefined) {
      this.#order.settled(this);
      return;
    }
    this.reply = this.hold(reply);
    this.#timer = new Timer<Exchange>(this, delayed);
    wheel.reschedule(this.#timer, this.#fault.delayMs);
    this.#fault = undefined;
  }

  /** A delay holds the reply back. */
  get isDelayed(): boolean {
    return this.#timer?.isScheduled ?? false;
  }

  delayOver(): void {
    this.#order.settled(this);
  }

  /** Returns a copy of bytes that are about to become invalid, or an error if there is no room for them. */
  hold(reply: Uint8Array): Uint8Array {
    if (reply.length > FREE_REPLY_BYTES) {
      if (!this.proxy.clientMemory.reserve(reply.length)) return UPSTREAM_FAILURE;
      this.#reserved += reply.length;
    }
    return Buffer.from(reply);
  }

  /** Called when the client has the reply, or is gone. */
  end(): void {
    if (this.#timer !== undefined) this.proxy.wheel.cancel(this.#timer);
    this.proxy.clientMemory.release(this.#reserved);
    this.#reserved = 0;
  }
}

function delayed(exchange: Exchange): void {
  exchange.delayOver();
}
