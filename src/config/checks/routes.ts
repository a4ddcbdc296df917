// Route configurations: unique virtual hosts and domains, and clusters that exist.

import type { Route, RouteAction, RouteConfiguration, VirtualHost } from '../generated/api.js';
import type { Path } from '../text/path.js';
import { checkClusterName } from './names/cluster-name.js';
import { checkUnique } from './names/unique-names.js';
import type { Surroundings } from './surroundings.js';

/** @param needsClusters whether clusters have to exist where validate_clusters does not say it */
export function checkRoutes(
  routes: RouteConfiguration,
  path: Path,
  around: Surroundings,
  needsClusters: boolean,
): void {
  const hosts = routes.virtual_hosts ?? [];
  const at = [...path, 'virtual_hosts'];
  const names = hosts.map((host) => host?.name);
  checkUnique(names, (index) => [...at, index, 'name'], 'virtual host', around.problems);
  checkDomains(hosts, (number) => [...at, number, 'domains'], around);
  const mustExist = routes.validate_clusters ?? needsClusters;
  hosts.forEach((host, number) => {
    if (host) checkHostRoutes(host, [...at, number], around, mustExist);
  });
}

/** A virtual host by itself. Its clusters need not exist. */
export function checkVirtualHost(host: VirtualHost, path: Path, around: Surroundings): void {
  checkDomains([host], () => [...path, 'domains'], around);
  checkHostRoutes(host, path, around, false);
}

function checkDomains(
  hosts: readonly VirtualHost[],
  pathOf: (number: number) => Path,
  { problems }: Surroundings,
): void {
  const domains = hosts.flatMap((host, number) =>
    (host?.domains ?? []).map((domain, index) => ({ domain, at: [...pathOf(number), index] })),
  );
  const lower = domains.map(({ domain }) => domain?.toLowerCase());
  checkUnique(lower, (index) => domains[index]!.at, 'domain', problems);
}

function checkHostRoutes(host: VirtualHost, path: Path, around: Surroundings, mustExist: boolean): void {
  host.routes?.forEach((route, index) => {
    if (route) checkRoute(route, [...path, 'routes', index], around, mustExist);
  });
}

function checkRoute(route: Route, path: Path, around: Surroundings, mustExist: boolean): void {
  const action = route.route;
  if (!action) return;
  const at = [...path, 'route'];
  checkClusterName(action.cluster, [...at, 'cluster'], around, mustExist);
  if (action.weighted_clusters) checkWeights(action, [...at, 'weighted_clusters'], around, mustExist);
  checkGrpcTimeouts(action, at, around);
}

/** Reports what would have no effect. */
function checkGrpcTimeouts(action: RouteAction, path: Path, { problems }: Surroundings): void {
  const { max_stream_duration: duration, max_grpc_timeout: max, grpc_timeout_offset: offset } = action;
  const refuse = (field: Path, why: string) => problems.error([...path, ...field], why, 'key');
  const maxAt = [...path, 'max_stream_duration', 'grpc_timeout_header_max'];
  const isAsked = duration?.grpc_timeout_header_max !== undefined || problems.has(maxAt);
  if (duration?.grpc_timeout_header_offset !== undefined && !isAsked) {
    const field = ['max_stream_duration', 'grpc_timeout_header_offset'];
    refuse(field, 'it has an effect with grpc_timeout_header_max only: set that, or leave it out');
  }
  if (max !== undefined && duration !== undefined) {
    refuse(['max_grpc_timeout'], 'it has no effect beside max_stream_duration: set grpc_timeout_header_max there');
  }
  if (offset !== undefined && max === undefined && !problems.has([...path, 'max_grpc_timeout'])) {
    refuse(['grpc_timeout_offset'], 'it has an effect with max_grpc_timeout only: set that, or leave it out');
  }
}

function checkWeights(action: RouteAction, path: Path, around: Surroundings, mustExist: boolean): void {
  const clusters = action.weighted_clusters?.clusters ?? [];
  clusters.forEach((cluster, index) => {
    checkClusterName(cluster?.name, [...path, 'clusters', index, 'name'], around, mustExist);
  });
  const sum = clusters.reduce((total, cluster) => total + (cluster?.weight ?? 0), 0);
  const wanted = action.weighted_clusters?.total_weight;
  if (clusters.length > 0 && sum === 0) {
    around.problems.error(path, 'the sum of the weights must be above 0');
  } else if (wanted !== undefined && wanted !== sum) {
    around.problems.error([...path, 'total_weight'], `the weights add up to ${sum}, not to ${wanted}`);
  }
}
