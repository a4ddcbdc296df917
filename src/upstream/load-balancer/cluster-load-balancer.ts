// A cluster's load balancer on one worker: chooses the priority and the hosts that may be used, and looks again whenever
// a runtime value says otherwise than before.

import type { Random } from '../../common/random.js';
import { atOnce } from '../../common/time/next-turn.js';
import type { Word64 } from '../../common/xxh64.js';
import { Runtime, type RuntimeDouble, type RuntimeInteger } from '../../runtime/runtime.js';
import type { HostSetData } from '../hosts/host-set.js';
import { HostWord } from '../shared-words.js';
import { createHashBalancer, createLoadBalancer } from './create-load-balancer.js';
import { type HealthPart, type HealthPolicy, healthParts } from './health-parts.js';
import { hostKey } from './host-key.js';
import { isHashSpec, type LoadBalancer, type LoadBalancerSpec, type PickList } from './load-balancer.js';

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
  /** What the parts were made with. */
  #runtimeVersion = -1;
  #panicPercent = 0;
  #bias = 0;
  /** None before they are made. */
  #parts: readonly Part[] = [];
  /** Others are being made. */
  #steps: Generator<void, void> | undefined;

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
  }

  /** Makes what pick() needs, in steps where that takes long. Without it the first pick() does, in one go. */
  *prepare(): Generator<void, void> {
    const { version } = this.#runtime;
    const panicPercent = Math.min(100, this.#panicThreshold.value);
    const bias = this.#requestBias.value;
    if (this.#parts.length === 0 || panicPercent !== this.#panicPercent || bias !== this.#bias) {
      const parts: Part[] = [];
      for (const { below, hosts, isPanic } of healthParts(this.#hosts, this.#policy, panicPercent)) {
        const balancer = hosts.length === 0 ? undefined : yield* this.#balancer(hosts, bias);
        parts.push({ below, isPanic, balancer });
      }
      this.#parts = parts;
      this.#panicPercent = panicPercent;
      this.#bias = bias;
    }
    this.#runtimeVersion = version;
  }

  pick(random: Random, hash?: Word64, attempt?: number): number {
    if (this.#runtimeVersion !== this.#runtime.version) this.#prepareFurther();
    const part = this.#parts.length === 1 ? this.#parts[0]! : this.#choosePart(random, hash);
    this.pickedInPanic = part.isPanic;
    return part.balancer === undefined ? -1 : part.balancer.pick(random, hash, attempt);
  }

  /** Runtime has other values. The parts before them serve while new ones are made, a step with each request. */
  #prepareFurther(): void {
    this.#steps ??= this.prepare();
    if (this.#parts.length === 0) atOnce(this.#steps);
    else if (this.#steps.next().done !== true) return;
    this.#steps = undefined;
  }

  /** Requests of one hash go to one priority. */
  #choosePart(random: Random, hash: Word64 | undefined): Part {
    const percent = hash === undefined ? random.below(100) : hash.modulo(100);
    for (const part of this.#parts) if (percent < part.below) return part;
    return NO_HOSTS;
  }

  *#balancer(indexes: readonly number[], bias: number): Generator<void, LoadBalancer> {
    const { weights, blocks } = this.#hosts;
    const spec = this.#spec;
    const list: PickList = {
      hosts: Int32Array.from(indexes),
      weights: Uint32Array.from(indexes, (host) => weights[host]!),
      activeWords: Int32Array.from(indexes, (host) => blocks[host]! + HostWord.ActiveRequests),
    };
    if (!isHashSpec(spec)) return createLoadBalancer(spec, list, this.#words, bias, this.#random);
    const keys = indexes.map((host) => hostKey(this.#hosts, host, spec.usesHostname));
    return yield* createHashBalancer(spec, { ...list, keys });
  }
}

/** A part of the traffic, and who chooses its hosts; undefined: nobody may. */
interface Part extends Omit<HealthPart, 'hosts'> {
  readonly balancer: LoadBalancer | undefined;
}

/** Policies that do not look at active requests. */
const NO_BIAS = { runtimeKey: '', value: 0 };

const NO_HOSTS: Part = { below: 100, isPanic: false, balancer: undefined };
