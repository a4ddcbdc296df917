// A cache of names that clients request: resolves each one when it is requested first, and again as long as it is used.

import { isDeepStrictEqual } from 'node:util';
import type { Random } from '../../common/random.js';
import { shownName } from '../../common/text/shown.js';
import { type Address, ipAddress } from '../../io/addresses/address.js';
import { Timer, type Timers } from '../../io/time/timing-wheel.js';
import { getLogger } from '../../log/logger.js';
import type { DnsCacheSpec } from './dns-cache-spec.js';
import { MAX_ADDRESSES } from './max-addresses.js';
import type { DnsResult, LookupFamily } from './resolver.js';

const logger = getLogger('dns');

/** Events that a cache counts. */
export type DnsCacheCount =
  | 'dns_query_attempt'
  | 'dns_query_failure'
  | 'dns_query_success'
  | 'dns_query_timeout'
  | 'host_added'
  | 'host_address_changed'
  | 'host_overflow'
  | 'host_removed';

export interface DnsCacheContext {
  readonly timers: Timers;
  readonly random: Random;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** Never rejects. */
  readonly resolve: (name: string, family: LookupFamily) => Promise<DnsResult>;
  readonly count: (what: DnsCacheCount) => void;
  /** Called with the number of names when it changes. */
  readonly sized: (names: number) => void;
}

/** A user of the cache: a cluster whose hosts are its names. */
export interface DnsCacheUser {
  /** Called when a name has got an address or another one. Must not throw. */
  changed(): void;
  /** Called when a name with an address was removed. Must not throw. */
  removed(key: string): void;
  /** Called when a requested name has no address: see %RESPONSE_CODE_DETAILS% of Envoy. */
  failed(key: string, details: string): void;
  /** Returns whether requests have used the host since the last call. */
  isUsed(key: string): boolean;
}

/** A name with port that has an address. */
export interface CachedHost {
  /** As in the request: `name:port`. */
  readonly key: string;
  readonly address: Address;
  /** Its other addresses; undefined: it has none. */
  readonly additional: readonly Address[] | undefined;
}

export class DnsCache {
  readonly #spec: DnsCacheSpec;
  readonly #context: DnsCacheContext;
  readonly #users = new Set<DnsCacheUser>();
  readonly #names = new Map<string, CachedName>();
  #isClosed = false;

  constructor(spec: DnsCacheSpec, context: DnsCacheContext) {
    this.#spec = spec;
    this.#context = context;
  }

  /** Adds a user. The first one starts the resolution of the names that are resolved in advance. */
  add(user: DnsCacheUser): void {
    this.#users.add(user);
    if (this.#users.size > 1) return;
    for (const { host, port } of this.#spec.preresolved)
      this.request(host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`);
  }

  remove(user: DnsCacheUser): void {
    this.#users.delete(user);
  }

  close(): void {
    this.#isClosed = true;
    for (const name of this.#names.values()) this.#context.timers.cancel(name.timer);
    this.#names.clear();
  }

  /** The names that have an address. */
  *hosts(): Iterable<CachedHost> {
    for (const { additional, address, key } of this.#names.values())
      if (address !== undefined) yield { key, address, additional };
  }

  /**
   * Looks a name with port up, which becomes one of hosts(); otherwise the users learn that it has failed. Returns whether it has an address
   * already.
   */
  request(key: string): boolean {
    const known = this.#names.get(key);
    if (known !== undefined) {
      known.usedMs = this.#context.now();
      if (known.address === undefined && !known.isResolving) this.#fail(known);
      return known.address !== undefined;
    }
    if (key.length > MAX_KEY) {
      for (const user of this.#users) user.failed(key, detailsOf(MALFORMED));
      return false;
    }
    if (this.#names.size >= this.#spec.maxHosts) {
      this.#context.count('host_overflow');
      for (const user of this.#users) user.failed(key, OVERFLOW);
      return false;
    }
    const name = new CachedName(key, this.#context.now(), (due) => this.#due(due));
    this.#names.set(key, name);
    this.#context.count('host_added');
    this.#context.sized(this.#names.size);
    void this.#resolve(name);
    return false;
  }

  async #resolve(name: CachedName): Promise<void> {
    this.#context.count('dns_query_attempt');
    name.isResolving = true;
    const { queryTimeoutMs } = this.#spec;
    const result = await within(this.#context, queryTimeoutMs, this.#lookUp(name));
    name.isResolving = false;
    if (this.#isClosed) return;
    if (logger.isDebug) logger.debug(`DNS cache '${this.#spec.name}': ${shownName(name.key)}: ${result.status}`);
    if (result.status === 'timeout') this.#context.count('dns_query_timeout');
    const isAnswered = result.status === 'found' || result.status === 'not_found';
    this.#context.count(isAnswered ? 'dns_query_success' : 'dns_query_failure');
    if (result.status === 'found') this.#found(name, result.addresses.slice(0, MAX_ADDRESSES));
    else name.details = detailsOf(result);
    if (name.address === undefined) this.#fail(name);
    if (name.address === undefined && this.#spec.forgetsFailures) return this.#forget(name);
    name.dueMs = this.#context.now() + this.#delayAfter(name, result);
    this.#schedule(name);
  }

  /** However long an answer is valid, the name is removed when it has not been used for the host TTL. */
  #schedule({ dueMs, timer, usedMs }: CachedName): void {
    const unusedMs = usedMs + this.#spec.hostTtlMs + 1;
    this.#context.timers.reschedule(timer, Math.min(dueMs, unusedMs) - this.#context.now());
  }

  #lookUp(name: CachedName): Promise<DnsResult> {
    const { host } = name;
    if (host === '') return Promise.resolve(MALFORMED);
    const { family } = this.#spec;
    const literal = ipAddress(host, 0);
    const isExcluded = literal !== undefined && (host.includes(':') ? family === 'V4_ONLY' : family === 'V6_ONLY');
    return isExcluded ? Promise.resolve({ status: 'not_found' }) : this.#context.resolve(host, family);
  }

  #found(name: CachedName, ips: readonly string[]): void {
    name.failures = 0;
    const [address, ...others] = ips.map((ip) => ipAddress(ip, name.port)!);
    const additional = others.length === 0 ? undefined : others;
    if (isDeepStrictEqual(address, name.address) && isDeepStrictEqual(additional, name.additional)) return;
    name.address = address;
    name.additional = additional;
    this.#context.count('host_address_changed');
    for (const user of this.#users) user.changed();
  }

  #fail({ details, key }: CachedName): void {
    for (const user of this.#users) user.failed(key, details);
  }

  /** A name keeps its address when it cannot be resolved again. */
  #delayAfter(name: CachedName, result: DnsResult): number {
    const { failureRefresh, minRefreshMs, refreshMs } = this.#spec;
    if (result.status === 'found') {
      // An address is queried no more; the timer removes it when it is not used.
      return Number.isFinite(result.ttlMs) ? Math.max(result.ttlMs, minRefreshMs) : Math.max(this.#spec.hostTtlMs, 1);
    }
    if (failureRefresh === undefined) return refreshMs;
    const { baseMs, maxMs } = failureRefresh;
    const intervalMs = Math.min(baseMs * 2 ** Math.min(name.failures++, 50), maxMs);
    return intervalMs * (0.5 + 0.5 * this.#context.random.fraction());
  }

  /** Called when a name is due to be resolved again, or may be unused. */
  #due(name: CachedName): void {
    const now = this.#context.now();
    for (const user of this.#users) if (user.isUsed(name.key)) name.usedMs = now;
    if (now - name.usedMs > this.#spec.hostTtlMs) return this.#forget(name);
    if (now < name.dueMs) return this.#schedule(name);
    void this.#resolve(name);
  }

  #forget(name: CachedName): void {
    this.#context.timers.cancel(name.timer);
    this.#names.delete(name.key);
    this.#context.count('host_removed');
    this.#context.sized(this.#names.size);
    if (name.address !== undefined) for (const user of this.#users) user.removed(name.key);
  }
}

/** Clients choose the names: longer ones, which cannot be resolved, are not kept. */
const MAX_KEY = 300;

const MALFORMED: DnsResult = { status: 'failed', reason: 'Misformatted_domain_name' };

/** Envoy's %RESPONSE_CODE_DETAILS%. */
const OVERFLOW = 'dns_cache_overflow';

function detailsOf(result: DnsResult): string {
  if (result.status === 'not_found') return 'dns_resolution_failure{cares_norecords:Domain_name_not_found}';
  if (result.status === 'timeout') return 'dns_resolution_failure{dns_query_timeout}';
  const reason = result.status === 'failed' ? result.reason : '';
  return `dns_resolution_failure{cares_failure:${reason.replaceAll(' ', '_')}}`;
}

class CachedName {
  readonly key: string;
  /** '' if the key has no valid name. */
  readonly host: string;
  readonly port: number;
  readonly timer: Timer<CachedName>;
  usedMs: number;
  /** When it will be resolved again. */
  dueMs = 0;
  /** Undefined: it has none. */
  address: Address | undefined = undefined;
  additional: readonly Address[] | undefined = undefined;
  isResolving = false;
  failures = 0;
  details = '';

  constructor(key: string, nowMs: number, due: (name: CachedName) => void) {
    this.key = key;
    this.usedMs = nowMs;
    const [host, port] = splitKey(key);
    this.host = host;
    this.port = port;
    this.timer = new Timer<CachedName>(this, due);
  }
}

/** Returns name and port; the name is '' if it cannot be one, so that no name server is asked for it. */
function splitKey(key: string): [host: string, port: number] {
  const colon = key.lastIndexOf(':');
  const port = Number(key.slice(colon + 1));
  const host = key.slice(0, colon);
  const isPort = /^\d{1,5}$/.test(key.slice(colon + 1)) && port <= 65535;
  if (!isPort) return ['', 0];
  if (host.startsWith('[') && host.endsWith(']')) return [ipAddress(host.slice(1, -1), 0)?.ip ?? '', port];
  return [NAME.test(host) && host.length <= 254 ? host : '', port];
}

/** Labels of at most 63 characters, also with underscores. */
const NAME = /^([a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63}\.?$/i;

/** Returns a result of `timeout` if the query takes longer; 0: no limit. */
async function within({ timers }: DnsCacheContext, ms: number, query: Promise<DnsResult>): Promise<DnsResult> {
  if (ms === 0) return query;
  return new Promise((resolve) => {
    const timer = new Timer<undefined>(undefined, () => resolve({ status: 'timeout' }));
    timers.reschedule(timer, ms);
    void query.then((result) => {
      timers.cancel(timer);
      resolve(result);
    });
  });
}
