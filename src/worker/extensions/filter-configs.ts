// The discovered configurations of HTTP filters on one worker. Filters follow the primary's updates.

import type { Any, HttpFilter } from '../../config/generated/api.js';
import { keyOfDiscovered } from '../../extensions/discovered-filters.js';
import type { DiscoveredFilterConfig, WorkerFilterConfigs } from '../../extensions/factories.js';
import type { Snapshot } from '../messages/messages.js';

export class FilterConfigs implements WorkerFilterConfigs {
  readonly #byId = new Map<number, Discovered>();
  readonly #byKey = new Map<string, Discovered>();

  apply({ filterConfigs }: Pick<Snapshot, 'filterConfigs'>): void {
    for (const { id, key, config } of filterConfigs) {
      let discovered = this.#byId.get(id);
      if (discovered === undefined) {
        discovered = new Discovered(key);
        this.#byId.set(id, discovered);
        this.#byKey.set(key, discovered);
      }
      discovered.update(config);
    }
  }

  /** Removes configurations. Filters that still follow them keep their last one. */
  remove({ removedFilterConfigs }: Pick<Snapshot, 'removedFilterConfigs'>): void {
    for (const id of removedFilterConfigs) {
      const discovered = this.#byId.get(id);
      this.#byId.delete(id);
      if (discovered !== undefined && this.#byKey.get(discovered.key) === discovered)
        this.#byKey.delete(discovered.key);
    }
  }

  follow(filter: HttpFilter, follower: DiscoveredFilterConfig): void {
    const discovered = this.#byKey.get(keyOfDiscovered(filter));
    if (discovered === undefined) throw new Error(`the primary has not published the filter ${filter.name}`);
    discovered.add(follower);
  }
}

class Discovered {
  readonly key: string;
  #config: Any | undefined;
  /** Each lives as long as its chain. */
  #followers: WeakRef<DiscoveredFilterConfig>[] = [];
  /** Number of followers at which collected ones are removed. */
  #sweepAt = 16;

  constructor(key: string) {
    this.key = key;
  }

  add(follower: DiscoveredFilterConfig): void {
    follower.update(this.#config);
    if (this.#followers.length >= this.#sweepAt) {
      this.#followers = this.#followers.filter((each) => each.deref() !== undefined);
      this.#sweepAt = Math.max(16, 2 * this.#followers.length);
    }
    this.#followers.push(new WeakRef(follower));
  }

  update(config: Any | undefined): void {
    this.#config = config;
    for (const follower of this.#followers) follower.deref()?.update(config);
  }
}
