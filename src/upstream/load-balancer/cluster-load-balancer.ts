// A cluster's load balancer on one worker: chooses the priority and the hosts that may be used, and looks again whenever
// a runtime value says otherwise than before.

import type { Random } from '../../common/random.js';
import { Runtime, type RuntimeDouble, type RuntimeInteger } from '../../runtime/runtime.js';
import type { HostSetData } from '../hosts/host-set.js';
import { HostWord } from '../shared-words.js';
import { createLoadBalancer } from './create-load-balancer.js';
import { type HealthPart, type HealthPolicy, healthParts } from './health-parts.js';
import type { LoadBalancer, LoadBalancerSpec, PickList } from './load-balancer.js';

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

  #rebuild(): void {
    this.#parts = healthParts(this.#hosts, this.#policy, this.#panicPercent).map(({ below, hosts, isPanic }) => ({
      below,
      isPanic,
      balancer: hosts.length === 0 ? undefined : this.#balancer(hosts),
    }));
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

/** A part of the traffic, and who chooses its hosts; undefined: nobody may. */
interface Part extends Omit<HealthPart, 'hosts'> {
  readonly balancer: LoadBalancer | undefined;
}

/** Policies that do not look at active requests. */
const NO_BIAS = { runtimeKey: '', value: 0 };

const NO_HOSTS: Part = { below: 100, isPanic: false, balancer: undefined };
