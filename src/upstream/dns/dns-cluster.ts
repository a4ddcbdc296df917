// Finds the hosts of STRICT_DNS and LOGICAL_DNS clusters and keeps them up to date: resolves each endpoint's name periodically,
// and notifies its owner when the list of hosts has changed.
//
// It does no I/O: DnsClusterContext resolves names, provides timers and counts.

import { isDeepStrictEqual } from 'node:util';
import type { Random } from '../../common/random.js';
import { shownName } from '../../common/text/shown.js';
import { ipAddress } from '../../io/addresses/address.js';
import { Timer, type Timers } from '../../io/time/timing-wheel.js';
import { getLogger } from '../../log/logger.js';
import type { DiscoverySpec, DnsSettings, EndpointSpec } from '../discovery-config.js';
import { type ResolvedEndpoint, traitsOf } from '../hosts/host.js';
import { MAX_ADDRESSES } from './max-addresses.js';
import type { DnsResult, LookupFamily } from './resolver.js';

const logger = getLogger('dns');

/** The cluster stats that resolution counts; membership_change belongs to the owner of the host list. */
export type DnsUpdateStat =
  | 'update_attempt'
  | 'update_success'
  | 'update_failure'
  | 'update_empty'
  | 'update_no_rebuild';

export interface DnsClusterContext {
  readonly timers: Timers;
  readonly random: Random;
  /** Must not reject. */
  resolve(name: string, family: LookupFamily): Promise<DnsResult>;
  count(stat: DnsUpdateStat): void;
  /** Called with the hosts of all endpoints, in the order of the configuration, when they differ from those of the last call. */
  onHosts(endpoints: ResolvedEndpoint[]): void;
  /** Called once, after the first answer, good or bad: the cluster can serve even if other names are still unresolved. */
  onInitialized(): void;
}

export class DnsCluster {
  readonly #context: DnsClusterContext;
  readonly #dns: DnsSettings;
  readonly #targets: Target[];
  #isInitialized = false;
  #isStopped = false;

  constructor({ dns, endpoints, type }: Pick<DiscoverySpec, 'dns' | 'endpoints' | 'type'>, context: DnsClusterContext) {
    const isLogical = type === 'LOGICAL_DNS';
    this.#context = context;
    this.#dns = dns;
    this.#targets = endpoints.map(
      (endpoint) => new Target(endpoint, isLogical, (target) => void this.#resolve(target)),
    );
  }

  /**
   * Takes over from `former`: names without a successful answer keep their known addresses, because a name server that fails now
   * is no reason to drop them. Returns all hosts.
   */
  inheritFrom(former: DnsCluster): ResolvedEndpoint[] {
    if (former.#dns.family === this.#dns.family) {
      const known = new Map(former.#targets.map((target) => [target.endpoint.host, target]));
      for (const target of this.#targets) target.inherit(known.get(target.endpoint.host));
    }
    return this.#hosts();
  }

  /** Begins to resolve. Without endpoints the cluster is initialized at once. */
  start(): void {
    if (this.#targets.length === 0) this.#initialized();
    for (const target of this.#targets) void this.#resolve(target);
  }

  /** Called when the cluster is removed. Later answers are dropped. */
  stop(): void {
    this.#isStopped = true;
    for (const target of this.#targets) this.#context.timers.cancel(target.timer);
  }

  async #resolve(target: Target): Promise<void> {
    this.#context.count('update_attempt');
    let nextMs = this.#dns.refreshMs;
    try {
      const result = await this.#context.resolve(target.endpoint.host, this.#dns.family);
      if (this.#isStopped) return;
      if (logger.isDebug) {
        const answer = result.status === 'found' ? result.addresses.join(', ') : result.status;
        logger.debug(`${shownName(target.endpoint.host)}: ${answer}`);
      }
      nextMs = this.#take(target, result);
    } finally {
      // Whatever the result, the name is resolved again.
      if (!this.#isStopped && nextMs !== Number.POSITIVE_INFINITY) {
        this.#context.timers.reschedule(target.timer, nextMs);
      }
      if (!this.#isStopped) this.#initialized();
    }
  }

  /** Applies an answer. Returns the delay of the next resolution in ms. */
  #take(target: Target, result: DnsResult): number {
    const { jitterMs, minRefreshMs, respectTtl, refreshMs } = this.#dns;
    // A logical host keeps its address when its name no longer has any: existing connections show that it was right.
    if (result.status !== 'found' && (result.status !== 'not_found' || target.isLogical)) {
      this.#context.count('update_failure');
      return this.#failureDelay(target);
    }
    target.failures = 0;
    this.#context.count('update_success');
    const addresses = result.status === 'found' ? result.addresses : [];
    if (addresses.length === 0) this.#context.count('update_empty');
    if (target.take(addresses)) this.#context.onHosts(this.#hosts());
    else this.#context.count('update_no_rebuild');
    const ttlMs = result.status === 'found' ? result.ttlMs : 0;
    if (ttlMs === Number.POSITIVE_INFINITY) return ttlMs;
    const nextMs = respectTtl && ttlMs > 0 ? Math.max(ttlMs, minRefreshMs) : refreshMs;
    return nextMs + jitterMs * this.#context.random.fraction();
  }

  #hosts(): ResolvedEndpoint[] {
    return this.#targets.flatMap((target) => target.hosts());
  }

  /**
   * Returns the back-off: doubles from the base to the maximum, with a random value from the upper half so that clients do not
   * retry in step.
   */
  #failureDelay(target: Target): number {
    const { failureRefresh, refreshMs } = this.#dns;
    if (failureRefresh === undefined) return refreshMs;
    const { baseMs, maxMs } = failureRefresh;
    const intervalMs = Math.min(baseMs * 2 ** Math.min(target.failures++, 50), maxMs);
    return intervalMs * (0.5 + 0.5 * this.#context.random.fraction());
  }

  #initialized(): void {
    if (this.#isInitialized) return;
    this.#isInitialized = true;
    this.#context.onInitialized();
  }
}

/** One endpoint and the last addresses of its name. */
class Target {
  readonly endpoint: EndpointSpec;
  readonly timer: Timer<Target>;
  /** Consecutive failed resolutions. */
  failures = 0;
  /** It is a single host, which tries the addresses in turn. */
  readonly isLogical: boolean;
  /** Undefined before the first answer. */
  #addresses: readonly string[] | undefined = undefined;

  constructor(endpoint: EndpointSpec, isLogical: boolean, resolve: (target: Target) => void) {
    this.endpoint = endpoint;
    this.timer = new Timer<Target>(this, resolve);
    this.isLogical = isLogical;
  }

  /** Sets the addresses. Returns whether they differ from the old ones; the order counts for a single host, which tries them in turn. */
  take(addresses: readonly string[]): boolean {
    if (this.isLogical) return this.#takeOrdered(addresses.slice(0, MAX_ADDRESSES));
    const known = new Set(this.#addresses);
    const isSame = addresses.length === known.size && addresses.every((address) => known.has(address));
    this.#addresses = addresses;
    return !isSame;
  }

  #takeOrdered(addresses: readonly string[]): boolean {
    const isSame = isDeepStrictEqual(addresses, this.#addresses ?? []);
    this.#addresses = addresses;
    return !isSame;
  }

  /** Copies the addresses of another target with the same name, unless this one has an answer. */
  inherit(other: Target | undefined): void {
    if (other === undefined || this.#addresses !== undefined) return;
    if (other.#addresses !== undefined) this.take(other.#addresses);
  }

  hosts(): ResolvedEndpoint[] {
    const { host, hostname, port } = this.endpoint;
    const traits = traitsOf(this.endpoint);
    const addresses = (this.#addresses ?? []).map((ip) => ipAddress(ip, port)!);
    const [, ...others] = addresses;
    const additional = this.isLogical && others.length > 0 ? others : undefined;
    return (this.isLogical ? addresses.slice(0, 1) : addresses).map((address) => ({
      address,
      additional,
      key: this.isLogical ? `${host}:${port}` : undefined,
      hostname: hostname || host,
      ...traits,
    }));
  }
}
