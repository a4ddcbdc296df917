// The messages between the processes of a hot restart in their bytes. Loaded when the first one comes or goes: a server that
// never restarts does without protobufjs here.

import { createRequire } from 'node:module';
import type protobufjs from 'protobufjs';
import { SCHEMA } from './schema.js';

export interface Hello {
  /** HOT_RESTART_VERSION of the child. */
  readonly version: string;
  /** The child's own. */
  readonly epoch: number;
}

/** The sockets of one listener or of the admin interface, as the parent offers them. */
export interface OfferedSockets {
  /** Names them in Live. */
  readonly id: number;
  readonly isAdmin: boolean;
  /** Of the listener; '' for the admin interface. */
  readonly name: string;
  /** Addresses in addressText() form: as configured, where port 0 may stand, and as bound. */
  readonly configured: string;
  readonly real: string;
  /** Options of the sockets that cannot be changed once they are bound, in one text. */
  readonly traits: string;
  /** Further sockets can be bound to the address. */
  readonly isReusePort: boolean;
  /** How many descriptors of the message are theirs. */
  readonly count: number;
}

export interface Welcome {
  /** When the first epoch began, in milliseconds of CLOCK_MONOTONIC, which the processes of a machine share. */
  readonly firstStartedMs: number;
  /** Of the parent: epochs that have followed each other, the first counts 1. */
  readonly generation: number;
  readonly sockets: readonly OfferedSockets[];
  readonly isLast: boolean;
}

/** What the parent has counted under one prefix. */
export interface StatsSection {
  readonly prefix: string;
  readonly counters: readonly string[];
  /** What each counter has counted since the child was told last; what it stands at the first time. */
  readonly deltas: readonly number[];
  /** How much of each delta the parent's stats sinks have been given. */
  readonly flushed: readonly number[];
  /** Gauges that a child takes over while its parent lives, and their values now. */
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
  /** With channels on which established connections come, for all workers. */
  | { readonly kind: 'hand-over' }
  /** The parent has no connections any more, and may end. */
  | { readonly kind: 'empty' }
  /** The parent accepts no connection any more, and its admin interface answers nothing. Answers `live`. */
  | { readonly kind: 'replaced' }
  /** Answers `release`. */
  | { readonly kind: 'released' };

export type ToParent =
  /** The child is not live yet, and works at it: a parent gives up one that says nothing. */
  | { readonly kind: 'alive' }
  /** The child serves: `taken` are the sockets that it has taken over. */
  | {
      readonly kind: 'live';
      readonly taken: readonly number[];
      readonly parentShutdownTimeS: number;
      /** How many workers wait for established connections of the parent; 0: they are not wanted. */
      readonly connectionWorkers: number;
    }
  | { readonly kind: 'stats-request' }
  | { readonly kind: 'terminate' }
  /**
   * Sockets that the child has bound beside those that it was given, before they listen: the parent keeps copies, so that what
   * the kernel queues there outlives the child.
   */
  | { readonly kind: 'further'; readonly sockets: readonly FurtherSockets[] }
  /** The child is about to stop accepting at these sockets: the parent closes its copies, or clients would wait there for nobody. */
  | { readonly kind: 'release'; readonly ids: readonly number[] };

/** Sockets that belong to those that were offered under this number. */
export interface FurtherSockets {
  readonly id: number;
  /** How many descriptors of the message. */
  readonly count: number;
}

/** A peer has sent what is no message. */
class GarbageError extends Error {
  readonly code = 'ERR_GARBAGE';
}

/** What Envoy's counters hold. */
const MOST = 2 ** 64;

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
    welcome: Welcome;
    stats: StatsPiece;
  };
  if (content === 'refusal') return { kind: 'refusal', reason: refusal };
  if (content === 'welcome') {
    if (!isAmount(welcome.firstStartedMs)) throw new GarbageError('a welcome of no time');
    return { kind: 'welcome', welcome };
  }
  if (content === 'handOver') return { kind: 'hand-over' };
  if (content === 'empty' || content === 'replaced' || content === 'released') return { kind: content };
  if (content !== 'stats') throw new GarbageError('a message without content');
  for (const { counters, deltas, flushed, gauges, values } of stats.sections) {
    if (counters.length !== deltas.length || counters.length !== flushed.length || gauges.length !== values.length)
      throw new GarbageError('stats without values');
    if (!deltas.every(isAmount) || !flushed.every(isAmount) || !values.every(isAmount))
      throw new GarbageError('stats that are no amounts');
  }
  if (!isAmount(stats.memoryAllocated) || !isAmount(stats.connections)) throw new GarbageError('stats of no process');
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
    if (ids.length !== counts.length) throw new GarbageError('sockets without numbers');
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

/** Sums of a great many of them are numbers, too. */
function isAmount(value: number): boolean {
  return value >= 0 && value < MOST;
}
