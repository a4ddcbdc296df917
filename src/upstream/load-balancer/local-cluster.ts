// The cluster of this server and its peers (cluster_manager.local_cluster_name). Zone-aware routing assumes that each of them
// sends the same number of requests.

import { EMPTY_HOST_SET, type HostSetData } from '../hosts/host-set.js';
import type { Locality } from '../hosts/locality.js';
import { HostGroup, hostsByPriority } from './host-group.js';
import { type LocalityGroup, localityGroups } from './localities.js';
import { healthyPercent } from './priority-load.js';

/** What zone-aware routing needs of its hosts. */
export interface LocalHosts {
  readonly localities: readonly LocalityGroup[];
  /** Percentage of the hosts that is not unhealthy. */
  readonly usablePercent: number;
}

export class LocalCluster {
  readonly name: string;
  readonly #own: Locality | undefined;
  #set = EMPTY_HOST_SET;
  #version = 0;
  /** Undefined until they are needed. */
  #hosts: LocalHosts | undefined;

  /** @param own the locality of this server; undefined: none is configured */
  constructor(name: string, own: Locality | undefined) {
    this.name = name;
    this.#own = own;
  }

  /** Changes with each update. */
  get version(): number {
    return this.#version;
  }

  get hosts(): LocalHosts {
    this.#hosts ??= describe(this.#set, this.#own);
    return this.#hosts;
  }

  /** Called when the hosts or their health have changed. */
  update(set: HostSetData): void {
    this.#set = set;
    this.#hosts = undefined;
    this.#version++;
  }
}

function describe(set: HostSetData, own: Locality | undefined): LocalHosts {
  const group = hostsByPriority(set)[0] ?? new HostGroup();
  return { localities: localityGroups(set, group.hosts.all, own), usablePercent: healthyPercent(group) };
}
