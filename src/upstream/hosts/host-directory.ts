// The primary's list of a cluster's hosts. It allocates shared words and stats for each host, keeps them while the host remains,
// and encodes the list for snapshots.

import { isDeepStrictEqual } from 'node:util';
import { type Address, addressText, encodeAddress } from '../../io/addresses/address.js';
import { monotonicMs } from '../../io/time/timer-driver.js';
import type { ScopeRef } from '../../stats/thread-stats.js';
import { HealthFlag } from './health-flags.js';
import { keyOf, type ResolvedEndpoint } from './host.js';
import { HostPreparation, type HostResourceSource, type HostResources } from './host-preparation.js';
import { EMPTY_HOST_SET, type HostSetData } from './host-set.js';
import { isSameLocality, type WeightedLocality } from './locality.js';
import type { ObservedHealth } from './observed-health.js';
import { OWN_TRANSPORT } from './transport-matches.js';

/** A host on the primary, for /clusters and health checks. */
export interface KnownHost extends HostResources {
  readonly endpoint: ResolvedEndpoint;
  /** See keyOf(). */
  readonly key: string;
  /** `127.0.0.1:80` */
  readonly address: string;
  /** HealthFlag bits, both of the endpoint and observed. */
  readonly healthFlags: number;
}

export interface HostChanges {
  readonly added: number;
  readonly removed: number;
  /** Number of priorities to which hosts were added or from which they were removed. */
  readonly priorities: number;
  readonly hasChanged: boolean;
}

const NO_PREPARATIONS: readonly HostPreparation[] = [];

export class HostDirectory {
  readonly #source: HostResourceSource;
  readonly #now: () => number;
  readonly #byKey = new Map<string, ListedHost>();
  /** Resources prepared for coming lists. */
  #preparations: readonly HostPreparation[] = NO_PREPARATIONS;
  #hosts: readonly ListedHost[] = [];
  #data: HostSetData = EMPTY_HOST_SET;
  #update = 0;

  /** @param now monotonic milliseconds */
  constructor(source: HostResourceSource, now: () => number = monotonicMs) {
    this.#source = source;
    this.#now = now;
  }

  /** The hosts of the last update, in its order. */
  get hosts(): readonly KnownHost[] {
    return this.#hosts;
  }

  /** Returns the host with this key (keyOf()); undefined: it is not in the last update. */
  find(key: string): KnownHost | undefined {
    return this.#byKey.get(key);
  }

  /** Returns the column healthySinceMs of the encoded hosts. */
  healthTimes(): Float64Array {
    return Float64Array.from(this.#hosts, ({ healthySinceMs }) => healthySinceMs);
  }

  /** The encoded hosts, for the next snapshot. */
  get data(): HostSetData {
    return this.#data;
  }

  /**
   * Begins to prepare resources for the new hosts of a long list. The caller runs steps(), and calls discardPreparation() once
   * the list is in use or rejected.
   */
  prepare(): HostPreparation {
    const preparation = new HostPreparation(this.#source, (key) => this.#byKey.has(key) || this.#isPrepared(key));
    this.#preparations = [...this.#preparations, preparation];
    return preparation;
  }

  /** Releases what update() has not taken. */
  discardPreparation(preparation: HostPreparation): void {
    preparation.discard();
    this.#preparations = this.#preparations.filter((each) => each !== preparation);
  }

  /**
   * Replaces the list and the observed health. keyOf() identifies hosts: an address that occurs twice counts once, and a
   * remaining host keeps its words and stats. Returns how many hosts were added and removed, and whether anything has changed;
   * the order does not count. Throws a RangeError, with nothing changed, when there is no room for a new host. `matched` is called for the
   * transport socket of each new host, and of each whose own has changed.
   */
  update(
    endpoints: readonly ResolvedEndpoint[],
    observed?: ObservedHealth,
    matched: (transport: number) => void = () => {},
  ): HostChanges {
    const update = ++this.#update;
    const before = this.#hosts;
    const { added, hosts, moved } = this.#list(endpoints, observed, update);
    for (const { endpoint, healthFlags, host } of moved) {
      if (transportOf(endpoint) !== transportOf(host.endpoint)) matched(transportOf(endpoint));
      host.moveTo(endpoint, healthFlags, this.#now);
    }
    if (added > 0) for (const { endpoint, place } of hosts) if (place < 0) matched(transportOf(endpoint));
    const removed = before.length - (hosts.length - added);
    if (moved.length + added + removed === 0) return { added, removed, priorities: 0, hasChanged: false };
    const priorities = added + removed === 0 ? 0 : changedPriorities(before, hosts, update);
    if (removed > 0) this.#remove(before, update);
    this.#hosts = hosts;
    this.#data = layOut(hosts, this.#data);
    return { added, removed, priorities, hasChanged: true };
  }

  /** Applies newly observed health to the current hosts. Returns whether any flags have changed. */
  updateHealth(observed: ObservedHealth): boolean {
    let healthFlags: Int32Array | undefined;
    for (const [index, host] of this.#hosts.entries()) {
      const flags = healthOf(host.endpoint, host.key, observed);
      if (flags === host.healthFlags) continue;
      host.setHealth(flags, this.#now);
      healthFlags ??= this.#data.healthFlags.slice();
      healthFlags[index] = flags;
    }
    if (healthFlags === undefined) return false;
    this.#data = { ...this.#data, healthFlags };
    return true;
  }

  /** Releases all hosts when the cluster is removed. */
  retireAll(): void {
    this.update([]);
  }

  /** Returns the hosts of a list, creating new ones. Throws as update() does. */
  #list(endpoints: readonly ResolvedEndpoint[], observed: ObservedHealth | undefined, update: number): HostList {
    const hosts: ListedHost[] = [];
    const moved: Move[] = [];
    let added = 0;
    /** Index of the next endpoint if the list is unchanged. */
    let place = 0;
    for (const endpoint of endpoints) {
      const host = this.#find(endpoint, this.#hosts[place]);
      if (host === undefined) {
        hosts.push(this.#addTo(hosts, endpoint, observed, update));
        added++;
      } else if (host.update !== update) {
        place = host.place + 1;
        host.update = update;
        hosts.push(host);
        const healthFlags = healthOf(endpoint, host.key, observed);
        if (healthFlags !== host.healthFlags || !isSameEndpoint(host.endpoint, endpoint))
          moved.push({ host, endpoint, healthFlags });
      }
    }
    return { hosts, moved, added };
  }

  /** Most hosts of a long list keep their position: comparing with `likely` saves the look-up. */
  #find(endpoint: ResolvedEndpoint, likely: ListedHost | undefined): ListedHost | undefined {
    return likely !== undefined && isSameHost(likely.endpoint, endpoint) ? likely : this.#byKey.get(keyOf(endpoint));
  }

  /** Creates the next host of `hosts`. When there is no room, releases the other new ones and throws. */
  #addTo(
    hosts: readonly ListedHost[],
    endpoint: ResolvedEndpoint,
    observed: ObservedHealth | undefined,
    update: number,
  ): ListedHost {
    try {
      return this.#add(endpoint, observed, update);
    } catch (error) {
      for (const host of hosts) if (host.place < 0) this.#retire(host);
      // There is no room: nothing may stay reserved.
      for (const preparation of this.#preparations) preparation.discard();
      throw error;
    }
  }

  #add(endpoint: ResolvedEndpoint, observed: ObservedHealth | undefined, update: number): ListedHost {
    const key = keyOf(endpoint);
    const resources =
      this.#takePrepared(key) ?? this.#source.allocate(endpoint.statName ?? addressText(endpoint.address));
    const host = new ListedHost(endpoint, key, resources, this.#now());
    host.healthFlags = healthOf(endpoint, key, observed);
    host.update = update;
    this.#byKey.set(host.key, host);
    return host;
  }

  #isPrepared(key: string): boolean {
    for (const preparation of this.#preparations) if (preparation.has(key)) return true;
    return false;
  }

  #takePrepared(key: string): HostResources | undefined {
    for (const preparation of this.#preparations) {
      const resources = preparation.take(key);
      if (resources !== undefined) return resources;
    }
    return undefined;
  }

  #remove(hosts: readonly ListedHost[], update: number): void {
    for (const host of hosts) {
      if (host.update !== update) this.#retire(host);
    }
  }

  #retire(host: ListedHost): void {
    this.#byKey.delete(host.key);
    this.#source.retire(host);
  }
}

interface HostList {
  readonly hosts: ListedHost[];
  readonly moved: readonly Move[];
  readonly added: number;
}

/** An update of a host that was listed already. */
interface Move {
  readonly host: ListedHost;
  readonly endpoint: ResolvedEndpoint;
  readonly healthFlags: number;
}

class ListedHost implements KnownHost {
  endpoint: ResolvedEndpoint;
  address: string;
  healthFlags = 0;
  /** Monotonic time at which it was added or passed its health checks again. */
  healthySinceMs: number;
  readonly key: string;
  readonly block: number;
  readonly scope: ScopeRef;
  /** Number of the last update that contained it. */
  update = 0;
  /** Its index in the list; -1 before it is listed. */
  place = -1;
  /** The encoded list has its old address. */
  hasMoved = false;

  constructor(endpoint: ResolvedEndpoint, key: string, { block, scope }: HostResources, nowMs: number) {
    this.healthySinceMs = nowMs;
    this.endpoint = endpoint;
    this.address = addressText(endpoint.address);
    this.key = key;
    this.block = block;
    this.scope = scope;
  }

  setHealth(flags: number, now: () => number): void {
    if (this.healthFlags & ~flags & HealthFlag.FailedActiveHealthCheck) this.healthySinceMs = now();
    this.healthFlags = flags;
  }

  moveTo(endpoint: ResolvedEndpoint, healthFlags: number, now: () => number): void {
    if (!isSameAddress(this.endpoint.address, endpoint.address)) {
      this.address = addressText(endpoint.address);
      this.hasMoved = true;
    }
    this.endpoint = endpoint;
    this.setHealth(healthFlags, now);
  }
}

function healthOf(endpoint: ResolvedEndpoint, key: string, observed: ObservedHealth | undefined): number {
  return observed === undefined ? endpoint.healthFlags : endpoint.healthFlags | observed.flagsOf(key);
}

function isSameHost(a: ResolvedEndpoint, b: ResolvedEndpoint): boolean {
  return a.key === b.key && (a.key !== undefined || isSameAddress(a.address, b.address));
}

/** Returns whether connections to `a` and `b` go to the same place. */
export function isSameAddress(a: Address, b: Address): boolean {
  return a.port === b.port && a.ip === b.ip && a.kind === b.kind && a.path === b.path;
}

function hasSameAdditional({ additional: a }: ResolvedEndpoint, { additional: b }: ResolvedEndpoint): boolean {
  if (a === undefined || b === undefined) return a === b;
  return a.length === b.length && a.every((address, index) => isSameAddress(address, b[index]!));
}

/** Compares two versions of the same host's endpoint, except for the health. */
function isSameEndpoint(a: ResolvedEndpoint, b: ResolvedEndpoint): boolean {
  return (
    a.weight === b.weight &&
    a.isCanary === b.isCanary &&
    a.priority === b.priority &&
    a.hostname === b.hostname &&
    a.localityWeight === b.localityWeight &&
    transportOf(a) === transportOf(b) &&
    isSameAddress(a.address, b.address) &&
    hasSameAdditional(a, b) &&
    isSameLocality(a.locality, b.locality) &&
    isDeepStrictEqual(a.metadata, b.metadata) &&
    isDeepStrictEqual(a.localityMetadata, b.localityMetadata)
  );
}

/** Counts the priorities of the hosts that only one of the lists has. */
function changedPriorities(before: readonly ListedHost[], hosts: readonly ListedHost[], update: number): number {
  const priorities = new Set<number>();
  for (const host of before) if (host.update !== update) priorities.add(host.endpoint.priority);
  // The place of a new host is not set yet.
  for (const host of hosts) if (host.place < 0) priorities.add(host.endpoint.priority);
  return priorities.size;
}

function layOut(hosts: readonly ListedHost[], before: HostSetData): HostSetData {
  const count = hosts.length;
  if (count === 0) return EMPTY_HOST_SET;
  const names = new NameTable();
  const localities = new LocalityTable();
  const data = {
    ...encodeAll(hosts, before),
    hostnameIndexes: new Uint32Array(count),
    localityIndexes: new Uint32Array(count),
    names: names.list,
    localities: localities.list,
    blocks: new Int32Array(count),
    statsChunks: new Int32Array(count),
    statsBases: new Int32Array(count),
    weights: new Uint32Array(count),
    priorities: new Uint8Array(count),
    healthFlags: new Int32Array(count),
    canaries: new Uint8Array(count),
    ...hashKeysOf(hosts),
    ...metadataOf(hosts),
    ...localityMetadataOf(hosts),
    ...transportsOf(hosts),
    ...additionalOf(hosts),
  };
  for (let index = 0; index < count; index++) {
    const host = hosts[index]!;
    const { block, scope, endpoint } = host;
    host.place = index;
    data.blocks[index] = block;
    data.statsChunks[index] = scope.chunk;
    data.statsBases[index] = scope.base;
    data.weights[index] = endpoint.weight;
    data.priorities[index] = endpoint.priority;
    data.healthFlags[index] = host.healthFlags;
    data.hostnameIndexes[index] = names.indexOf(endpoint.hostname);
    data.localityIndexes[index] = localities.indexOf(endpoint);
    if (endpoint.isCanary) data.canaries[index] = 1;
  }
  return count > SHORT ? data : withSharedColumns(data);
}

/** Maximum number of hosts for sharing columns: most of tens of thousands of small clusters have equal ones. */
const SHORT = 16;

function withSharedColumns(data: HostSetData): HostSetData {
  return {
    ...data,
    sockaddrEnds: INT32.shared(data.sockaddrEnds),
    hostnameIndexes: UINT32.shared(data.hostnameIndexes),
    localityIndexes: UINT32.shared(data.localityIndexes),
    statsChunks: INT32.shared(data.statsChunks),
    weights: UINT32.shared(data.weights),
    priorities: UINT8.shared(data.priorities),
    healthFlags: INT32.shared(data.healthFlags),
    canaries: UINT8.shared(data.canaries),
  };
}

/** Recently seen columns of one type, which replace equal ones. Immutable. */
class SharedColumns<Column extends Int32Array | Uint32Array | Uint8Array> {
  #known = new Map<string, Column>();

  shared(column: Column): Column {
    const key = column.join();
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    if (this.#known.size >= MAX_SHARED) this.#known = new Map();
    this.#known.set(key, column);
    return column;
  }
}

const MAX_SHARED = 1000;
const INT32 = new SharedColumns<Int32Array>();
const UINT32 = new SharedColumns<Uint32Array>();
const UINT8 = new SharedColumns<Uint8Array>();

function hashKeysOf(hosts: readonly ListedHost[]): Pick<HostSetData, 'hashKeys'> {
  if (!hosts.some(({ endpoint }) => hashKeyOf(endpoint) !== '')) return {};
  return { hashKeys: hosts.map(({ endpoint }) => hashKeyOf(endpoint)) };
}

function metadataOf(hosts: readonly ListedHost[]): Pick<HostSetData, 'metadata'> {
  if (!hosts.some(({ endpoint }) => endpoint.metadata !== undefined)) return {};
  return { metadata: hosts.map(({ endpoint }) => endpoint.metadata ?? null) };
}

function localityMetadataOf(hosts: readonly ListedHost[]): Pick<HostSetData, 'localityMetadata'> {
  if (!hosts.some(({ endpoint }) => endpoint.localityMetadata !== undefined)) return {};
  return { localityMetadata: hosts.map(({ endpoint }) => endpoint.localityMetadata ?? null) };
}

function transportsOf(hosts: readonly ListedHost[]): Pick<HostSetData, 'transports'> {
  if (!hosts.some(({ endpoint }) => transportOf(endpoint) !== OWN_TRANSPORT)) return {};
  return { transports: hosts.map(({ endpoint }) => transportOf(endpoint)) };
}

function additionalOf(hosts: readonly ListedHost[]): Pick<HostSetData, 'additional'> {
  if (!hosts.some(({ endpoint }) => endpoint.additional !== undefined)) return {};
  return { additional: hosts.map(({ endpoint }) => endpoint.additional?.map(addressText) ?? null) };
}

function transportOf({ transport }: ResolvedEndpoint): number {
  return transport ?? OWN_TRANSPORT;
}

/** Returns `hash_key` of its load-balancing metadata, or ''. */
function hashKeyOf({ metadata }: ResolvedEndpoint): string {
  const key = metadata?.filter_metadata?.['envoy.lb']?.['hash_key'];
  return typeof key === 'string' ? key : '';
}

/** Distinct names with their indexes. Most hosts have none, or all of them the resolved one, so the last is checked first. */
class NameTable {
  readonly list: string[] = [];
  readonly #indexes = new Map<string, number>();
  #last = '';
  #lastIndex = 0;

  indexOf(name: string): number {
    if (name === this.#last && this.list.length > 0) return this.#lastIndex;
    let index = this.#indexes.get(name);
    if (index === undefined) {
      index = this.list.push(name) - 1;
      this.#indexes.set(name, index);
    }
    this.#last = name;
    this.#lastIndex = index;
    return index;
  }
}

/** Distinct localities with their weights. Most neighbours have the same one, so the last is checked first. */
class LocalityTable {
  readonly list: WeightedLocality[] = [];
  readonly #indexes = new Map<string, number>();
  #last: WeightedLocality | undefined;
  #lastIndex = 0;

  indexOf({ locality, localityWeight: weight = 0 }: ResolvedEndpoint): number {
    if (this.#last?.weight === weight && isSameLocality(this.#last, locality)) return this.#lastIndex;
    const { region, subZone, zone } = locality;
    const key = JSON.stringify([region, zone, subZone, weight]);
    let index = this.#indexes.get(key);
    if (index === undefined) {
      index = this.list.push({ region, zone, subZone, weight }) - 1;
      this.#indexes.set(key, index);
    }
    this.#last = this.list[index];
    this.#lastIndex = index;
    return index;
  }
}

/** Size of a raw IPv6 address; those of Unix sockets are larger. */
const SOCKADDR_BYTES = 28;

/** Encodes the addresses. Those of remaining hosts are copied from the previous list. */
function encodeAll(hosts: readonly ListedHost[], before: HostSetData): Pick<HostSetData, 'sockaddrs' | 'sockaddrEnds'> {
  const sockaddrEnds = new Int32Array(hosts.length);
  let buffer = new Uint8Array(hosts.length * SOCKADDR_BYTES);
  let end = 0;
  for (let index = 0; index < hosts.length; index++) {
    const host = hosts[index]!;
    const isNew = host.place < 0 || host.hasMoved;
    const source = isNew ? encodeAddress(host.endpoint.address) : before.sockaddrs;
    let from = isNew || host.place === 0 ? 0 : before.sockaddrEnds[host.place - 1]!;
    const to = isNew ? source.length : before.sockaddrEnds[host.place]!;
    if (end + to - from > buffer.length) buffer = grown(buffer, to - from);
    while (from < to) buffer[end++] = source[from++]!;
    sockaddrEnds[index] = end;
    host.hasMoved = false;
  }
  // A copy, because messages carry whole buffers and not views.
  return { sockaddrs: buffer.slice(0, end), sockaddrEnds };
}

function grown(buffer: Uint8Array, bytes: number): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(2 * buffer.length + bytes);
  larger.set(buffer);
  return larger;
}
