// Resolves names as getaddrinfo() does (addresses, /etc/hosts, localhost, search domains, name servers), but with TTLs, and with
// c-ares instead of the thread pool: a name server that hangs delays only its own answers.

import { Resolver } from 'node:dns/promises';
import { hostname } from 'node:os';
import { PatientTimeout } from '../../common/time/patient-timeout.js';
import type { Cluster_DnsLookupFamily } from '../../config/generated/api.js';
import { ipAddress } from '../../io/addresses/address.js';
import { type HostsEntry, parseHosts } from './hosts-file.js';
import { ReloadedFile } from './reloaded-file.js';
import { candidateNames, parseResolvConf, type ResolvConf } from './resolv-conf.js';
import { type ResolverSettings, withSettings } from './resolver-settings.js';

/** dns_lookup_family. AUTO prefers IPv6 addresses, V4_PREFERRED IPv4 ones; ALL returns both. */
export type LookupFamily = Cluster_DnsLookupFamily;

export type DnsResult =
  | {
      readonly status: 'found';
      /** Distinct IP addresses in canonical text, in the order of the answer; never empty. */
      readonly addresses: readonly string[];
      /** How long the answer is valid; 0: unknown, Infinity: the name is itself an address. */
      readonly ttlMs: number;
    }
  /** The name does not exist, or has no address of the family. */
  | { readonly status: 'not_found' }
  | { readonly status: 'timeout' }
  /** Refused, malformed answer or server failure; `reason` is c-ares's code. */
  | { readonly status: 'failed'; readonly reason: string };

/** The stats dns.cares.*, which the owner reads when it flushes. */
export interface DnsCounters {
  resolve_total: number;
  not_found: number;
  timeouts: number;
  get_addr_failure: number;
  /** A gauge. */
  pending_resolutions: number;
}

export interface DnsResolverOptions {
  hostsFile?: string;
  resolvConf?: string;
  /** The machine's own name. Its domain is the default search domain. */
  hostName?: string;
  /** Time limit of one query, and queries to each server, unless resolv.conf sets them. */
  queryTimeoutMs?: number;
  attempts?: number;
  /** Overrides what resolv.conf says. */
  settings?: ResolverSettings;
  /** Time limit of a resolution with all its search domains and servers. */
  deadlineMs?: number;
}

export class DnsResolver {
  /** Counters of this resolver and of those that withSettings() has created. */
  readonly counters: DnsCounters;
  readonly #hosts: ReloadedFile<ReadonlyMap<string, HostsEntry>>;
  readonly #conf: ReloadedFile<ResolvConf>;
  readonly #options: DnsResolverOptions;
  /** Resolutions in flight by family and name; equal requests share one. */
  readonly #pending = new Map<string, Promise<DnsResult>>();
  #client: { readonly conf: ResolvConf; readonly resolver: Resolver } | undefined;
  #isClosed = false;

  constructor(options: DnsResolverOptions = {}, counters: DnsCounters = noCounts()) {
    this.counters = counters;
    const domain = domainOf(options.hostName ?? hostname());
    this.#options = options;
    this.#hosts = new ReloadedFile(options.hostsFile ?? '/etc/hosts', parseHosts);
    this.#conf = new ReloadedFile(options.resolvConf ?? '/etc/resolv.conf', (text) =>
      withSettings(parseResolvConf(text, domain), options.settings),
    );
  }

  /** Returns a resolver with other settings, for the caller to close. */
  withSettings(settings: ResolverSettings): DnsResolver {
    return new DnsResolver({ ...this.#options, settings }, this.counters);
  }

  /** Resolves `name`. Never rejects. */
  resolve(name: string, family: LookupFamily): Promise<DnsResult> {
    const local = this.#resolveLocally(name, family);
    if (local !== undefined) return Promise.resolve(local);
    const key = `${family} ${name}`;
    let pending = this.#pending.get(key);
    if (pending === undefined) {
      pending = this.#lookUp(name, family).finally(() => {
        this.#pending.delete(key);
        this.counters.pending_resolutions--;
      });
      this.#pending.set(key, pending);
      this.counters.pending_resolutions++;
    }
    return pending;
  }

  /** Cancels the resolutions in flight, which return as failed. */
  close(): void {
    this.#isClosed = true;
    this.#client?.resolver.cancel();
  }

  /** Resolves an address, a name in /etc/hosts, or localhost (RFC 6761 section 6.3: no server is queried for it). */
  #resolveLocally(name: string, family: LookupFamily): DnsResult | undefined {
    const address = ipAddress(name, 0);
    if (address !== undefined) return { status: 'found', addresses: [address.ip], ttlMs: Number.POSITIVE_INFINITY };
    const plain = (name.endsWith('.') ? name.slice(0, -1) : name).toLowerCase();
    const entry = this.#hosts.get().get(plain);
    const known = entry === undefined ? [] : choose(family, entry.ip4, entry.ip6);
    if (known.length === 0 && plain !== 'localhost' && !plain.endsWith('.localhost')) return undefined;
    // As in Envoy, whose library reads the file.
    this.counters.resolve_total++;
    if (known.length > 0) return { status: 'found', addresses: known, ttlMs: 0 };
    return { status: 'found', addresses: choose(family, ['127.0.0.1'], ['::1']), ttlMs: 0 };
  }

  async #lookUp(name: string, family: LookupFamily): Promise<DnsResult> {
    this.counters.resolve_total++;
    const deadline = new Deadline(this.#options.deadlineMs ?? 10_000);
    try {
      const result = await this.#search(name, family, deadline);
      this.#count(result);
      return result;
    } finally {
      deadline.cancel();
    }
  }

  /** Queries the name in each search domain until one exists. A server's failure does not end the search; a timeout does. */
  async #search(name: string, family: LookupFamily, deadline: Deadline): Promise<DnsResult> {
    const conf = this.#conf.get();
    let failure: DnsResult | undefined;
    for (const candidate of candidateNames(name, conf)) {
      if (this.#isClosed) break;
      const result = await this.#query(conf, candidate, family, deadline);
      if (result.status === 'found' || result.status === 'timeout') return result;
      if (result.status === 'failed') failure ??= result;
    }
    return failure ?? { status: 'not_found' };
  }

  async #query(conf: ResolvConf, name: string, family: LookupFamily, deadline: Deadline): Promise<DnsResult> {
    const resolver = this.#resolverFor(conf);
    const answer4 = family === 'V6_ONLY' ? NO_RECORDS : records(resolver.resolve4(name, { ttl: true }), deadline);
    const answer6 = family === 'V4_ONLY' ? NO_RECORDS : records(resolver.resolve6(name, { ttl: true }), deadline);
    // If the preferred family has addresses, the other one is not awaited.
    const preferred = await (family === 'AUTO' ? answer6 : family === 'V4_PREFERRED' ? answer4 : NO_RECORDS);
    const isEnough = preferred.records.length > 0;
    const [ip4, ip6] = isEnough ? [NO_RECORDS, NO_RECORDS] : await Promise.all([answer4, answer6]);
    const found = isEnough ? preferred.records : choose(family, ip4.records, ip6.records);
    if (found.length > 0) {
      const addresses = [...new Set(found.map((record) => ipAddress(record.address, 0)!.ip))];
      return { status: 'found', addresses, ttlMs: minTtl(found) * 1000 };
    }
    // One family may lack addresses while the other's query failed: then the result is unknown.
    const errors = [ip4.error, ip6.error].filter((error) => error !== undefined);
    if (errors.includes('ETIMEOUT')) return { status: 'timeout' };
    return errors.length === 0 ? { status: 'not_found' } : { status: 'failed', reason: errors[0]! };
  }

  /**
   * Returns a resolver for these servers. A changed file gets a new one, because a server list cannot change while queries are in
   * flight.
   */
  #resolverFor(conf: ResolvConf): Resolver {
    if (this.#client?.conf !== conf) {
      const resolver = new Resolver({
        timeout: conf.timeoutMs ?? this.#options.queryTimeoutMs ?? 2000,
        tries: Math.max(conf.attempts ?? this.#options.attempts ?? 2, 1),
      });
      resolver.setServers(conf.servers);
      this.#client = { conf, resolver };
    }
    return this.#client.resolver;
  }

  #count(result: DnsResult): void {
    if (result.status === 'not_found') this.counters.not_found++;
    if (result.status === 'timeout') this.counters.timeouts++;
    if (result.status === 'timeout' || result.status === 'failed') this.counters.get_addr_failure++;
  }
}

function noCounts(): DnsCounters {
  return { resolve_total: 0, not_found: 0, timeouts: 0, get_addr_failure: 0, pending_resolutions: 0 };
}

interface DnsRecord {
  readonly address: string;
  /** Node provides it for the first 256 records of an answer. */
  readonly ttl: number | undefined;
}

interface Records {
  readonly records: readonly DnsRecord[];
  /** Error code if it is unknown whether there are records. */
  readonly error: string | undefined;
}

const NO_RECORDS: Records = { records: [], error: undefined };

/** Returns the records of an answer. A missed deadline counts as a timeout: some servers never answer queries of one family. */
async function records(answer: Promise<readonly DnsRecord[]>, deadline: Deadline): Promise<Records> {
  try {
    const records = await Promise.race([answer, deadline.passed]);
    return records === undefined ? { records: [], error: 'ETIMEOUT' } : { records, error: undefined };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === 'ENOTFOUND' || code === 'ENODATA' ? NO_RECORDS : { records: [], error: code ?? 'EUNKNOWN' };
  }
}

/**
 * A TTL with the highest bit set counts as 0 (RFC 2181 section 8); newer versions of c-ares return the largest TTL without that
 * bit instead.
 */
function minTtl(records: readonly DnsRecord[]): number {
  const ttls = records.flatMap(({ ttl }) => ttl ?? []);
  return Math.min(...ttls.map((ttl) => (ttl < 2 ** 31 - 1 ? ttl : 0)));
}

function choose<T>(family: LookupFamily, ip4: readonly T[], ip6: readonly T[]): readonly T[] {
  switch (family) {
    case 'V4_ONLY':
      return ip4;
    case 'V6_ONLY':
      return ip6;
    case 'V4_PREFERRED':
      return ip4.length > 0 ? ip4 : ip6;
    case 'ALL':
      return [...ip4, ...ip6];
    case 'AUTO':
      return ip6.length > 0 ? ip6 : ip4;
  }
}

function domainOf(host: string): string {
  const dot = host.indexOf('.');
  return dot < 0 ? '' : host.slice(dot + 1);
}

/** The time limit of a whole resolution. */
class Deadline {
  readonly passed: Promise<undefined>;
  #timeout: PatientTimeout | undefined;

  constructor(afterMs: number) {
    this.passed = new Promise((resolve) => {
      this.#timeout = new PatientTimeout(() => resolve(undefined), afterMs);
    });
  }

  cancel(): void {
    this.#timeout?.clear();
  }
}
