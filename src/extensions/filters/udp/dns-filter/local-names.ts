// Answers from the table of a DNS filter, and from the hosts of the clusters that it names.

import {
  addressOfSockaddr,
  type ClusterManager,
  DnsFilterStats,
  ipBytesOf,
  type Random,
  type Scope,
} from '../../../sdk.js';
import { RecordType, type ResourceRecord, srvData } from './message.js';
import { DEFAULT_TTL_SECONDS, type DomainTable, type Service } from './table.js';

const { at } = DnsFilterStats;

export const enum AnswerSource {
  Local = 0,
  Cluster = 1,
}

export interface Answer {
  readonly source: AnswerSource;
  readonly records: readonly ResourceRecord[];
  readonly additional: readonly ResourceRecord[];
}

export interface LocalNamesParts {
  readonly table: DomainTable;
  readonly clusters: ClusterManager;
  /** With DnsFilterStats. */
  readonly stats: Scope;
  readonly random: Random;
}

/** Maximum number of answers in a response, and so of hosts of a cluster. */
const MAX_HOSTS = 8;
/** Maximum number of hosts that are scanned for these. */
const MAX_SCANNED = 256;

export const IP4_BYTES = 4;
export const IP6_BYTES = 16;

export class LocalNames {
  readonly #parts: LocalNamesParts;

  constructor(parts: LocalNamesParts) {
    this.#parts = parts;
  }

  /** Returns undefined if name servers may know more: the table has no addresses for the name, of any family. */
  resolve(name: string, type: number): Answer | undefined {
    return type === RecordType.Srv ? this.#service(name) : this.#addresses(name, type);
  }

  #addresses(name: string, type: number): Answer | undefined {
    const { stats, table } = this.#parts;
    const target = table.find(name);
    if (target === undefined) return undefined;
    const isIp6 = type === RecordType.Aaaa;
    for (const cluster of target.clusters) {
      const found = this.#hosts(cluster, isIp6);
      if (found.length === 0) continue;
      stats.add(isIp6 ? at.cluster_aaaa_record_answers : at.cluster_a_record_answers, found.length);
      const records = found.map(({ data }) => addressRecord(name, data, target.ttlSeconds));
      return { source: AnswerSource.Cluster, records, additional: [] };
    }
    if (target.addresses.length === 0) return undefined;
    const found = target.addresses.filter(({ length }) => (length === IP6_BYTES) === isIp6);
    stats.add(isIp6 ? at.local_aaaa_record_answers : at.local_a_record_answers, found.length);
    const records = found.map((data) => addressRecord(name, data, target.ttlSeconds));
    return { source: AnswerSource.Local, records: this.#rotated(records), additional: [] };
  }

  /** As in Envoy, begins at a random address if there are more than a response may contain. */
  #rotated(records: readonly ResourceRecord[]): readonly ResourceRecord[] {
    if (records.length <= MAX_HOSTS) return records;
    const start = this.#parts.random.below(records.length);
    return [...records.slice(start), ...records.slice(0, start)];
  }

  #service(name: string): Answer | undefined {
    const service = this.#parts.table.findService(name);
    if (service === undefined) return undefined;
    const ofClusters = this.#serviceClusters(name, service);
    const answer = ofClusters.records.length > 0 ? ofClusters : this.#serviceHosts(name, service);
    return answer.records.length > 0 ? answer : undefined;
  }

  #serviceClusters(name: string, { targets, ttlSeconds }: Service): Answer {
    const { stats } = this.#parts;
    const records: ResourceRecord[] = [];
    const additional: ResourceRecord[] = [];
    for (const { cluster, port, priority, weight } of targets) {
      if (cluster === '') continue;
      for (const host of [...this.#hosts(cluster, false), ...this.#hosts(cluster, true)]) {
        const data = srvData(priority, weight, port || host.port, cluster);
        records.push({ name, type: RecordType.Srv, ttlSeconds, data });
        additional.push(addressRecord(cluster, host.data, DEFAULT_TTL_SECONDS));
        stats.increment(at.cluster_srv_record_answers);
        stats.increment(host.data.length === IP4_BYTES ? at.cluster_a_record_answers : at.cluster_aaaa_record_answers);
      }
    }
    return { source: AnswerSource.Cluster, records, additional };
  }

  /** As in Envoy, only targets whose addresses the table has, and one address of each. */
  #serviceHosts(name: string, { targets, ttlSeconds }: Service): Answer {
    const { stats, table } = this.#parts;
    const records: ResourceRecord[] = [];
    const additional: ResourceRecord[] = [];
    for (const { host, port, priority, weight } of targets) {
      const target = host === '' ? undefined : table.find(host);
      if (target === undefined || target.addresses.length === 0) continue;
      records.push({ name, type: RecordType.Srv, ttlSeconds, data: srvData(priority, weight, port, host) });
      additional.push(addressRecord(host, target.addresses[0]!, target.ttlSeconds));
      stats.increment(at.local_srv_record_answers);
      for (const { length } of target.addresses)
        stats.increment(length === IP4_BYTES ? at.local_a_record_answers : at.local_aaaa_record_answers);
    }
    return { source: AnswerSource.Local, records, additional };
  }

  /** Returns hosts of one address family, beginning at a random one. */
  #hosts(name: string, isIp6: boolean): { readonly data: Uint8Array; readonly port: number }[] {
    const cluster = this.#parts.clusters.find(name)?.current;
    const found: { data: Uint8Array; port: number }[] = [];
    if (cluster === undefined) return found;
    const { hostCount } = cluster;
    const bytes = isIp6 ? IP6_BYTES : IP4_BYTES;
    const start = hostCount <= MAX_HOSTS ? 0 : this.#parts.random.below(hostCount);
    for (let scanned = 0; scanned < Math.min(hostCount, MAX_SCANNED) && found.length < MAX_HOSTS; scanned++) {
      const raw = cluster.hostAddress((start + scanned) % hostCount);
      const data = ipBytesOf(raw);
      if (data?.length === bytes) found.push({ data, port: addressOfSockaddr(raw).port });
    }
    return found;
  }
}

function addressRecord(name: string, data: Uint8Array, ttlSeconds: number): ResourceRecord {
  return { name, type: data.length === IP4_BYTES ? RecordType.A : RecordType.Aaaa, ttlSeconds, data };
}
