// Converts a HealthCheckSpecifier to resources of type cluster: they are read and checked as those of CDS are.

import { MAX_TIMER_MS } from '../../common/time/max-timer.js';
import { loadMessages } from '../../config/schema/messages.js';
import type { EncodedResource } from '../../xds/resource-reader.js';

const SPECIFIER = 'envoy.service.health.v3.HealthCheckSpecifier';
const CLUSTER = 'envoy.config.cluster.v3.Cluster';

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

/** The decoded message; submessages that are only passed on are opaque. */
interface DecodedSpecifier {
  readonly cluster_health_checks: readonly {
    readonly cluster_name: string;
    readonly health_checks: readonly object[];
    readonly locality_endpoints: readonly {
      readonly locality: object | null;
      readonly endpoints: readonly object[];
    }[];
    readonly transport_socket_matches: readonly object[];
    readonly upstream_bind_config: object | null;
  }[];
  readonly interval: { readonly seconds: number | { toNumber(): number }; readonly nanos: number } | null;
}

export class SpecifierReader {
  readonly #types = loadMessages(SPECIFIER, CLUSTER);

  /** Throws an Error for bytes that are not a HealthCheckSpecifier, and for one beyond the limits. */
  read(message: Uint8Array): Specifier {
    const decoded = this.#types[SPECIFIER].decode(message) as unknown as DecodedSpecifier;
    const { cluster_health_checks: checks, interval } = decoded;
    if (checks.length > MAX_CLUSTERS) throw new Error(`it has more than ${MAX_CLUSTERS} clusters`);
    const clusters = new Map<string, EncodedResource>();
    const repeated: string[] = [];
    let endpoints = 0;
    for (const check of checks) {
      for (const group of check.locality_endpoints) endpoints += group.endpoints.length;
      if (endpoints > MAX_ENDPOINTS) throw new Error(`it has more than ${MAX_ENDPOINTS} endpoints`);
      const name = check.cluster_name;
      if (clusters.has(name)) repeated.push(name);
      else clusters.set(name, this.#cluster(check));
    }
    return { intervalMs: intervalMs(interval), clusters: [...clusters.values()], repeated };
  }

  #cluster(check: DecodedSpecifier['cluster_health_checks'][number]): EncodedResource {
    const { cluster_name: name, health_checks, transport_socket_matches, upstream_bind_config } = check;
    const endpoints = check.locality_endpoints.map((group) => ({
      locality: group.locality,
      lb_endpoints: group.endpoints.map((endpoint) => ({ endpoint })),
    }));
    const type = this.#types[CLUSTER];
    const value = type
      .encode({
        name,
        health_checks,
        transport_socket_matches,
        upstream_bind_config,
        load_assignment: { cluster_name: name, endpoints },
      })
      .finish();
    return { name, version: '', aliases: [], typeUrl: `type.googleapis.com/${CLUSTER}`, value };
  }
}

function intervalMs(interval: DecodedSpecifier['interval']): number {
  if (interval === null) return DEFAULT_INTERVAL_MS;
  const { nanos, seconds } = interval;
  const wholeSeconds = typeof seconds === 'number' ? seconds : seconds.toNumber();
  return Math.min(MAX_TIMER_MS, Math.max(MIN_INTERVAL_MS, wholeSeconds * 1000 + nanos / 1e6));
}
