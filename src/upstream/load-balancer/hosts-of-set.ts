// A list of a set's hosts for a load balancer. Each property is computed at most once, on first use.

import { DEGRADED_FLAGS, UNHEALTHY_FLAGS } from '../hosts/health-flags.js';
import type { HostSetData } from '../hosts/host-set.js';
import { HostWord } from '../shared-words.js';
import { hostKey } from './host-key.js';
import type { HostList } from './load-balancer.js';

const NOT_HEALTHY = UNHEALTHY_FLAGS | DEGRADED_FLAGS;

export class HostsOfSet implements HostList {
  readonly hosts: Int32Array;
  readonly weights: Uint32Array;
  readonly shares: Float64Array | undefined;
  readonly #set: HostSetData;
  #isWeighted: boolean | undefined;
  #activeWords: Int32Array | undefined;

  /** @param shares see HostList */
  constructor(set: HostSetData, indexes: readonly number[], shares?: Float64Array) {
    this.#set = set;
    this.shares = shares;
    this.hosts = Int32Array.from(indexes);
    this.weights = Uint32Array.from(indexes, (host) => set.weights[host]!);
  }

  get isWeighted(): boolean {
    this.#isWeighted ??= this.weights.some((weight) => weight !== this.weights[0]);
    return this.#isWeighted;
  }

  get activeWords(): Int32Array {
    this.#activeWords ??= this.hosts.map((host) => this.#set.blocks[host]! + HostWord.ActiveRequests);
    return this.#activeWords;
  }

  get healthySinceMs(): Float64Array | undefined {
    const { healthFlags, healthySinceMs } = this.#set;
    if (healthySinceMs === undefined) return undefined;
    return Float64Array.from(this.hosts, (host) =>
      healthFlags[host]! & NOT_HEALTHY ? Number.NEGATIVE_INFINITY : healthySinceMs[host]!,
    );
  }

  keys(usesHostname: boolean): readonly string[] {
    return Array.from(this.hosts, (host) => hostKey(this.#set, host, usesHostname));
  }
}
