// The hosts of a dynamic forward proxy: the names of a DNS cache that have an address.

import { PacedRun } from '../../../io/time/paced-run.js';
import type { AssignmentPolicy } from '../../../upstream/assignment-policy.js';
import type { DiscoverySpec } from '../../../upstream/discovery-config.js';
import type { DnsCacheUser } from '../../../upstream/dns/dns-cache.js';
import type { ResolvedEndpoint } from '../../../upstream/hosts/host.js';
import { NOWHERE } from '../../../upstream/hosts/locality.js';
import type { HeldDnsCache } from '../dns-caches.js';
import type { ClusterResources } from './cluster-resources.js';
import { type DiscoveryContext, type DiscoveryListener, type HostDiscovery, PAUSE_MS_PER_HOST } from './discovery.js';

const TRAITS = { weight: 1, priority: 0, locality: NOWHERE, healthFlags: 0, isCanary: false };

/** Envoy's %RESPONSE_CODE_DETAILS% where no host is available; there is no memory for a new one. */
const NO_MEMORY = 'no_healthy_upstream';

export class DnsCacheDiscovery implements HostDiscovery, DnsCacheUser {
  readonly #held: HeldDnsCache;
  readonly #policy: AssignmentPolicy;
  readonly #resources: ClusterResources;
  readonly #listener: DiscoveryListener;
  readonly #refuse: DiscoveryContext['refuseHost'];
  /** Numbers of requests of hosts when the cache last checked their use. */
  readonly #requests = new Map<string, number>();
  /** Hosts that requests wait for. */
  readonly #awaited = new Set<string>();
  readonly #publication: PacedRun;

  constructor(
    { policy }: DiscoverySpec,
    held: HeldDnsCache,
    resources: ClusterResources,
    listener: DiscoveryListener,
    { now, refuseHost, timers }: Pick<DiscoveryContext, 'now' | 'refuseHost' | 'timers'>,
  ) {
    this.#held = held;
    this.#policy = policy;
    this.#resources = resources;
    this.#listener = listener;
    this.#refuse = refuseHost;
    const pauseMs = () => resources.directory.hosts.length * PAUSE_MS_PER_HOST;
    this.#publication = new PacedRun({ now, timers, pauseMs, work: () => this.#publish() });
  }

  start(): void {
    this.#held.cache.add(this);
    this.#publish();
    this.#listener.onLooked();
  }

  stop(): void {
    this.#publication.stop();
    this.#held.cache.remove(this);
  }

  request(key: string): void {
    this.#awaited.add(key);
    // Another cluster may have the name already.
    if (this.#held.cache.request(key)) this.changed();
  }

  // ── DnsCacheUser ─────────────────────────────────────────────────────────────────────────────────────────────────

  changed(): void {
    this.#publication.request();
  }

  removed(key: string): void {
    this.#requests.delete(key);
    this.changed();
  }

  failed(key: string, details: string): void {
    if (this.#awaited.delete(key)) this.#refuse(key, details);
  }

  isUsed(key: string): boolean {
    const host = this.#resources.directory.find(key);
    if (host === undefined) return false;
    const { active, requests } = this.#resources.usageOf(host);
    const isUsed = active > 0 || requests !== (this.#requests.get(key) ?? 0);
    this.#requests.set(key, requests);
    return isUsed;
  }

  #publish(): void {
    const endpoints: ResolvedEndpoint[] = [];
    const answered: string[] = [];
    for (const { additional, address, key } of this.#held.cache.hosts()) {
      endpoints.push({ address, additional, key, statName: key, hostname: key, ...TRAITS });
      if (this.#awaited.delete(key)) answered.push(key);
    }
    this.#listener.onHosts({ endpoints, policy: this.#policy });
    for (const key of answered) if (this.#resources.directory.find(key) === undefined) this.#refuse(key, NO_MEMORY);
  }
}
