// Some hosts of a set, as load balancers see them. What a policy does not ask for is not worked out.

import type { HostSetData } from '../hosts/host-set.js';
import { HostWord } from '../shared-words.js';
import { hostKey } from './host-key.js';
import type { HostList } from './load-balancer.js';

export class HostsOfSet implements HostList {
  readonly hosts: Int32Array;
  readonly weights: Uint32Array;
  readonly #set: HostSetData;

  constructor(set: HostSetData, indexes: readonly number[]) {
    this.#set = set;
    this.hosts = Int32Array.from(indexes);
    this.weights = Uint32Array.from(indexes, (host) => set.weights[host]!);
  }

  get isWeighted(): boolean {
    const [first] = this.weights;
    return this.weights.some((weight) => weight !== first);
  }

  get activeWords(): Int32Array {
    return this.hosts.map((host) => this.#set.blocks[host]! + HostWord.ActiveRequests);
  }

  keys(usesHostname: boolean): readonly string[] {
    return Array.from(this.hosts, (host) => hostKey(this.#set, host, usesHostname));
  }
}
