// The DNS caches of the clusters on the primary, by name: clusters with the same cache share its names and stats.

import { isDeepStrictEqual } from 'node:util';
import { BatonError } from '../../common/errors/errors.js';
import type { Random } from '../../common/random.js';
import type { DnsCacheConfig } from '../../config/generated/api.js';
import type { Timers } from '../../io/time/timing-wheel.js';
import { DnsCacheStats } from '../../stats/layouts/dns-cache.js';
import { scopePrefix } from '../../stats/scope-prefix.js';
import type { StatsStore } from '../../stats/store.js';
import type { Scope, ScopeRef } from '../../stats/thread-stats.js';
import { DnsCache } from '../../upstream/dns/dns-cache.js';
import { dnsCacheSpec } from '../../upstream/dns/dns-cache-spec.js';
import type { DnsResolver } from '../../upstream/dns/resolver.js';

export interface DnsCachesContext {
  readonly store: StatsStore;
  readonly resolver: DnsResolver;
  readonly timers: Timers;
  readonly random: Random;
  readonly now: () => number;
}

/** A cache as one cluster version holds it. */
export interface HeldDnsCache {
  readonly cache: DnsCache;
  /** dns_cache.<name>. */
  readonly scope: ScopeRef;
  readonly stats: Scope;
  readonly maxWaiting: number;
  /** Called once. With the last use, the cache is closed. */
  release(): void;
}

interface SharedCache extends Omit<HeldDnsCache, 'release'> {
  readonly config: DnsCacheConfig;
  readonly resolver: DnsResolver | undefined;
  users: number;
}

export class DnsCaches {
  readonly #context: DnsCachesContext;
  readonly #byName = new Map<string, SharedCache>();

  constructor(context: DnsCachesContext) {
    this.#context = context;
  }

  /** Throws a BatonError if a cache of this name has other settings, and a RangeError when memory is short. */
  acquire(config: DnsCacheConfig, where: string): HeldDnsCache {
    const { name = '' } = config;
    const known = this.#byName.get(name);
    if (known !== undefined && !isDeepStrictEqual(known.config, config)) {
      const message = `config specified DNS cache '${name}' with different settings`;
      throw new BatonError('CONFIG_INVALID', message, { where, remedy: 'give the caches different names' });
    }
    const shared = known ?? this.#open(name, config);
    shared.users++;
    const { cache, maxWaiting, scope, stats } = shared;
    return { cache, maxWaiting, scope, stats, release: () => this.#release(name, shared) };
  }

  #open(name: string, config: DnsCacheConfig): SharedCache {
    const { now, random, store, timers } = this.#context;
    const spec = dnsCacheSpec(config);
    const scope = store.addScope(scopePrefix(`dns_cache.${name}.`), DnsCacheStats);
    const stats = store.scope(scope);
    const resolver = spec.resolver && this.#context.resolver.withSettings(spec.resolver);
    const cache = new DnsCache(spec, {
      ...{ now, random, timers },
      resolve: (host, family) => (resolver ?? this.#context.resolver).resolve(host, family),
      count: (what) => stats.increment(DnsCacheStats.at[what]),
      sized: (names) => stats.set(DnsCacheStats.at.num_hosts, names),
    });
    const shared = { cache, config, maxWaiting: spec.maxWaiting, resolver, scope, stats, users: 0 };
    this.#byName.set(name, shared);
    return shared;
  }

  #release(name: string, shared: SharedCache): void {
    if (--shared.users > 0) return;
    this.#byName.delete(name);
    shared.cache.close();
    shared.resolver?.close();
    this.#context.store.removeScope(shared.scope);
  }
}
