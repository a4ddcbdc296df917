// The shared memory of all clusters, by name.

import { scopePrefix } from '../../../stats/scope-prefix.js';
import { ClusterResources, type ResourceOwner } from './cluster-resources.js';
import { MembershipGauges } from './membership-gauges.js';
import { VersionResources } from './version-resources.js';

/** Retired memory that may still be written to is reused when its cluster or host returns. */
export class ResourcePool {
  readonly #owner: ResourceOwner;
  readonly #clusters = new Map<string, ClusterResources>();
  /** By the prefix of their stats. */
  readonly #memberships = new Map<string, { readonly gauges: MembershipGauges; users: number }>();
  /** Prefixes of host stats in use. */
  readonly #hostPrefixes = new Set<string>();

  constructor(owner: ResourceOwner) {
    this.#owner = owner;
  }

  /** Returns the resources for another version. Throws a RangeError when memory is short. */
  acquire(name: string, observabilityName: string): VersionResources {
    const key = `${name}\0${observabilityName}`;
    let resources = this.#clusters.get(key);
    if (resources === undefined) {
      const prefix = scopePrefix(`cluster.${observabilityName}.`);
      const membership = this.#memberships.get(prefix) ?? { gauges: new MembershipGauges(), users: 0 };
      const hostPrefix = this.#unusedHostPrefix(name, observabilityName);
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
   * Clusters may share one name for their stats and have the same hosts, but each cluster counts for its own hosts. The first
   * cluster gets the prefix by which tags are extracted; others add their name.
   */
  #unusedHostPrefix(name: string, observabilityName: string): string {
    const prefix = scopePrefix(`cluster.${observabilityName}.endpoint.`);
    return this.#hostPrefixes.has(prefix) ? `cluster.${observabilityName}.${name}.endpoint.` : prefix;
  }
}
