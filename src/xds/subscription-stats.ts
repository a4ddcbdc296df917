// The stats of a subscription (FACTS §6, "xDS"), for any source.

import { Word64, xxh64 } from '../common/xxh64.js';
import { ClusterStats } from '../stats/layouts/cluster.js';
import { EndpointSubscriptionStats, SubscriptionStats as Layout } from '../stats/layouts/xds.js';
import type { StatsStore } from '../stats/store.js';
import type { Scope, ScopeRef } from '../stats/thread-stats.js';
import type { ResourceType } from './resource.js';

export class SubscriptionStats {
  readonly #store: StatsStore;
  readonly #refs: readonly ScopeRef[];
  /** Scopes and the indexes in them. The stats of a subscription for endpoints are divided between two scopes. */
  readonly #common: Scope;
  readonly #commonAt: Pick<(typeof Layout)['at'], (typeof COMMON)[number]>;
  readonly #own: Scope;
  readonly #ownRef: ScopeRef;
  readonly #ownAt: (typeof EndpointSubscriptionStats)['at'];

  /** `prefix` ends with a dot. For endpoints it is that of the cluster: `cluster.<observability name>.` */
  constructor(store: StatsStore, prefix: string, type: ResourceType) {
    this.#store = store;
    const isOfCluster = type === 'endpoints';
    const layouts = isOfCluster ? [ClusterStats, EndpointSubscriptionStats] : [Layout];
    this.#refs = store.addScopes(layouts.map((layout) => ({ prefix, layout })));
    const common = this.#refs[0]!;
    this.#ownRef = this.#refs.at(-1)!;
    this.#commonAt = isOfCluster ? ClusterStats.at : Layout.at;
    this.#ownAt = isOfCluster ? EndpointSubscriptionStats.at : Layout.at;
    this.#common = store.scope(common);
    this.#own = store.scope(this.#ownRef);
  }

  /** Counts a request or an update. */
  attempt(): void {
    this.#common.increment(this.#commonAt.update_attempt);
  }

  /** Counts an accepted update; `durationMs` is the time to apply it. */
  success(version: string, durationMs: number): void {
    this.#common.increment(this.#commonAt.update_success);
    this.#common.set(this.#commonAt.version, versionNumber(version));
    this.#own.set(this.#ownAt.update_time, Date.now());
    this.#own.record(this.#ownAt.update_duration, durationMs);
    this.#store.setText(this.#ownRef, this.#ownAt.version_text, version);
  }

  /** Counts an update that was rejected, at least in part. */
  rejected(): void {
    this.#own.increment(this.#ownAt.update_rejected);
  }

  /** Counts a missing connection or file. */
  failure(): void {
    this.#common.increment(this.#commonAt.update_failure);
  }

  fetchTimedOut(): void {
    this.#own.increment(this.#ownAt.init_fetch_timeout);
  }

  close(): void {
    for (const ref of this.#refs) this.#store.removeScope(ref);
  }
}

const COMMON = ['update_attempt', 'update_failure', 'update_success', 'version'] as const;

/** Returns the version's xxHash64, as in Envoy, with the precision of a gauge. */
function versionNumber(version: string): number {
  const bytes = new TextEncoder().encode(version);
  const hash = new Word64();
  xxh64(bytes, 0, bytes.length, hash);
  return (hash.hi >>> 0) * 2 ** 32 + (hash.lo >>> 0);
}
