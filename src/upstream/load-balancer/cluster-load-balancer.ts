// A cluster's load balancer on one worker: selects the priority, the locality and the eligible hosts, and updates the selection
// when runtime values change.

import type { Random } from '../../common/random.js';
import { runSync } from '../../common/time/next-turn.js';
import type { Word64 } from '../../common/xxh64.js';
import type { Runtime, RuntimeDouble, RuntimeInteger } from '../../runtime/runtime.js';
import type { HostSetData } from '../hosts/host-set.js';
import { healthParts } from './health-parts.js';
import { hostsByPriority } from './host-group.js';
import type { ClusterBalancer, LoadBalancer } from './load-balancer.js';
import type { LocalitySizes } from './locality-sizes.js';
import { type BalancedCluster, type BalancingThread, PartBalancers } from './part-balancers.js';

export class ClusterLoadBalancer implements ClusterBalancer {
  pickedInPanic = false;
  readonly #hosts: HostSetData;
  /** Undefined: all hosts. */
  readonly #members: readonly number[] | undefined;
  readonly #cluster: BalancedCluster;
  readonly #balancers: PartBalancers;
  readonly #runtime: Runtime;
  readonly #panicThreshold: RuntimeInteger;
  readonly #runtimeNumber: RuntimeDouble;
  /** The version of the runtime for which the parts were built. */
  #runtimeVersion = -1;
  #panicPercent = 0;
  #number = 0;
  /** Empty until they are built. */
  #parts: readonly Part[] = [];
  /** The build of new parts, while it is in progress. */
  #steps: Generator<void, void> | undefined;

  /**
   * Hosts and their health are fixed: a new set gets a new load balancer.
   * @param members indexes of the hosts of a subset; undefined: all hosts
   * @param sizes scales the weights of localities of a subset; undefined: they are as configured
   */
  constructor(
    hosts: HostSetData,
    cluster: BalancedCluster,
    thread: BalancingThread,
    members?: readonly number[],
    sizes?: LocalitySizes,
  ) {
    const { health, policy, settings } = cluster;
    const { runtime } = thread;
    this.#hosts = hosts;
    this.#members = members;
    this.#cluster = cluster;
    this.#balancers = new PartBalancers(hosts, cluster, thread, sizes);
    this.#runtime = runtime;
    this.#panicThreshold = runtime.integer('upstream.healthy_panic_threshold', health.panicThreshold);
    const { runtimeKey, value } = policy.runtimeNumber?.(settings) ?? NO_NUMBER;
    this.#runtimeNumber = runtime.double(runtimeKey, value);
  }

  *prepare(): Generator<void, void> {
    const { version } = this.#runtime;
    const panicPercent = Math.min(100, this.#panicThreshold.value);
    const number = this.#runtimeNumber.value;
    if (this.#parts.length === 0 || panicPercent !== this.#panicPercent || number !== this.#number) {
      const parts: Part[] = [];
      const priorities = hostsByPriority(this.#hosts, this.#cluster.health.weighsHealth, this.#members);
      for (const part of healthParts(priorities, this.#cluster.health, panicPercent)) {
        const { below, isPanic, priority } = part;
        const balancer = yield* this.#balancers.build(part, priorities[priority], { number, panicPercent });
        parts.push({ below, isPanic, balancer });
      }
      this.#parts = parts;
      this.#panicPercent = panicPercent;
      this.#number = number;
    }
    this.#runtimeVersion = version;
  }

  pick(random: Random, hash?: Word64, attempt?: number): number {
    if (this.#runtimeVersion !== this.#runtime.version) this.#continuePreparing();
    const part = this.#parts.length === 1 ? this.#parts[0]! : this.#choosePart(random, hash);
    this.pickedInPanic = part.isPanic;
    return part.balancer === undefined ? -1 : part.balancer.pick(random, hash, attempt);
  }

  /** Called when the runtime has changed. The old parts serve while new ones are built, one step per request. */
  #continuePreparing(): void {
    this.#steps ??= this.prepare();
    if (this.#parts.length === 0) runSync(this.#steps);
    else if (this.#steps.next().done !== true) return;
    this.#steps = undefined;
  }

  /** Returns the part for a request. Equal hashes go to the same priority. */
  #choosePart(random: Random, hash: Word64 | undefined): Part {
    const percent = hash === undefined ? random.below(100) : hash.modulo(100);
    for (const part of this.#parts) if (percent < part.below) return part;
    return NO_HOSTS;
  }
}

/** A part of the traffic with its load balancer; undefined: no host may be used. */
interface Part {
  readonly below: number;
  readonly isPanic: boolean;
  readonly balancer: LoadBalancer | undefined;
}

/** For policies without a runtime number. */
const NO_NUMBER = { runtimeKey: '', value: 0 };

const NO_HOSTS: Part = { below: 100, isPanic: false, balancer: undefined };
