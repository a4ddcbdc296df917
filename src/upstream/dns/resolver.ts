// Names to addresses as getaddrinfo() finds them (addresses, /etc/hosts, localhost, search domains, name servers), but
// with TTLs, and on c-ares instead of the thread pool: a name server that hangs delays nothing but its own answers.

import { Resolver } from 'node:dns/promises';
import { hostname } from 'node:os';
import { PatientTimeout } from '../../common/time/patient-timeout.js';
import type { Cluster_DnsLookupFamily } from '../../config/generated/api.js';
import { ipAddress } from '../../io/addresses/address.js';
import { type HostsEntry, parseHosts } from './hosts-file.js';
import { ReloadedFile } from './reloaded-file.js';
import { candidateNames, parseResolvConf, type ResolvConf } from './resolv-conf.js';

/** dns_lookup_family. AUTO prefers IPv6 addresses, V4_PREFERRED IPv4 ones; ALL gives both. */
export type LookupFamily = Cluster_DnsLookupFamily;

export type DnsResult =
  | {
      readonly status: 'found';
      /** IP addresses in canonical text, without doubles, in the order of the answer; never empty. */
      readonly addresses: readonly string[];
      /** How long the answer holds; 0 when its source does not say, Infinity when the name is itself an address. */
      readonly ttlMs: number;
    }
  /** The name does not exist, or has no address of the family. */
  | { readonly status: 'not_found' }
  | { readonly status: 'timeout' }
  /** Refused, broken answer, server failure: `reason` is c-ares's code. */
  | { readonly status: 'failed'; readonly reason: string };

/** The stats dns.cares.*; the owner reads them when it flushes. */
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
  /** The machine's own name; its domain is searched when resolv.conf names none. */
  hostName?: string;
  /** Time for one query, and how often each server is asked, where resolv.conf does not say. */
  queryTimeoutMs?: number;
  attempts?: number;
  /** After this time a resolution is given up, whatever search domains and servers are left. */
  deadlineMs?: number;
}

export class DnsResolver {
  readonly counters: DnsCounters = {
    resolve_total: 0,
    not_found: 0,
    timeouts: 0,
    get_addr_failure: 0,
    pending_resolutions: 0,
  };
  readonly #hosts: ReloadedFile<ReadonlyMap<string, HostsEntry>>;
  readonly #conf: ReloadedFile<ResolvConf>;
  readonly #options: DnsResolverOptions;
  /** Resolutions under way by family and name: who asks for the same waits for the same. */
  readonly #pending = new Map<string, Promise<DnsResult>>();
  #client: { readonly conf: ResolvConf; readonly resolver: Resolver } | undefined;
  #isClosed = false;

  constructor(options: DnsResolverOptions = {}) {
    const domain = domainOf(options.hostName ?? hostname());
    this.#options = options;
    this.#hosts = new ReloadedFile(options.hostsFile ?? '/etc/hosts', parseHosts);
    this.#conf = new ReloadedFile(options.resolvConf ?? '/etc/resolv.conf', (text) => parseResolvConf(text, domain));
  }

  /** Finds the addresses of `name`. Never rejects. */
  resolve(name: string, family: LookupFamily): Promise<DnsResult> {
    const local = this.#resolveLocally(name, family);
    if (local !== undefined) return Promise.resolve(local);
    const key = `${family} ${name}`;
    let pending = this.#pending.get(key);
    if (pending === undefined) {
      pending = this.#ask(name, family).finally(() => {
        this.#pending.delete(key);
        this.counters.pending_resolutions--;
      });
      this.#pending.set(key, pending);
      this.counters.pending_resolutions++;
    }
    return pending;
  }

  /** Ends what is under way: it comes back as failed. */
  close(): void {
    this.#isClosed = true;
    this.#client?.resolver.cancel();
  }

  /** An address, a name of /etc/hosts, or localhost (RFC 6761 section 6.3: no server is asked for it). */
  #resolveLocally(name: string, family: LookupFamily): DnsResult | undefined {
    const address = ipAddress(name, 0);
    if (address !== undefined) return { status: 'found', addresses: [address.ip], ttlMs: Number.POSITIVE_INFINITY };
    const plain = (name.endsWith('.') ? name.slice(0, -1) : name).toLowerCase();
    const entry = this.#hosts.get().get(plain);
    const known = entry === undefined ? [] : choose(family, entry.ip4, entry.ip6);
    if (known.length > 0) return { status: 'found', addresses: known, ttlMs: 0 };
    if (plain !== 'localhost' && !plain.endsWith('.localhost')) return undefined;
    return { status: 'found', addresses: choose(family, ['127.0.0.1'], ['::1']), ttlMs: 0 };
  }

  async #ask(name: string, family: LookupFamily): Promise<DnsResult> {
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

  /** Asks for the name in each search domain until one exists; a server's failure does not end the search, a timeout does. */
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
    const asked4 = family === 'V6_ONLY' ? NOTHING : records(resolver.resolve4(name, { ttl: true }), deadline);
    const asked6 = family === 'V4_ONLY' ? NOTHING : records(resolver.resolve6(name, { ttl: true }), deadline);
    // Where the preferred family has addresses, the other one is not waited for.
    const preferred = await (family === 'AUTO' ? asked6 : family === 'V4_PREFERRED' ? asked4 : NOTHING);
    const isEnough = preferred.records.length > 0;
    const [ip4, ip6] = isEnough ? [NOTHING, NOTHING] : await Promise.all([asked4, asked6]);
    const found = isEnough ? preferred.records : choose(family, ip4.records, ip6.records);
    if (found.length > 0) {
      const addresses = [...new Set(found.map((record) => ipAddress(record.address, 0)!.ip))];
      return { status: 'found', addresses, ttlMs: leastTtl(found) * 1000 };
    }
    // One family may lack addresses while the other's question failed: then nobody knows.
    const errors = [ip4.error, ip6.error].filter((error) => error !== undefined);
    if (errors.includes('ETIMEOUT')) return { status: 'timeout' };
    return errors.length === 0 ? { status: 'not_found' } : { status: 'failed', reason: errors[0]! };
  }

  /** A resolver for these servers: its list cannot change while queries are under way, so a changed file gets a new one. */
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

interface DnsRecord {
  readonly address: string;
  /** Node has it of the first 256 records of an answer. */
  readonly ttl: number | undefined;
}

interface Records {
  readonly records: readonly DnsRecord[];
  /** Why it is not known whether there are records. */
  readonly error: string | undefined;
}

const NOTHING: Records = { records: [], error: undefined };

/** Without an answer by the deadline it is as after a timeout: there are servers that never answer questions of one family. */
async function records(answer: Promise<readonly DnsRecord[]>, deadline: Deadline): Promise<Records> {
  try {
    const records = await Promise.race([answer, deadline.passed]);
    return records === undefined ? { records: [], error: 'ETIMEOUT' } : { records, error: undefined };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === 'ENOTFOUND' || code === 'ENODATA' ? NOTHING : { records: [], error: code ?? 'EUNKNOWN' };
  }
}

/** A TTL with the highest bit set counts as 0 (RFC 2181 section 8); newer versions of c-ares give the greatest without it instead. */
function leastTtl(records: readonly DnsRecord[]): number {
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

/** Bounds a whole resolution. */
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
