// The gauges of a cluster's load-balancing policy. They show the workers' structures, computed again from the cluster's hosts.

import type { Runtime, RuntimeInteger } from '../../../runtime/runtime.js';
import type { Scope } from '../../../stats/thread-stats.js';
import type { ClusterSpec } from '../../../upstream/cluster-config.js';
import type { HostSetData } from '../../../upstream/hosts/host-set.js';
import { healthParts } from '../../../upstream/load-balancer/health-parts.js';
import { HostsOfSet } from '../../../upstream/load-balancer/hosts-of-set.js';
import type { BalancerGauges } from '../../../upstream/load-balancer/policy.js';
import type { VersionResources } from './version-resources.js';

/** With several priorities or degraded hosts, the gauges cover the hosts of the first choice. */
export class PolicyGauges {
  readonly #gauges: BalancerGauges;
  readonly #spec: ClusterSpec;
  readonly #panicThreshold: RuntimeInteger;
  readonly #scope: Scope;
  /** The inputs of the last computation. */
  #hosts: HostSetData | undefined;
  #overprovisioning = 0;
  #panicPercent = 0;

  /** Throws a RangeError when memory for the gauges is short. */
  constructor(gauges: BalancerGauges, spec: ClusterSpec, resources: VersionResources, runtime: Runtime) {
    this.#gauges = gauges;
    this.#spec = spec;
    this.#panicThreshold = runtime.integer('upstream.healthy_panic_threshold', spec.health.panicThreshold);
    this.#scope = resources.addScope(gauges.prefix, gauges.layout);
  }

  update(hosts: HostSetData, overprovisioning: number): void {
    const panicPercent = Math.min(100, this.#panicThreshold.value);
    if (hosts === this.#hosts && overprovisioning === this.#overprovisioning && panicPercent === this.#panicPercent) {
      return;
    }
    this.#hosts = hosts;
    this.#overprovisioning = overprovisioning;
    this.#panicPercent = panicPercent;
    const { health, loadBalancer } = this.#spec;
    const [first] = healthParts(hosts, { ...health, overprovisioning }, panicPercent);
    this.#gauges.measure(loadBalancer.settings, new HostsOfSet(hosts, first!.hosts), this.#scope);
  }
}
