// The current endpoints of all clusters (envoy.admin.v3.EndpointsConfigDump).

import { addressJson, type JsonObject, LazyList } from '../../../admin/json.js';
import { shownPart } from '../../../config/schema/sensitive.js';
import { DEGRADED_FLAGS, HealthFlag, UNHEALTHY_FLAGS } from '../../../upstream/hosts/health-flags.js';
import type { KnownHost } from '../../../upstream/hosts/host-directory.js';
import { shown } from '../../../xds/dynamic-state.js';
import type { PrimaryCluster } from '../../clusters/version/primary-cluster.js';
import { any, byName, type Dump, mapped } from './dump.js';
import { statusFields, versionFields } from './state-fields.js';

const ASSIGNMENT = 'envoy.config.endpoint.v3.ClusterLoadAssignment';

export function endpointsDump(clusters: ReadonlyMap<string, PrimaryCluster>): Dump {
  const static_endpoint_configs = mapped(
    () => selected(clusters, false),
    (cluster) => ({ name: assignmentName(cluster), message: { endpoint_config: assignmentOf(cluster) } }),
  );
  const dynamic_endpoint_configs = mapped(
    () => selected(clusters, true),
    (cluster) => {
      const { assignment } = cluster.discovery;
      const message = {
        ...(assignment && versionFields(assignment)),
        endpoint_config: assignmentOf(cluster),
        ...(assignment && statusFields(ASSIGNMENT, assignment)),
      };
      return { name: assignmentName(cluster), message };
    },
  );
  return { message: 'EndpointsConfigDump', lists: { static_endpoint_configs, dynamic_endpoint_configs } };
}

/** Returns the clusters of the bootstrap, or of CDS. */
function selected(clusters: ReadonlyMap<string, PrimaryCluster>, isAddedViaApi: boolean): PrimaryCluster[] {
  const found = [...clusters.values()].filter(({ origin }) => origin.isAddedViaApi === isAddedViaApi);
  return byName(found, ({ spec }) => spec.name);
}

function assignmentName(cluster: PrimaryCluster): string {
  return cluster.edsServiceName || cluster.spec.name;
}

/** Returns the hosts in use as an assignment, not the assignment as received. */
function assignmentOf(cluster: PrimaryCluster): JsonObject {
  // Registers the sensitive parts of the configuration, which its hosts share.
  shown(cluster.config, cluster.origin.sensitive);
  const hosts = [...cluster.hosts];
  return any(ASSIGNMENT, {
    cluster_name: assignmentName(cluster),
    ...(hosts.length > 0 && { endpoints: localities(hosts) }),
    policy: policyOf(cluster),
  });
}

/** Returns the policy in effect, with the share of dropped requests as it is limited. */
function policyOf({ membership }: PrimaryCluster): object {
  const { drop, overprovisioning } = membership.snapshot.policy;
  const percentage = drop && { numerator: Math.round(drop.ratio * 1e6), denominator: 'MILLION' };
  return {
    ...(drop && { drop_overloads: [{ category: drop.category, drop_percentage: percentage }] }),
    overprovisioning_factor: overprovisioning,
  };
}

/** Returns envoy.config.endpoint.v3.LocalityLbEndpoints in order of priority. */
function localities(hosts: readonly KnownHost[]): object[] {
  const sorted = groupsOf(hosts).sort((a, b) => a[0]!.endpoint.priority - b[0]!.endpoint.priority);
  return sorted.map((group) => {
    const { priority, locality, localityWeight } = group[0]!.endpoint;
    return {
      locality: {
        region: locality.region || undefined,
        zone: locality.zone || undefined,
        sub_zone: locality.subZone || undefined,
      },
      lb_endpoints: new LazyList(() => lbEndpoints(group)),
      load_balancing_weight: localityWeight ?? 0,
      priority: priority || undefined,
    };
  });
}

/** Groups hosts by priority and locality. */
function groupsOf(hosts: readonly KnownHost[]): KnownHost[][] {
  const groups = new Map<string, KnownHost[]>();
  let last: KnownHost[] = [];
  for (const host of hosts) {
    if (!isSameGroup(last[0], host)) {
      const { priority, locality } = host.endpoint;
      const key = JSON.stringify([priority, locality.region, locality.zone, locality.subZone]);
      const known = groups.get(key);
      last = known ?? [];
      if (known === undefined) groups.set(key, last);
    }
    last.push(host);
  }
  return [...groups.values()];
}

/** Returns whether `first` and the host share their locality object and priority, a fast test for the same group. */
function isSameGroup(first: KnownHost | undefined, { endpoint: { locality, priority } }: KnownHost): boolean {
  return first !== undefined && first.endpoint.locality === locality && first.endpoint.priority === priority;
}

function* lbEndpoints(hosts: readonly KnownHost[]): Generator<JsonObject, void> {
  for (const host of hosts) yield lbEndpoint(host);
}

function lbEndpoint({ endpoint, healthFlags }: KnownHost): JsonObject {
  const { address, hostname, metadata, weight } = endpoint;
  return {
    endpoint: { address: addressJson(address), hostname: hostname || undefined },
    health_status: healthStatus(healthFlags),
    metadata: metadata && (shownPart(metadata) as JsonObject),
    load_balancing_weight: weight,
  };
}

function healthStatus(flags: number): string {
  if (flags & HealthFlag.EdsStatusDraining) return 'DRAINING';
  if (flags & UNHEALTHY_FLAGS) return 'UNHEALTHY';
  return flags & DEGRADED_FLAGS ? 'DEGRADED' : 'HEALTHY';
}
