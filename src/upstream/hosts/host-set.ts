// All hosts of a cluster at one moment, in columns instead of objects: 10,000 hosts reach a worker as a few arrays. A worker
// creates a host's object when it first uses the host.

import type { Metadata } from '../../config/generated/api.js';
import { HOST_WORDS } from '../shared-words.js';
import type { Locality, WeightedLocality } from './locality.js';
import { OWN_TRANSPORT } from './transport-matches.js';

/** Plain data of a snapshot. Entry `i` of each column belongs to host `i`, in the order of the configuration. */
export interface HostSetData {
  /** Concatenated raw sockaddrs; host i has [ends[i - 1] or 0, ends[i]). */
  readonly sockaddrs: Uint8Array;
  readonly sockaddrEnds: Int32Array;
  /** Index into `names`. */
  readonly hostnameIndexes: Uint32Array;
  /** Distinct hostnames. */
  readonly names: readonly string[];
  /** Index into `localities`. */
  readonly localityIndexes: Uint32Array;
  /** Distinct localities with their weights. */
  readonly localities: readonly WeightedLocality[];
  /** Index of each host's first HostWord word. */
  readonly blocks: Int32Array;
  /** Chunk and base of the ScopeRef of each host's stats. */
  readonly statsChunks: Int32Array;
  readonly statsBases: Int32Array;
  readonly weights: Uint32Array;
  readonly priorities: Uint8Array;
  /** HealthFlag bits. */
  readonly healthFlags: Int32Array;
  /** See HostList.healthySinceMs; absent: the load-balancing policy does not need it. */
  readonly healthySinceMs?: Float64Array;
  /** 1 for each canary. */
  readonly canaries: Uint8Array;
  /** `hash_key` from the hosts' metadata, '' for hosts without; absent: no host has one. */
  readonly hashKeys?: readonly string[];
  /** Metadata of the hosts, null for hosts without; absent: no host has some. */
  readonly metadata?: readonly (Metadata | null)[];
  /** Metadata of the hosts' groups; absent: no group has any. */
  readonly localityMetadata?: readonly (Metadata | null)[];
  /** Numbers of their transport sockets; absent: all have OWN_TRANSPORT. */
  readonly transports?: readonly number[];
  /** Other addresses of the hosts, as text, null for hosts without; absent: no host has any. */
  readonly additional?: readonly (readonly string[] | null)[];
}

/** Properties of a host that may change while it remains the same host. */
export interface HostDescription {
  hostname: string;
  locality: Locality;
  /** Metadata of the host's group of endpoints. */
  localityMetadata: Metadata | undefined;
  isCanary: boolean;
  metadata: Metadata | undefined;
  /** Number of its transport socket: see TransportMatches. */
  transport: number;
  /** Other addresses of the host, as text; undefined: it has none. */
  additional: readonly string[] | undefined;
}

/** A worker's object for a host. */
export interface HostObject extends HostDescription {
  readonly block: number;
  readonly sockaddr: Uint8Array;
  /** Sets the new address of the host. */
  moveTo(sockaddr: Uint8Array): void;
}

/**
 * A worker's view of a host set, with an object for each host that it has used. It is cheap to make for any number of hosts:
 * objects of the previous set are looked up on use.
 */
export class HostSet<H extends HostObject> {
  readonly data: HostSetData;
  readonly count: number;
  readonly #make: (set: HostSet<H>, index: number) => H;
  readonly #objects: (H | undefined)[];
  /** All objects by block, including those of earlier sets that this set has not used yet. */
  readonly #known: Map<number, H>;

  /**
   * `make` creates the object of a host at its first use. Objects of remaining hosts are taken over from `previous`, which must
   * not be used any more; takeRemoved() returns the others.
   */
  constructor(data: HostSetData, make: (set: HostSet<H>, index: number) => H, previous?: HostSet<H>) {
    this.data = data;
    this.count = data.blocks.length;
    this.#make = make;
    this.#objects = new Array<H | undefined>(this.count).fill(undefined);
    this.#known = previous === undefined ? new Map() : previous.#known;
  }

  host(index: number): H {
    return this.#objects[index] ?? this.#materialize(index);
  }

  describe(index: number): HostDescription {
    const { additional, canaries, hostnameIndexes, localities, localityIndexes, localityMetadata } = this.data;
    const { metadata, names, transports } = this.data;
    return {
      hostname: names[hostnameIndexes[index]!]!,
      locality: localities[localityIndexes[index]!]!,
      localityMetadata: localityMetadata?.[index] ?? undefined,
      isCanary: canaries[index] === 1,
      metadata: metadata?.[index] ?? undefined,
      transport: transports?.[index] ?? OWN_TRANSPORT,
      additional: additional?.[index] ?? undefined,
    };
  }

  /** Returns the object of a host that was used in this set or an earlier one. */
  known(index: number): H | undefined {
    return this.#known.get(this.data.blocks[index]!);
  }

  /** Returns whether the object is that of a host in this set. takeRemoved() must have been called. */
  has(host: HostObject): boolean {
    return this.#known.get(host.block) === host;
  }

  /** Returns a copy, which outlives the set. */
  sockaddr(index: number): Uint8Array {
    const { sockaddrs, sockaddrEnds } = this.data;
    return sockaddrs.slice(index === 0 ? 0 : sockaddrEnds[index - 1]!, sockaddrEnds[index]!);
  }

  /** Returns, once, the objects of removed hosts, whose connections the caller drains. */
  takeRemoved(): H[] {
    const removed: H[] = [];
    if (this.#known.size === 0) return removed;
    const isHere = blockSet(this.data.blocks);
    for (const [block, host] of this.#known) {
      if (isHere[block >>> BLOCK_SHIFT] === 1) continue;
      removed.push(host);
      this.#known.delete(block);
    }
    return removed;
  }

  #materialize(index: number): H {
    const block = this.data.blocks[index]!;
    let host = this.#known.get(block);
    if (host === undefined) {
      host = this.#make(this, index);
      this.#known.set(block, host);
    } else {
      Object.assign(host, this.describe(index));
      if (!this.#isAt(index, host.sockaddr)) host.moveTo(this.sockaddr(index));
    }
    this.#objects[index] = host;
    return host;
  }

  #isAt(index: number, sockaddr: Uint8Array): boolean {
    const { sockaddrs, sockaddrEnds } = this.data;
    const start = index === 0 ? 0 : sockaddrEnds[index - 1]!;
    if (sockaddrEnds[index]! - start !== sockaddr.length) return false;
    for (let at = 0; at < sockaddr.length; at++) if (sockaddrs[start + at] !== sockaddr[at]) return false;
    return true;
  }
}

/** Host blocks are aligned to their size. */
const BLOCK_SHIFT = Math.log2(HOST_WORDS);

/** Returns an array with 1 for each listed block. */
function blockSet(blocks: Int32Array): Uint8Array {
  let last = 0;
  for (let index = 0; index < blocks.length; index++) if (blocks[index]! > last) last = blocks[index]!;
  const set = new Uint8Array((last >>> BLOCK_SHIFT) + 1);
  for (let index = 0; index < blocks.length; index++) set[blocks[index]! >>> BLOCK_SHIFT] = 1;
  return set;
}

/** Returns whether both have the same addresses in the same order: 10,000 take a few microseconds. */
export function hasSameAddresses(a: HostSetData, b: HostSetData): boolean {
  return isSameColumn(a.sockaddrs, b.sockaddrs) && isSameColumn(a.sockaddrEnds, b.sockaddrEnds);
}

function isSameColumn(a: Uint8Array | Int32Array, b: Uint8Array | Int32Array): boolean {
  return Buffer.from(a.buffer, a.byteOffset, a.byteLength).equals(Buffer.from(b.buffer, b.byteOffset, b.byteLength));
}

/** The empty set, for clusters that wait for their first resolution. */
export const EMPTY_HOST_SET: HostSetData = {
  sockaddrs: new Uint8Array(0),
  sockaddrEnds: new Int32Array(0),
  hostnameIndexes: new Uint32Array(0),
  localityIndexes: new Uint32Array(0),
  names: [],
  localities: [],
  blocks: new Int32Array(0),
  statsChunks: new Int32Array(0),
  statsBases: new Int32Array(0),
  weights: new Uint32Array(0),
  priorities: new Uint8Array(0),
  healthFlags: new Int32Array(0),
  canaries: new Uint8Array(0),
};
