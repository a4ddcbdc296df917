// Clusters: unique names, and endpoints that fit the way they are discovered.

import { isIP } from 'node:net';
import type { Cluster, Endpoint } from '../generated/api.js';
import type { Path } from '../path.js';
import type { Problems } from '../problems.js';
import { checkUnique } from './names.js';

const CLUSTERS = ['static_resources', 'clusters'];

export function checkClusters(clusters: readonly Cluster[], problems: Problems): void {
  checkUnique(
    clusters.map((cluster) => cluster?.name),
    (index) => [...CLUSTERS, index, 'name'],
    'cluster',
    problems,
  );
  clusters.forEach((cluster, index) => {
    if (cluster) checkCluster(cluster, [...CLUSTERS, index], problems);
  });
}

function checkCluster(cluster: Cluster, path: Path, problems: Problems): void {
  const type = cluster.type ?? 'STATIC';
  const isTypeWrong = problems.has([...path, 'type']);
  if (!cluster.load_assignment) {
    if (!problems.has([...path, 'load_assignment']) && !isTypeWrong) {
      problems.error(path, `a cluster of type ${type} needs a load_assignment`);
    }
    return;
  }
  const endpoints = endpointsOf(cluster, path);
  for (const { endpoint, at } of endpoints) checkEndpoint(type, isTypeWrong, endpoint, at, problems);
  if (type === 'LOGICAL_DNS' && endpoints.length !== 1) {
    problems.error(
      [...path, 'load_assignment'],
      `LOGICAL_DNS clusters must have a single locality_lb_endpoint and a single lb_endpoint, found ${endpoints.length}`,
    );
  }
}

function endpointsOf(cluster: Cluster, path: Path): { readonly endpoint: Endpoint; readonly at: Path }[] {
  return (cluster.load_assignment?.endpoints ?? []).flatMap((locality, group) =>
    (locality?.lb_endpoints ?? []).flatMap((lb, index) => {
      const at = [...path, 'load_assignment', 'endpoints', group, 'lb_endpoints', index, 'endpoint'];
      return lb?.endpoint ? [{ endpoint: lb.endpoint, at }] : [];
    }),
  );
}

function checkEndpoint(type: string, isTypeWrong: boolean, endpoint: Endpoint, path: Path, problems: Problems): void {
  const { address } = endpoint;
  if (!address) {
    if (!problems.has([...path, 'address'])) problems.error(path, 'an endpoint needs an address');
    return;
  }
  if (type === 'STATIC') {
    const host = address.socket_address?.address;
    if (host === undefined || isIP(host) !== 0 || isTypeWrong) return;
    problems.error(
      [...path, 'address', 'socket_address', 'address'],
      `malformed IP address: ${host}. Consider setting the cluster's type to 'STRICT_DNS' or 'LOGICAL_DNS'`,
    );
  } else if (address.pipe) {
    problems.error([...path, 'address', 'pipe'], `a ${type} cluster resolves names; a pipe needs type STATIC`, 'key');
  }
}
