// The hosts of a dynamic forward proxy: the names of a DNS cache that have an address.

import type { DiscoverySpec } from '../../../upstream/cluster-config.js';
import type { DnsCacheUser } from '../../../upstream/dns/dns-cache.js';
import type { ResolvedEndpoint } from '../../../upstream/hosts/host.js';
import { NOWHERE } from '../../../upstream/hosts/locality.js';
import type { HeldDnsCache } from '../dns-caches.js';
import type { ClusterResources } from './cluster-resources.js';
import type { DiscoveryContext, DiscoveryListener, HostDiscovery } from './discovery.js';

const TRAITS = { weight: 1, priority: 0, locality: NOWHERE, healthFlags: 0, isCanary: false };

/** Envoy's %RESPONSE_CODE_DETAILS% where no host is available; there is no memory for a new one. */
const NO_MEMORY = 'no_healthy_upstream';

export class DnsCacheDiscovery implements HostDiscovery, DnsCacheUser {
  readonly #held: HeldDnsCache;
  readonly #overprovisioning: number;
  readonly #resources: ClusterResources;
  readonly #listener: DiscoveryListener;
  readonly #refuse: DiscoveryContext['refuseHost'];
  /** Numbers of requests of hosts when the cache last checked their use. */
  readonly #requests = new Map<string, number>();
  /** Hosts that requests wait for. */
  readonly #awaited = new Set<string>();
  #isDue = false;
  #isStopped = false;

  constructor(
    { overprovisioning }: DiscoverySpec,
    held: HeldDnsCache,
    resources: ClusterResources,
    listener: DiscoveryListener,
    { refuseHost }: Pick<DiscoveryContext, 'refuseHost'>,
  ) {
    this.#held = held;
    this.#overprovisioning = overprovisioning;
    this.#resources = resources;
    this.#listener = listener;
    this.#refuse = refuseHost;
  }

  start(): void {
    this.#held.cache.add(this);
    this.#publish();
    this.#listener.onLooked();
  }

  stop(): void {
    this.#isStopped = true;
    this.#held.cache.remove(this);
  }

  request(key: string): void {
    this.#awaited.add(key);
    this.#held.cache.request(key);
    this.changed();
  }

  // ── DnsCacheUser ─────────────────────────────────────────────────────────────────────────────────────────────────

  /** The changes of one turn are published together. */
  changed(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    setImmediate(() => {
      this.#isDue = false;
      if (!this.#isStopped) this.#publish();
    });
  }

  failed(key: string, details: string): void {
    if (this.#awaited.delete(key)) this.#refuse(key, details);
  }

  isUsed(key: string): boolean {
    const host = this.#resources.directory.hosts.find((each) => each.key === key);
    if (host === undefined) return false;
    const { active, requests } = this.#resources.usageOf(host);
    const isUsed = active > 0 || requests !== (this.#requests.get(key) ?? 0);
    this.#requests.set(key, requests);
    return isUsed;
  }

  #publish(): void {
    const endpoints: ResolvedEndpoint[] = [];
    const answered: string[] = [];
    for (const { address, key } of this.#held.cache.hosts()) {
      endpoints.push({ address, key, statName: key, hostname: key, ...TRAITS });
      if (this.#awaited.delete(key)) answered.push(key);
    }

    this.#listener.onHosts({ endpoints, overprovisioning: this.#overprovisioning });
    if (answered.length === 0) return;
    const known = new Set(this.#resources.directory.hosts.map(({ key }) => key));
    for (const key of answered) if (!known.has(key)) this.#refuse(key, NO_MEMORY);
  }
}
