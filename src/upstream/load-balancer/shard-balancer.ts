// Picks the hosts of a Redis cluster: by the slot of a key, and by how fresh a reply must be.

import type { Random } from '../../common/random.js';
import { DEGRADED_FLAGS, UNHEALTHY_FLAGS } from '../hosts/health-flags.js';
import { type Shards, SLOTS } from '../hosts/shards.js';

/** Which host of a shard gets a command. Replicas may lag behind the primary. */
export const enum ReadFrom {
  Primary = 0,
  /** A replica only if the primary is not healthy. */
  PreferPrimary = 1,
  Replica = 2,
  /** The primary only if no replica is healthy. */
  PreferReplica = 3,
  Any = 4,
}

const NO_SHARD = 0xffff;

export class ShardBalancer {
  readonly #shards: readonly (readonly number[])[];
  /** By slot. */
  readonly #shardOf = new Uint16Array(SLOTS).fill(NO_SHARD);
  readonly #healthFlags: Int32Array;

  constructor({ hosts, ranges }: Shards<number>, healthFlags: Int32Array) {
    this.#shards = hosts;
    this.#healthFlags = healthFlags;
    for (let at = 0; at < ranges.length; at += 3) {
      this.#shardOf.fill(ranges[at + 2]!, ranges[at]!, ranges[at + 1]! + 1);
    }
  }

  get count(): number {
    return this.#shards.length;
  }

  /** Returns the shard of a slot; -1: it has none. */
  shardOf(slot: number): number {
    const shard = this.#shardOf[slot]!;
    return shard === NO_SHARD ? -1 : shard;
  }

  /** Returns the index of a host of the shard; -1 if none may be used. */
  pick(shard: number, from: ReadFrom, random: Random): number {
    const hosts = this.#shards[shard];
    const primary = hosts?.[0];
    if (hosts === undefined || primary === undefined) return -1;
    switch (from) {
      case ReadFrom.Primary:
        return primary;
      case ReadFrom.PreferPrimary:
        return this.#isHealthy(primary) ? primary : this.#best(hosts, 0, random);
      case ReadFrom.Replica:
        return this.#best(hosts, 1, random);
      case ReadFrom.PreferReplica:
        return this.#best(hosts, this.#hasHealthyReplica(hosts) ? 1 : 0, random);
      default:
        return this.#best(hosts, 0, random);
    }
  }

  /** Returns a random host of those from `first` on: a healthy one, or else a degraded one, or else any. */
  #best(hosts: readonly number[], first: number, random: Random): number {
    const candidates = hosts.slice(first);
    const healthy = candidates.filter((host) => this.#isHealthy(host));
    const degraded = healthy.length > 0 ? healthy : candidates.filter((host) => this.#isUsable(host));
    const best = degraded.length > 0 ? degraded : candidates;
    return best.length === 0 ? -1 : best[random.below(best.length)]!;
  }

  #hasHealthyReplica(hosts: readonly number[]): boolean {
    for (let at = 1; at < hosts.length; at++) if (this.#isHealthy(hosts[at]!)) return true;
    return false;
  }

  #isHealthy(host: number): boolean {
    return (this.#healthFlags[host]! & (UNHEALTHY_FLAGS | DEGRADED_FLAGS)) === 0;
  }

  #isUsable(host: number): boolean {
    return (this.#healthFlags[host]! & UNHEALTHY_FLAGS) === 0;
  }
}
