// All hosts of a cluster at one moment. They travel in columns, not as objects: 10,000 hosts reach a worker as a few
// arrays, and a host becomes an object there when it is first used.

import { HOST_WORDS } from '../shared-words.js';

/** Plain data of a snapshot. Column `i` is host `i`; the order is that of the configuration. */
export interface HostSetData {
  /** Raw sockaddrs one after the other; host i has [ends[i - 1] or 0, ends[i]). */
  readonly sockaddrs: Uint8Array;
  readonly sockaddrEnds: Int32Array;
  /** Index into `names`. */
  readonly hostnameIndexes: Uint32Array;
  /** Host names, each once. */
  readonly names: readonly string[];
  /** Index into `zones`. */
  readonly zoneIndexes: Uint32Array;
  /** Names of zones, each once. */
  readonly zones: readonly string[];
  /** First of each host's HostWord words. */
  readonly blocks: Int32Array;
  /** Where each host's stats lie: chunk and base of a ScopeRef. */
  readonly statsChunks: Int32Array;
  readonly statsBases: Int32Array;
  readonly weights: Uint32Array;
  readonly priorities: Uint8Array;
  /** HealthFlag bits. */
  readonly healthFlags: Int32Array;
  /** 1 for each that is a canary. */
  readonly canaries: Uint8Array;
  /** What hosts say that they are to be known by where they are chosen by hash, '' for each that does not; absent: none does. */
  readonly hashKeys?: readonly string[];
}

/** What may change while a host stays the same. */
export interface HostDescription {
  hostname: string;
  /** '' when nobody knows. */
  zone: string;
  isCanary: boolean;
}

/** What a worker keeps for a host. */
export interface HostObject extends HostDescription {
  readonly block: number;
  readonly sockaddr: Uint8Array;
  /** The same host has another address now. */
  moveTo(sockaddr: Uint8Array): void;
}

/**
 * A worker's view of a host set, with an object for each host that has been used. It is made in no time, whatever the number of
 * hosts: objects of the set before are found again when they are asked for.
 */
export class HostSet<H extends HostObject> {
  readonly data: HostSetData;
  readonly count: number;
  readonly #make: (set: HostSet<H>, index: number) => H;
  readonly #objects: (H | undefined)[];
  /** All objects by their block, also those that this set has not met yet. */
  readonly #known: Map<number, H>;

  /**
   * `make` gives the object of a host that is used for the first time. Objects of `previous`, which is not used any more, whose
   * hosts are still there go on; takeRemoved() gives the others.
   */
  constructor(data: HostSetData, make: (set: HostSet<H>, index: number) => H, previous?: HostSet<H>) {
    this.data = data;
    this.count = data.blocks.length;
    this.#make = make;
    this.#objects = new Array<H | undefined>(this.count).fill(undefined);
    this.#known = previous === undefined ? new Map() : previous.#known;
  }

  host(index: number): H {
    return this.#objects[index] ?? this.#meet(index);
  }

  describe(index: number): HostDescription {
    const { names, hostnameIndexes, zones, zoneIndexes, canaries } = this.data;
    return {
      hostname: names[hostnameIndexes[index]!]!,
      zone: zones[zoneIndexes[index]!]!,
      isCanary: canaries[index] === 1,
    };
  }

  /** The object of a host that has been used, in this set or in one before. */
  known(index: number): H | undefined {
    return this.#known.get(this.data.blocks[index]!);
  }

  /** A copy: it outlives the set. */
  sockaddr(index: number): Uint8Array {
    const { sockaddrs, sockaddrEnds } = this.data;
    return sockaddrs.slice(index === 0 ? 0 : sockaddrEnds[index - 1]!, sockaddrEnds[index]!);
  }

  /** Objects whose hosts are not here: their connections are to be drained. Told once. */
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

  #meet(index: number): H {
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

/** 1 for each block that is listed. */
function blockSet(blocks: Int32Array): Uint8Array {
  let last = 0;
  for (let index = 0; index < blocks.length; index++) if (blocks[index]! > last) last = blocks[index]!;
  const set = new Uint8Array((last >>> BLOCK_SHIFT) + 1);
  for (let index = 0; index < blocks.length; index++) set[blocks[index]! >>> BLOCK_SHIFT] = 1;
  return set;
}

/** The set without hosts, for clusters that wait for their first resolution. */
export const EMPTY_HOST_SET: HostSetData = {
  sockaddrs: new Uint8Array(0),
  sockaddrEnds: new Int32Array(0),
  hostnameIndexes: new Uint32Array(0),
  zoneIndexes: new Uint32Array(0),
  names: [],
  zones: [],
  blocks: new Int32Array(0),
  statsChunks: new Int32Array(0),
  statsBases: new Int32Array(0),
  weights: new Uint32Array(0),
  priorities: new Uint8Array(0),
  healthFlags: new Int32Array(0),
  canaries: new Uint8Array(0),
};
