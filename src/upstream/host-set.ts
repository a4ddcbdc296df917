// All hosts of a cluster at one moment. They travel in columns, not as objects: 10,000 hosts reach a worker as a few
// arrays, and a host becomes an object there when it is first used.

import type { Locality } from './host.js';

/** Plain data of a snapshot. Column `i` is host `i`; the order is that of the configuration. */
export interface HostSetData {
  /** Raw sockaddrs one after the other; host i has [ends[i - 1] or 0, ends[i]). */
  readonly sockaddrs: Uint8Array;
  readonly sockaddrEnds: Int32Array;
  readonly hostnames: readonly string[];
  /** First of each host's HostWord words. */
  readonly blocks: Int32Array;
  /** Where each host's stats lie: chunk and base of a ScopeRef. */
  readonly statsChunks: Int32Array;
  readonly statsBases: Int32Array;
  readonly weights: Int32Array;
  readonly priorities: Uint8Array;
  /** HealthFlag bits that discovery gave; those in the host's Health word come on top. */
  readonly healthFlags: Int32Array;
  /** Index into `localities`. */
  readonly localityIndexes: Uint16Array;
  readonly localities: readonly Locality[];
}

/** What a worker keeps for a host. */
export interface HostObject {
  readonly block: number;
  readonly sockaddr: Uint8Array;
  /** The same host has another address now. */
  moveTo(sockaddr: Uint8Array): void;
}

/** A worker's view of a host set, with an object for each host that has been used. */
export class HostSet<H extends HostObject> {
  readonly data: HostSetData;
  readonly count: number;
  readonly #make: (set: HostSet<H>, index: number) => H;
  readonly #objects: (H | undefined)[];

  /**
   * `make` gives the object of a host that is used for the first time. Objects of `previous` whose hosts are still there
   * go on; removedFrom() gives the others.
   */
  constructor(data: HostSetData, make: (set: HostSet<H>, index: number) => H, previous?: HostSet<H>) {
    this.data = data;
    this.count = data.blocks.length;
    this.#make = make;
    this.#objects = new Array<H | undefined>(this.count).fill(undefined);
    if (previous !== undefined) this.#takeOver(previous);
  }

  host(index: number): H {
    return (this.#objects[index] ??= this.#make(this, index));
  }

  /** A copy: it outlives the set. */
  sockaddr(index: number): Uint8Array {
    const { sockaddrs, sockaddrEnds } = this.data;
    return sockaddrs.slice(index === 0 ? 0 : sockaddrEnds[index - 1]!, sockaddrEnds[index]!);
  }

  /** Objects that exist. */
  used(): H[] {
    return this.#objects.filter((host) => host !== undefined);
  }

  /** Objects of `previous` whose hosts are not here: their connections are to be drained. */
  removedFrom(previous: HostSet<H>): H[] {
    const used = previous.used();
    if (used.length === 0) return used;
    const blocks = new Set(this.data.blocks);
    return used.filter((host) => !blocks.has(host.block));
  }

  #takeOver(previous: HostSet<H>): void {
    const known = new Map(previous.used().map((host) => [host.block, host]));
    if (known.size === 0) return;
    const { blocks } = this.data;
    for (let index = 0; index < this.count; index++) {
      const host = known.get(blocks[index]!);
      if (host === undefined) continue;
      this.#objects[index] = host;
      if (!this.#isAt(index, host.sockaddr)) host.moveTo(this.sockaddr(index));
    }
  }

  #isAt(index: number, sockaddr: Uint8Array): boolean {
    const { sockaddrs, sockaddrEnds } = this.data;
    const start = index === 0 ? 0 : sockaddrEnds[index - 1]!;
    if (sockaddrEnds[index]! - start !== sockaddr.length) return false;
    for (let at = 0; at < sockaddr.length; at++) if (sockaddrs[start + at] !== sockaddr[at]) return false;
    return true;
  }
}

/** The set without hosts, for clusters that wait for their first resolution. */
export const EMPTY_HOST_SET: HostSetData = {
  sockaddrs: new Uint8Array(0),
  sockaddrEnds: new Int32Array(0),
  hostnames: [],
  blocks: new Int32Array(0),
  statsChunks: new Int32Array(0),
  statsBases: new Int32Array(0),
  weights: new Int32Array(0),
  priorities: new Uint8Array(0),
  healthFlags: new Int32Array(0),
  localityIndexes: new Uint16Array(0),
  localities: [],
};
