// The number of hosts of each locality and priority of a cluster, to which the weights of the localities of a subset are scaled.

import type { HostSetData } from '../hosts/host-set.js';
import type { Locality } from '../hosts/locality.js';

export class LocalitySizes {
  readonly #sizes = new Map<string, number>();

  constructor({ localities, localityIndexes, priorities }: HostSetData) {
    /** By index of the locality and priority: several differ only in their weight. */
    const counts = new Map<number, number>();
    for (let host = 0; host < priorities.length; host++) {
      const place = localityIndexes[host]! * PRIORITIES + priorities[host]!;
      counts.set(place, (counts.get(place) ?? 0) + 1);
    }
    for (const [place, count] of counts) {
      const key = keyOf(localities[Math.floor(place / PRIORITIES)]!, place % PRIORITIES);
      this.#sizes.set(key, (this.#sizes.get(key) ?? 0) + count);
    }
  }

  /** Returns the weight of a locality of which only `count` hosts are in the subset. */
  scale(weight: number, locality: Locality, priority: number, count: number): number {
    const all = this.#sizes.get(keyOf(locality, priority)) ?? count;
    return Math.round((weight * count) / all);
  }
}

/** They are bytes. */
const PRIORITIES = 256;

function keyOf({ region, subZone, zone }: Locality, priority: number): string {
  return JSON.stringify([region, zone, subZone, priority]);
}
