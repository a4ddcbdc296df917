// Encodes and decodes the messages between the processes of a hot restart. Loaded at the first message, so that a server that
// never restarts does not load protobufjs here.

import { createRequire } from 'node:module';
import type protobufjs from 'protobufjs';
import { MAX_TICKET_KEYS, TICKET_KEY_BYTES, type TicketKeys } from '../tls/shared-ticket-keys.js';
import { SCHEMA } from './schema.js';

export interface Hello {
  /** HOT_RESTART_VERSION of the child. */
  readonly version: string;
  /** The child's epoch. */
  readonly epoch: number;
}

/** The sockets of one listener or of the admin interface that the parent offers. */
export interface OfferedSockets {
  /** Their id in Live. */
  readonly id: number;
  readonly isAdmin: boolean;
  /** Name of the listener; '' for the admin interface. */
  readonly name: string;
  /** Addresses in addressText() form: as configured, possibly with port 0, and as bound. */
  readonly configured: string;
  readonly real: string;
  /** Options of the sockets that cannot change after bind(), as one string. */
  readonly traits: string;
  /** More sockets can be bound to the address. */
  readonly isReusePort: boolean;
  /** Their number of descriptors in the message. */
  readonly count: number;
}

export interface Welcome {
  /** When the first epoch began, in milliseconds of CLOCK_MONOTONIC, which the processes of a machine share. */
  readonly firstStartedMs: number;
  /** The parent's number in the succession of epochs; the first has 1. */
  readonly generation: number;
  readonly sockets: readonly OfferedSockets[];
  readonly isLast: boolean;
  /** The keys of session tickets; undefined if there are none, and after the first welcome. */
  readonly ticketKeys?: TicketKeys | undefined;
}

/** The parent's stats under one prefix. */
export interface StatsSection {
  readonly prefix: string;
  readonly counters: readonly string[];
  /** Each counter's increase since the child was last notified; at first its value. */
  readonly deltas: readonly number[];
  /** The part of each delta that the parent has flushed to its stats sinks. */
  readonly flushed: readonly number[];
  /** Gauges that a child adopts while its parent lives, and their values. */
  readonly gauges: readonly string[];
  readonly values: readonly number[];
}

export interface StatsPiece {
  readonly sections: readonly StatsSection[];
  readonly memoryAllocated: number;
  readonly connections: number;
  readonly isLast: boolean;
}

export type ToChild =
  | { readonly kind: 'refusal'; readonly reason: string }
  | { readonly kind: 'welcome'; readonly welcome: Welcome }
  | { readonly kind: 'stats'; readonly stats: StatsPiece }
  /** With channels for established connections, for all workers. */
  | { readonly kind: 'hand-over' }
  /** The parent has no connections any more, and may end. */
  | { readonly kind: 'empty' }
  /** Answers `live`: the parent and its admin interface accept nothing any more. */
  | { readonly kind: 'replaced' }
  /** Answers `release`. */
  | { readonly kind: 'released' };

export type ToParent =
  /** The child is alive but not live yet: a parent refuses one that sends nothing. */
  | { readonly kind: 'alive' }
  /** The child serves: `taken` are the sockets that it has taken over. */
  | {
      readonly kind: 'live';
      readonly taken: readonly number[];
      readonly parentShutdownTimeS: number;
      /** Number of workers that await established connections of the parent; 0: they are not requested. */
      readonly connectionWorkers: number;
    }
  | { readonly kind: 'stats-request' }
  | { readonly kind: 'terminate' }
  /**
   * Sockets that the child has bound in addition to the received ones, before they listen: the parent keeps copies, so that
   * connections that the kernel queues there outlive the child.
   */
  | { readonly kind: 'further'; readonly sockets: readonly FurtherSockets[] }
  /**
   * The child is about to stop accepting on these sockets: the parent closes its copies, because clients would wait there
   * forever.
   */
  | { readonly kind: 'release'; readonly ids: readonly number[] };

/** Additional sockets for an offer. */
export interface FurtherSockets {
  readonly id: number;
  /** Number of descriptors in the message. */
  readonly count: number;
}

/** A peer has sent an invalid message. */
class GarbageError extends Error {
  readonly code = 'ERR_GARBAGE';
}

/** Range of Envoy's counters. */
const MAX_AMOUNT = 2 ** 64;

const { Root } = createRequire(import.meta.url)('protobufjs/light.js') as typeof protobufjs;
const root = Root.fromJSON(SCHEMA);
const types = {
  hello: root.lookupType('Hello'),
  toChild: root.lookupType('ToChild'),
  toParent: root.lookupType('ToParent'),
};

export function encodeHello(hello: Hello): Uint8Array {
  return types.hello.encode(hello).finish();
}

/** Throws GarbageError. */
export function decodeHello(bytes: Uint8Array): Hello {
  return decode(types.hello, bytes) as unknown as Hello;
}

export function encodeToChild(message: ToChild): Uint8Array {
  switch (message.kind) {
    case 'refusal':
      return types.toChild.encode({ refusal: message.reason }).finish();
    case 'welcome':
      return types.toChild.encode({ welcome: message.welcome }).finish();
    case 'stats':
      return types.toChild.encode({ stats: message.stats }).finish();
    case 'hand-over':
      return types.toChild.encode({ handOver: {} }).finish();
    case 'empty':
      return types.toChild.encode({ empty: {} }).finish();
    case 'replaced':
      return types.toChild.encode({ replaced: {} }).finish();
    case 'released':
      return types.toChild.encode({ released: {} }).finish();
  }
}

/** Throws GarbageError. */
export function decodeToChild(bytes: Uint8Array): ToChild {
  const { content, refusal, welcome, stats } = decode(types.toChild, bytes) as {
    content?: string;
    refusal: string;
    welcome: Welcome & { readonly ticketKeys: TicketKeys | null };
    stats: StatsPiece;
  };
  if (content === 'refusal') return { kind: 'refusal', reason: refusal };
  if (content === 'welcome') {
    if (!isAmount(welcome.firstStartedMs)) throw new GarbageError('a welcome without a valid time');
    const { ticketKeys, ...rest } = welcome;
    if (ticketKeys === null) return { kind: 'welcome', welcome: rest };
    if (!areTicketKeys(ticketKeys)) throw new GarbageError('a welcome with invalid ticket keys');
    return { kind: 'welcome', welcome };
  }
  if (content === 'handOver') return { kind: 'hand-over' };
  if (content === 'empty' || content === 'replaced' || content === 'released') return { kind: content };
  if (content !== 'stats') throw new GarbageError('a message without content');
  for (const { counters, deltas, flushed, gauges, values } of stats.sections) {
    if (counters.length !== deltas.length || counters.length !== flushed.length || gauges.length !== values.length)
      throw new GarbageError('stats without values');
    if (!deltas.every(isAmount) || !flushed.every(isAmount) || !values.every(isAmount))
      throw new GarbageError('stats with invalid values');
  }
  if (!isAmount(stats.memoryAllocated) || !isAmount(stats.connections))
    throw new GarbageError('stats with invalid totals');
  return { kind: 'stats', stats };
}

export function encodeToParent(message: ToParent): Uint8Array {
  switch (message.kind) {
    case 'alive':
      return types.toParent.encode({ alive: {} }).finish();
    case 'live': {
      const { taken, parentShutdownTimeS, connectionWorkers } = message;
      return types.toParent.encode({ live: { taken, parentShutdownTimeS, connectionWorkers } }).finish();
    }
    case 'stats-request':
      return types.toParent.encode({ statsRequest: {} }).finish();
    case 'terminate':
      return types.toParent.encode({ terminate: {} }).finish();
    case 'further': {
      const ids = message.sockets.map(({ id }) => id);
      const counts = message.sockets.map(({ count }) => count);
      return types.toParent.encode({ further: { ids, counts } }).finish();
    }
    case 'release':
      return types.toParent.encode({ release: { ids: message.ids } }).finish();
  }
}

/** Throws GarbageError. */
export function decodeToParent(bytes: Uint8Array): ToParent {
  const { content, further, live, release } = decode(types.toParent, bytes) as {
    content?: string;
    live: { taken: number[]; parentShutdownTimeS: number; connectionWorkers: number };
    further: { ids: number[]; counts: number[] };
    release: { ids: number[] };
  };
  if (content === 'live') return { kind: 'live', ...live };
  if (content === 'alive') return { kind: 'alive' };
  if (content === 'statsRequest') return { kind: 'stats-request' };
  if (content === 'terminate') return { kind: 'terminate' };
  if (content === 'release') return { kind: 'release', ids: release.ids };
  if (content === 'further') {
    const { counts, ids } = further;
    if (ids.length !== counts.length) throw new GarbageError('sockets without counts');
    return { kind: 'further', sockets: ids.map((id, index) => ({ id, count: counts[index]! })) };
  }
  throw new GarbageError('a message without content');
}

function decode(type: protobufjs.Type, bytes: Uint8Array): Record<string, unknown> {
  try {
    return type.toObject(type.decode(bytes), { defaults: true, arrays: true, oneofs: true });
  } catch (error) {
    throw new GarbageError(error instanceof Error ? error.message : String(error));
  }
}

function areTicketKeys({ keys, madeMs }: TicketKeys): boolean {
  const count = keys.length / TICKET_KEY_BYTES;
  return Number.isInteger(count) && count > 0 && count <= MAX_TICKET_KEYS && isAmount(madeMs);
}

/** Returns whether the value is a valid count. Large sums may be imprecise. */
function isAmount(value: number): boolean {
  return value >= 0 && value < MAX_AMOUNT;
}
