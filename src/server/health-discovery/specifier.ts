// Converts a HealthCheckSpecifier to resources of type cluster: they are read and checked as those of CDS are.
//
// The parts are copied in their encoded form, which costs the primary little, whatever they contain. What is invalid in them is found
// where the clusters are read, on another thread.

import { ProtobufWriter } from '../../common/protobuf-writer.js';
import { MAX_TIMER_MS } from '../../common/time/max-timer.js';
import { WireReader, WireType } from '../../extensions/protobuf/wire-reader.js';
import type { EncodedResource } from '../../xds/resource-reader.js';

const TYPE_URL = 'type.googleapis.com/envoy.config.cluster.v3.Cluster';

/** Limits of one specifier: each cluster has stats, and each endpoint a timer and a connection. */
export const MAX_CLUSTERS = 10_000;
export const MAX_ENDPOINTS = 100_000;

/** As in Envoy. */
const DEFAULT_INTERVAL_MS = 1000;
/** Lower limit of the interval, whatever the service requests: a report walks over all hosts. */
const MIN_INTERVAL_MS = 100;

export interface Specifier {
  readonly intervalMs: number;
  /** Encoded clusters, with different names. */
  readonly clusters: readonly EncodedResource[];
  /** Names that occur again: the first cluster of a name counts. */
  readonly repeated: readonly string[];
}

/** Numbers of the fields of each message. */
const SPECIFIER = { clusters: 1, interval: 2 } as const;
const CHECK = { name: 1, healthChecks: 2, localities: 3, transportMatches: 4, bindConfig: 5 } as const;
const GROUP = { locality: 1, endpoints: 2 } as const;
const CLUSTER = { name: 1, healthChecks: 8, bindConfig: 21, assignment: 33, transportMatches: 43 } as const;
const ASSIGNMENT = { name: 1, localities: 2 } as const;
const ASSIGNED = { locality: 1, endpoints: 2 } as const;
const ENDPOINT = { endpoint: 1 } as const;
const DURATION = { seconds: 1, nanos: 2 } as const;

/** Reads the bytes of a HealthCheckSpecifier. Throws an Error for others, and for one beyond the limits. */
export function readSpecifier(message: Buffer): Specifier {
  const converter = new ClusterConverter();
  const clusters = new Map<string, EncodedResource>();
  const repeated: string[] = [];
  let interval = DEFAULT_INTERVAL_MS;
  let count = 0;
  for (const fields = new WireReader(message); nextPart(fields); ) {
    if (fields.field === SPECIFIER.interval) interval = intervalMs(fields.inner());
    else if (fields.field === SPECIFIER.clusters) {
      if (++count > MAX_CLUSTERS) throw new Error(`it has more than ${MAX_CLUSTERS} clusters`);
      const { name, value } = converter.convert(fields.inner());
      if (clusters.has(name)) repeated.push(name);
      else clusters.set(name, { name, version: '', aliases: [], typeUrl: TYPE_URL, value });
    } else fields.skip();
  }
  return { intervalMs: interval, clusters: [...clusters.values()], repeated };
}

/** Converts ClusterHealthCheck messages to Cluster messages. */
class ClusterConverter {
  /** Of all clusters. */
  #endpoints = 0;
  readonly #cluster = new ProtobufWriter();
  readonly #assignment = new ProtobufWriter();
  readonly #locality = new ProtobufWriter();
  readonly #endpoint = new ProtobufWriter();

  convert(check: WireReader): { readonly name: string; readonly value: Uint8Array } {
    const cluster = this.#cluster;
    const assignment = this.#assignment;
    cluster.clear();
    assignment.clear();
    let name = '';
    while (nextPart(check)) {
      switch (check.field) {
        case CHECK.name:
          name = check.text();
          break;
        case CHECK.healthChecks:
          cluster.bytes(CLUSTER.healthChecks, check.range());
          break;
        case CHECK.localities:
          this.#convertLocality(check.inner());
          assignment.message(ASSIGNMENT.localities, this.#locality);
          break;
        case CHECK.transportMatches:
          cluster.bytes(CLUSTER.transportMatches, check.range());
          break;
        case CHECK.bindConfig:
          cluster.bytes(CLUSTER.bindConfig, check.range());
          break;
        default:
          check.skip();
      }
    }
    cluster.string(CLUSTER.name, name);
    assignment.string(ASSIGNMENT.name, name);
    cluster.message(CLUSTER.assignment, assignment);
    return { name, value: cluster.copy() };
  }

  /** Writes LocalityEndpoints as LocalityLbEndpoints. */
  #convertLocality(group: WireReader): void {
    const locality = this.#locality;
    const endpoint = this.#endpoint;
    locality.clear();
    while (nextPart(group)) {
      if (group.field === GROUP.locality) locality.bytes(ASSIGNED.locality, group.range());
      else if (group.field === GROUP.endpoints) {
        if (++this.#endpoints > MAX_ENDPOINTS) throw new Error(`it has more than ${MAX_ENDPOINTS} endpoints`);
        endpoint.clear();
        endpoint.bytes(ENDPOINT.endpoint, group.range());
        locality.message(ASSIGNED.endpoints, endpoint);
      } else group.skip();
    }
  }
}

/** Advances to the next field that has a length, as all fields of these messages have. Returns false at the end. */
function nextPart(fields: WireReader): boolean {
  while (fields.next()) {
    if (fields.wireType === WireType.Bytes) return true;
    fields.skip();
  }
  return false;
}

/** Reads a google.protobuf.Duration. */
function intervalMs(duration: WireReader): number {
  let seconds = 0;
  let nanos = 0;
  while (duration.next()) {
    const isNumber = duration.wireType === WireType.Varint;
    if (isNumber && duration.field === DURATION.seconds) seconds = Number(BigInt.asIntN(64, duration.uint64()));
    else if (isNumber && duration.field === DURATION.nanos) nanos = duration.uint32() | 0;
    else duration.skip();
  }
  return Math.min(MAX_TIMER_MS, Math.max(MIN_INTERVAL_MS, seconds * 1000 + nanos / 1e6));
}
