// The primary's list of a cluster's hosts: gives each host its shared words and stats, keeps them while the host stays,
// and lays the list out for snapshots.

import { type Address, addressText, encodeAddress } from '../io/address.js';
import type { Locality, ResolvedEndpoint } from './host.js';
import { EMPTY_HOST_SET, type HostSetData } from './host-set.js';

/** What a host owns in shared memory. */
export interface HostResources {
  readonly block: number;
  readonly statsChunk: number;
  readonly statsBase: number;
}

export interface HostResourceSource {
  /** Words and stats for a new host, known as `address`. */
  allocate(address: string): HostResources;
  /** The host has left: no snapshot to come has it. */
  retire(resources: HostResources): void;
}

/** One host as the primary knows it, for /clusters and health checks. */
export interface KnownHost extends HostResources {
  readonly endpoint: ResolvedEndpoint;
  /** `127.0.0.1:80` */
  readonly address: string;
}

export interface HostChanges {
  readonly added: number;
  readonly removed: number;
  readonly hasChanged: boolean;
}

export class HostDirectory {
  readonly #source: HostResourceSource;
  #hosts = new Map<string, KnownHost>();
  #data: HostSetData = EMPTY_HOST_SET;

  constructor(source: HostResourceSource) {
    this.#source = source;
  }

  /** The hosts of the last update, in its order. */
  get hosts(): Iterable<KnownHost> {
    return this.#hosts.values();
  }

  get size(): number {
    return this.#hosts.size;
  }

  /** For the next snapshot. */
  get data(): HostSetData {
    return this.#data;
  }

  /**
   * Takes a new list. Hosts are told apart by `key` or address, an address that comes twice counts once, and a host that
   * was there keeps its words and stats. Returns how many came and went, and whether anything is different at all.
   */
  update(endpoints: readonly ResolvedEndpoint[]): HostChanges {
    const before = this.#hosts;
    const after = new Map<string, KnownHost>();
    let added = 0;
    let isSame = true;
    for (const endpoint of endpoints) {
      const address = addressText(endpoint.address);
      const key = endpoint.key ?? address;
      if (after.has(key)) continue;
      const known = before.get(key);
      if (known !== undefined && known.address === address && isSameEndpoint(known.endpoint, endpoint)) {
        after.set(key, known);
        continue;
      }
      isSame = false;
      if (known === undefined) added++;
      const { block, statsChunk, statsBase } = known ?? this.#source.allocate(address);
      after.set(key, { endpoint, address, block, statsChunk, statsBase });
    }
    const removed = before.size - (after.size - added);
    if (isSame && removed === 0) return { added, removed, hasChanged: false };
    if (removed > 0) for (const [key, host] of before) if (!after.has(key)) this.#source.retire(host);
    this.#hosts = after;
    this.#data = layOut([...after.values()]);
    return { added, removed, hasChanged: true };
  }

  /** Gives everything back: the cluster is gone. */
  retireAll(): void {
    this.update([]);
  }
}

/** But for the address, and in whatever order they are listed. */
function isSameEndpoint(a: ResolvedEndpoint, b: ResolvedEndpoint): boolean {
  return (
    a.weight === b.weight &&
    a.healthFlags === b.healthFlags &&
    a.priority === b.priority &&
    a.hostname === b.hostname &&
    a.locality.region === b.locality.region &&
    a.locality.zone === b.locality.zone &&
    a.locality.subZone === b.locality.subZone
  );
}

function layOut(hosts: readonly KnownHost[]): HostSetData {
  const count = hosts.length;
  const localities = new LocalityTable();
  const sockaddrs = encodeAll(hosts.map((host) => host.endpoint.address));
  const data = {
    ...sockaddrs,
    hostnames: hosts.map((host) => host.endpoint.hostname),
    blocks: new Int32Array(count),
    statsChunks: new Int32Array(count),
    statsBases: new Int32Array(count),
    weights: new Int32Array(count),
    priorities: new Uint8Array(count),
    healthFlags: new Int32Array(count),
    localityIndexes: new Uint16Array(count),
    localities: localities.list,
  };
  for (const [index, { block, statsChunk, statsBase, endpoint }] of hosts.entries()) {
    data.blocks[index] = block;
    data.statsChunks[index] = statsChunk;
    data.statsBases[index] = statsBase;
    data.weights[index] = endpoint.weight;
    data.priorities[index] = endpoint.priority;
    data.healthFlags[index] = endpoint.healthFlags;
    data.localityIndexes[index] = localities.indexOf(endpoint.locality);
  }
  return data;
}

function encodeAll(addresses: readonly Address[]): { sockaddrs: Uint8Array; sockaddrEnds: Int32Array } {
  const encoded = addresses.map(encodeAddress);
  const sockaddrEnds = new Int32Array(addresses.length);
  const sockaddrs = new Uint8Array(encoded.reduce((sum, raw) => sum + raw.length, 0));
  let end = 0;
  for (const [index, raw] of encoded.entries()) {
    sockaddrs.set(raw, end);
    sockaddrEnds[index] = end += raw.length;
  }
  return { sockaddrs, sockaddrEnds };
}

class LocalityTable {
  readonly list: Locality[] = [];
  readonly #indexes = new Map<string, number>();

  indexOf(locality: Locality): number {
    const key = `${locality.region}\0${locality.zone}\0${locality.subZone}`;
    let index = this.#indexes.get(key);
    if (index === undefined) {
      index = this.list.push(locality) - 1;
      this.#indexes.set(key, index);
    }
    return index;
  }
}
