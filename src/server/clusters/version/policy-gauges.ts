// The gauges of a cluster's load-balancing policy. They show the workers' structures, computed again from the cluster's hosts.

import type { Runtime, RuntimeInteger } from '../../../runtime/runtime.js';
import type { Scope } from '../../../stats/thread-stats.js';
import type { AssignmentPolicy } from '../../../upstream/assignment-policy.js';
import type { ClusterSpec } from '../../../upstream/cluster-config.js';
import type { HostSetData } from '../../../upstream/hosts/host-set.js';
import type { Locality } from '../../../upstream/hosts/locality.js';
import { healthParts } from '../../../upstream/load-balancer/health-parts.js';
import { hostsByPriority } from '../../../upstream/load-balancer/host-group.js';
import { hashedHosts } from '../../../upstream/load-balancer/part-balancers.js';
import type { BalancerGauges } from '../../../upstream/load-balancer/policy.js';
import type { VersionResources } from './version-resources.js';

/** With several priorities or degraded hosts, the gauges cover the hosts of the first choice. */
export class PolicyGauges {
  readonly #gauges: BalancerGauges;
  readonly #spec: ClusterSpec;
  readonly #locality: Locality | undefined;
  readonly #panicThreshold: RuntimeInteger;
  readonly #scope: Scope;
  /** The inputs of the last computation. */
  #hosts: HostSetData | undefined;
  #policy: AssignmentPolicy | undefined;
  #panicPercent = 0;

  /**
   * Throws a RangeError when memory for the gauges is short.
   * @param locality of this server; undefined: none is configured
   */
  constructor(
    gauges: BalancerGauges,
    spec: ClusterSpec,
    resources: VersionResources,
    { locality, runtime }: { readonly locality: Locality | undefined; readonly runtime: Runtime },
  ) {
    this.#locality = locality;
    this.#gauges = gauges;
    this.#spec = spec;
    this.#panicThreshold = runtime.integer('upstream.healthy_panic_threshold', spec.health.panicThreshold);
    this.#scope = resources.addScope(gauges.prefix, gauges.layout);
  }

  update(hosts: HostSetData, policy: AssignmentPolicy): void {
    const panicPercent = Math.min(100, this.#panicThreshold.value);
    if (hosts === this.#hosts && policy === this.#policy && panicPercent === this.#panicPercent) {
      return;
    }
    this.#hosts = hosts;
    this.#policy = policy;
    this.#panicPercent = panicPercent;
    const { health, loadBalancer } = this.#spec;
    const priorities = hostsByPriority(hosts, policy.weighsHealth);
    const first = healthParts(priorities, { ...health, ...policy }, panicPercent)[0]!;
    const list = hashedHosts(hosts, first, priorities[first.priority], loadBalancer, this.#locality);
    this.#gauges.measure(loadBalancer.settings, list, this.#scope);
  }
}
