// The names that a DNS filter knows: a table from the configuration (envoy.data.dns.v3.DnsTable), compiled for look-ups.

import type { DnsTable, DnsTable_DnsVirtualDomain } from '../../../../config/generated/api.js';
import { durationMs, parseIp } from '../../../sdk.js';

/** What a name stands for. */
export interface DomainTarget {
  /** 4 or 16 bytes each. */
  readonly addresses: Uint8Array[];
  readonly clusters: string[];
  ttlSeconds: number;
}

/** A service (SRV), by its whole name, such as `_sip._tcp.example.com`. */
export interface Service {
  readonly ttlSeconds: number;
  readonly targets: readonly ServiceTarget[];
}

export interface ServiceTarget {
  readonly host: string;
  /** The name of a cluster, in place of a host. */
  readonly cluster: string;
  readonly priority: number;
  readonly weight: number;
  /** 0: that of the cluster's hosts. */
  readonly port: number;
}

export const DEFAULT_TTL_SECONDS = 300;
/** RFC 2181 section 8. */
const MAX_TTL_SECONDS = 2 ** 31 - 1;

/** Protocols by number, as names of services contain them. Others are refused. */
const PROTOCOLS: Readonly<Record<number, string>> = { 6: 'tcp', 17: 'udp' };

export class DomainTable {
  readonly retries: number;
  readonly #isCaseInsensitive: boolean;
  readonly #domains = new Map<string, DomainTarget>();
  /** Targets of names that begin with '*.', by the rest of the name. */
  readonly #wildcards = new Map<string, DomainTarget>();
  readonly #services = new Map<string, Service>();
  /** The last two labels of all names. */
  readonly #suffixes = new Set<string>();

  constructor(config: DnsTable, isCaseInsensitive: boolean) {
    this.retries = config.external_retry_count ?? 0;
    this.#isCaseInsensitive = isCaseInsensitive;
    for (const domain of config.virtual_domains ?? []) this.#add(domain);
  }

  /** Returns whether the table has names with the same last two labels. */
  knows(name: string): boolean {
    return this.#suffixes.has(suffixOf(this.#key(name)));
  }

  /** Returns the target of a name, or of the longest wildcard that it matches. */
  find(name: string): DomainTarget | undefined {
    const key = this.#key(name);
    const exact = this.#domains.get(key);
    if (exact !== undefined || this.#wildcards.size === 0) return exact;
    for (let dot = key.indexOf('.'); dot >= 0; dot = key.indexOf('.', dot + 1)) {
      const found = this.#wildcards.get(key.slice(dot + 1));
      if (found !== undefined) return found;
    }
    return undefined;
  }

  findService(name: string): Service | undefined {
    return this.#services.get(this.#key(name));
  }

  #add({ answer_ttl: ttl, endpoint, name: configured = '' }: DnsTable_DnsVirtualDomain): void {
    const name = this.#key(configured);
    const { address_list: list, cluster_name: cluster, service_list: services } = endpoint ?? {};
    if (list === undefined && cluster === undefined && services === undefined) return;
    for (const service of services?.services ?? []) {
      const { protocol, service_name: service_ = '', targets = [], ttl: serviceTtl } = service;
      const protocolName = protocol?.name ?? PROTOCOLS[protocol?.number ?? 0] ?? String(protocol?.number);
      this.#services.set(this.#key(`${underscored(service_)}.${underscored(protocolName)}.${name}`), {
        ttlSeconds: serviceTtl === undefined ? DEFAULT_TTL_SECONDS : ttlOf(serviceTtl),
        targets: targets.map(({ cluster_name = '', host_name = '', port = 0, priority = 0, weight = 0 }) => {
          return { host: host_name, cluster: cluster_name, port, priority, weight };
        }),
      });
    }
    if (services !== undefined) return;
    const isWildcard = name.startsWith('*.');
    this.#suffixes.add(suffixOf(isWildcard ? name.slice(2) : name));
    const map = isWildcard ? this.#wildcards : this.#domains;
    const key = isWildcard ? name.slice(2) : name;
    let target = map.get(key);
    if (target === undefined) map.set(key, (target = { addresses: [], clusters: [], ttlSeconds: DEFAULT_TTL_SECONDS }));
    if (ttl !== undefined) target.ttlSeconds = ttlOf(ttl);
    target.addresses.push(...(list?.address ?? []).map((address) => parseIp(address)!));
    if (cluster !== undefined) target.clusters.push(cluster);
  }

  #key(name: string): string {
    return this.#isCaseInsensitive ? name.toLowerCase() : name;
  }
}

function ttlOf(duration: string): number {
  return Math.min(Math.floor(durationMs(duration) / 1000), MAX_TTL_SECONDS);
}

/** Returns the last two labels. */
function suffixOf(name: string): string {
  const last = name.lastIndexOf('.');
  const dot = last < 0 ? -1 : name.lastIndexOf('.', last - 1);
  return name.slice(dot + 1);
}

function underscored(label: string): string {
  return label.startsWith('_') ? label : `_${label}`;
}
