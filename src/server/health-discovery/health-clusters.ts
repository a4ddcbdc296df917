// The clusters of the current specifier, and the report about them.

import { ProtobufWriter } from '../../common/protobuf-writer.js';
import type { Cluster } from '../../config/generated/api.js';
import { encodeJson, loadMessages } from '../../config/schema/messages.js';
import { type Address, AddressKind, endpointIdOf, internalNameOf } from '../../io/addresses/address.js';
import { HealthFlag } from '../../upstream/hosts/health-flags.js';
import type { ResolvedEndpoint } from '../../upstream/hosts/host.js';
import type { Resource } from '../../xds/resource.js';
import { HealthCluster, type HealthClusterContext, type HostState } from './health-cluster.js';

/** Clusters created, or hosts reported, in one step: some milliseconds of work. */
const CLUSTERS_PER_STEP = 64;
const HOSTS_PER_STEP = 500;

const HOST = 'envoy.service.health.v3.EndpointHealth';
const LOCALITY = 'envoy.config.core.v3.Locality';

export class HealthClusters {
  readonly #context: HealthClusterContext;
  readonly #types = loadMessages(HOST, LOCALITY);
  #clusters = new Map<string, HealthCluster>();
  #isClosed = false;

  constructor(context: HealthClusterContext) {
    this.#context = context;
  }

  /**
   * Replaces the clusters in steps. Those whose configuration is the same object go on, and of those that differ only in their endpoints the
   * remaining hosts. Throws, with nothing changed, when one cannot be used.
   */
  *replace(resources: readonly Resource<Cluster>[]): Generator<void, void> {
    const before = this.#clusters;
    const next = new Map<string, HealthCluster>();
    const created: HealthCluster[] = [];
    const changed: (() => void)[] = [];
    let work = 0;
    try {
      for (const { message, name } of resources) {
        const former = before.get(name);
        if (former?.hasSameChecks(message) === true) {
          if (former.config !== message) changed.push(former.prepareHosts(message));
          next.set(name, former);
        } else {
          const cluster = new HealthCluster(message, former, this.#context);
          created.push(cluster);
          next.set(name, cluster);
        }
        if (++work % CLUSTERS_PER_STEP !== 0) continue;
        yield;
        if (this.#isClosed) break;
      }
    } catch (error) {
      for (const cluster of created) cluster.close();
      throw error;
    }
    if (this.#isClosed) {
      for (const cluster of created) cluster.close();
      return;
    }
    this.#clusters = next;
    for (const change of changed) {
      change();
      if (++work % CLUSTERS_PER_STEP === 0) yield;
    }
    for (const [name, cluster] of before) {
      if (next.get(name) === cluster) continue;
      cluster.close();
      if (++work % CLUSTERS_PER_STEP === 0) yield;
    }
  }

  /** Returns an encoded EndpointHealthResponse. */
  *report(): Generator<void, Uint8Array> {
    const report = new ProtobufWriter();
    let work = 0;
    for (const [name, cluster] of this.#clusters) {
      const writer = new ProtobufWriter();
      writer.string(1, name);
      for (const [locality, hosts] of cluster.localities) {
        const group = new ProtobufWriter();
        group.bytes(1, encodeJson(this.#types[LOCALITY], locality));
        for (const host of hosts) {
          const bytes = this.#host(cluster, host);
          group.bytes(2, bytes);
          // The old list of all hosts, which Envoy sends too.
          report.bytes(1, bytes);
          if (++work % HOSTS_PER_STEP === 0) yield;
        }
        writer.bytes(2, group.copy());
      }
      report.bytes(2, writer.copy());
      if (++work % HOSTS_PER_STEP === 0) yield;
    }
    return report.copy();
  }

  close(): void {
    this.#isClosed = true;
    for (const cluster of this.#clusters.values()) cluster.close();
    this.#clusters.clear();
  }

  #host(cluster: HealthCluster, endpoint: ResolvedEndpoint): Uint8Array {
    const state = cluster.stateOf(endpoint);
    return encodeJson(this.#types[HOST], {
      endpoint: { address: addressOf(endpoint.address) },
      health_status: statusOf(state),
      ...(state.status === 0 ? {} : { health_metadata: { http_status_code: state.status } }),
    });
  }
}

/** As in Envoy, a degraded host is unhealthy for the service. */
const NOT_HEALTHY = HealthFlag.FailedActiveHealthCheck | HealthFlag.DegradedActiveHealthCheck;

function statusOf({ flags }: HostState): string {
  if ((flags & NOT_HEALTHY) === 0) return 'HEALTHY';
  return flags & HealthFlag.ActiveHealthCheckTimeout ? 'TIMEOUT' : 'UNHEALTHY';
}

function addressOf({ ip, kind, path, port }: Address): object {
  if (kind === AddressKind.Unix) return { pipe: { path } };
  if (kind === AddressKind.Internal)
    return { envoy_internal_address: { server_listener_name: internalNameOf(path), endpoint_id: endpointIdOf(path) } };
  return { socket_address: { address: ip, port_value: port } };
}
