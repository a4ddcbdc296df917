// What all clusters have in shared memory, by their names.

import { scopePrefix } from '../../../stats/scope-prefix.js';
import { ClusterResources, type ResourceOwner } from './cluster-resources.js';
import { MembershipGauges } from './membership-gauges.js';
import { VersionResources } from './version-resources.js';

/** What has left and is still written to is taken back when its cluster or host comes again. */
export class ResourcePool {
  readonly #owner: ResourceOwner;
  readonly #clusters = new Map<string, ClusterResources>();
  /** By the prefix of their stats. */
  readonly #memberships = new Map<string, { readonly gauges: MembershipGauges; users: number }>();
  /** Of the stats of hosts, as they are given out. */
  readonly #hostPrefixes = new Set<string>();

  constructor(owner: ResourceOwner) {
    this.#owner = owner;
  }

  /** For one version more. Throws a RangeError when there is no room. */
  acquire(name: string, observabilityName: string): VersionResources {
    const key = `${name}\0${observabilityName}`;
    let resources = this.#clusters.get(key);
    if (resources === undefined) {
      const prefix = scopePrefix(`cluster.${observabilityName}.`);
      const membership = this.#memberships.get(prefix) ?? { gauges: new MembershipGauges(), users: 0 };
      const hostPrefix = this.#freeHostPrefix(name, observabilityName);
      resources = new ClusterResources(this.#owner, { prefix, hostPrefix }, membership.gauges, () => {
        this.#clusters.delete(key);
        this.#hostPrefixes.delete(hostPrefix);
        if (--membership.users === 0) this.#memberships.delete(prefix);
      });
      this.#clusters.set(key, resources);
      this.#hostPrefixes.add(hostPrefix);
      membership.users++;
      this.#memberships.set(prefix, membership);
    }
    return new VersionResources(resources, this.#owner.store);
  }

  /**
   * Clusters may have one name for their stats, and the same hosts, but what is counted for each host is each cluster's own: the
   * first one has the name by which tags are found, the others theirs in addition.
   */
  #freeHostPrefix(name: string, observabilityName: string): string {
    const prefix = scopePrefix(`cluster.${observabilityName}.endpoint.`);
    return this.#hostPrefixes.has(prefix) ? `cluster.${observabilityName}.${name}.endpoint.` : prefix;
  }
}
