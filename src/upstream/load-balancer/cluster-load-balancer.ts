// A cluster's load balancer on one worker: chooses the priority and the hosts that may be used, and looks again whenever
// a runtime value says otherwise than before.

import type { Random } from '../../common/random.js';
import { Runtime, type RuntimeDouble, type RuntimeInteger } from '../../runtime/runtime.js';
import { DEGRADED_FLAGS, EXCLUDED_FLAGS, UNHEALTHY_FLAGS } from '../hosts/health-flags.js';
import type { HostSetData } from '../hosts/host-set.js';
import { HostWord } from '../shared-words.js';
import { createLoadBalancer } from './create-load-balancer.js';
import type { LoadBalancer, LoadBalancerSpec, PickList } from './load-balancer.js';
import { type PriorityHealth, priorityLoads } from './priority-load.js';

/** What of common_lb_config and of the load assignment's policy applies; plain data. */
export interface HealthPolicy {
  /** healthy_panic_threshold in percent: with fewer healthy hosts health is ignored. 0: never. */
  readonly panicThreshold: number;
  /** In panic requests fail instead of going to unhealthy hosts. */
  readonly failTrafficOnPanic: boolean;
  /** overprovisioning_factor in percent. */
  readonly overprovisioning: number;
}

export const DEFAULT_HEALTH_POLICY: HealthPolicy = {
  panicThreshold: 50,
  failTrafficOnPanic: false,
  overprovisioning: 140,
};

export class ClusterLoadBalancer implements LoadBalancer {
  /** Whether the last pick ignored health, for lb_healthy_panic. */
  pickedInPanic = false;
  readonly #hosts: HostSetData;
  readonly #spec: LoadBalancerSpec;
  readonly #policy: HealthPolicy;
  readonly #words: Int32Array;
  readonly #random: Random;
  readonly #runtime: Runtime;
  readonly #panicThreshold: RuntimeInteger;
  readonly #requestBias: RuntimeDouble;
  #runtimeVersion = 0;
  /** What the parts were made with. */
  #panicPercent = 0;
  #bias = 0;
  #parts: Part[] = [];

  /** `words` are the shared words. Hosts and their health do not change: a new set gets a new load balancer. */
  constructor(
    hosts: HostSetData,
    spec: LoadBalancerSpec,
    policy: HealthPolicy,
    words: Int32Array,
    random: Random,
    runtime = new Runtime(),
  ) {
    this.#hosts = hosts;
    this.#spec = spec;
    this.#policy = policy;
    this.#words = words;
    this.#random = random;
    this.#runtime = runtime;
    this.#panicThreshold = runtime.integer('upstream.healthy_panic_threshold', policy.panicThreshold);
    const bias = spec.policy === 'least_request' ? spec.activeRequestBias : NO_BIAS;
    this.#requestBias = runtime.double(bias.runtimeKey, bias.value);
    this.#readRuntime();
    this.#rebuild();
  }

  pick(random: Random): number {
    if (this.#runtimeVersion !== this.#runtime.version && this.#readRuntime()) this.#rebuild();
    const part = this.#parts.length === 1 ? this.#parts[0]! : this.#choosePart(random);
    this.pickedInPanic = part.isPanic;
    return part.balancer === undefined ? -1 : part.balancer.pick(random);
  }

  /** Whether anything has changed that the parts depend on. */
  #readRuntime(): boolean {
    this.#runtimeVersion = this.#runtime.version;
    const panicPercent = Math.min(100, this.#panicThreshold.value);
    const bias = this.#requestBias.value;
    const hasChanged = panicPercent !== this.#panicPercent || bias !== this.#bias;
    this.#panicPercent = panicPercent;
    this.#bias = bias;
    return hasChanged;
  }

  #choosePart(random: Random): Part {
    const percent = random.below(100);
    for (const part of this.#parts) if (percent < part.below) return part;
    return NO_HOSTS;
  }

  /** Sorts all hosts by priority and health: 10,000 of them take a few hundred microseconds. */
  #rebuild(): void {
    const levels = this.#sortHosts();
    const loads = priorityLoads(levels, this.#policy.overprovisioning, this.#panicPercent);
    this.#parts = [];
    let below = 0;
    const add = (hosts: readonly number[], load: number, isPanic: boolean) => {
      if (load === 0) return;
      const isRefused = hosts.length === 0 || (isPanic && this.#policy.failTrafficOnPanic);
      this.#parts.push({ below: (below += load), isPanic, balancer: isRefused ? undefined : this.#balancer(hosts) });
    };
    for (const [priority, level] of levels.entries()) {
      if (loads.panic[priority]) add(level.all, loads.healthy[priority]! + loads.degraded[priority]!, level.total > 0);
      else {
        add(level.healthyHosts, loads.healthy[priority]!, false);
        add(level.degradedHosts, loads.degraded[priority]!, false);
      }
    }
    if (this.#parts.length === 0) this.#parts.push(NO_HOSTS);
  }

  #sortHosts(): Level[] {
    const { priorities, healthFlags } = this.#hosts;
    const levels: Level[] = [];
    for (let index = 0; index < priorities.length; index++) {
      const priority = priorities[index]!;
      while (levels.length <= priority) levels.push(new Level());
      levels[priority]!.add(index, healthFlags[index]!);
    }
    return levels;
  }

  #balancer(hosts: readonly number[]): LoadBalancer {
    const { weights, blocks } = this.#hosts;
    const list: PickList = {
      hosts: Int32Array.from(hosts),
      weights: Uint32Array.from(hosts, (host) => weights[host]!),
      activeWords: Int32Array.from(hosts, (host) => blocks[host]! + HostWord.ActiveRequests),
    };
    return createLoadBalancer(this.#spec, list, this.#words, this.#bias, this.#random);
  }
}

/** Some hosts and their part of the traffic: percents from the part before up to `below`. */
interface Part {
  readonly below: number;
  readonly isPanic: boolean;
  readonly balancer: LoadBalancer | undefined;
}

/** Policies that do not look at active requests. */
const NO_BIAS = { runtimeKey: '', value: 0 };

const NO_HOSTS: Part = { below: 100, isPanic: false, balancer: undefined };

/** The hosts of one priority by health. */
class Level implements PriorityHealth {
  readonly all: number[] = [];
  readonly healthyHosts: number[] = [];
  readonly degradedHosts: number[] = [];
  excluded = 0;

  get total(): number {
    return this.all.length;
  }
  get healthy(): number {
    return this.healthyHosts.length;
  }
  get degraded(): number {
    return this.degradedHosts.length;
  }

  add(host: number, flags: number): void {
    this.all.push(host);
    if (flags & EXCLUDED_FLAGS) this.excluded++;
    if (flags & UNHEALTHY_FLAGS) return;
    if (flags & DEGRADED_FLAGS) this.degradedHosts.push(host);
    else this.healthyHosts.push(host);
  }
}
