// Route configurations: unique virtual hosts and domains, and clusters that exist.

import { didYouMean } from '../../common/suggest.js';
import type { Route, RouteAction, RouteConfiguration, VirtualHost } from '../generated/api.js';
import type { Path } from '../text/path.js';
import { checkUnique } from './names.js';
import type { Surroundings } from './surroundings.js';

export function checkRoutes(routes: RouteConfiguration, path: Path, around: Surroundings): void {
  const hosts = routes.virtual_hosts ?? [];
  const at = [...path, 'virtual_hosts'];
  const names = hosts.map((host) => host?.name);
  checkUnique(names, (index) => [...at, index, 'name'], 'virtual host', around.problems);
  checkDomains(hosts, at, around);
  if (routes.validate_clusters === false) return;
  hosts.forEach((host, number) => {
    host?.routes?.forEach((route, index) => {
      if (route) checkRoute(route, [...at, number, 'routes', index], around);
    });
  });
}

/** Reports a route's cluster that no cluster has as its name, or that traffic cannot go to. */
export function checkClusterName(name: string | undefined, path: Path, around: Surroundings): void {
  const { clusters, http2Clusters, problems } = around;
  if (name !== undefined && http2Clusters.has(name)) {
    problems.error(path, `cluster '${name}' speaks HTTP/2, which is implemented for gRPC calls of Baton's own only`);
  }
  if (name === undefined || name === '' || clusters.has(name)) return;
  problems.error(path, `unknown cluster '${name}'${didYouMean(name, clusters)}`);
}

function checkDomains(hosts: readonly VirtualHost[], path: Path, { problems }: Surroundings): void {
  const domains = hosts.flatMap((host, number) =>
    (host?.domains ?? []).map((domain, index) => ({ domain, at: [...path, number, 'domains', index] })),
  );
  const lower = domains.map(({ domain }) => domain?.toLowerCase());
  checkUnique(lower, (index) => domains[index]!.at, 'domain', problems);
}

function checkRoute(route: Route, path: Path, around: Surroundings): void {
  const action = route.route;
  if (!action) return;
  const at = [...path, 'route'];
  checkClusterName(action.cluster, [...at, 'cluster'], around);
  if (action.weighted_clusters) checkWeights(action, [...at, 'weighted_clusters'], around);
}

function checkWeights(action: RouteAction, path: Path, around: Surroundings): void {
  const clusters = action.weighted_clusters?.clusters ?? [];
  clusters.forEach((cluster, index) => {
    checkClusterName(cluster?.name, [...path, 'clusters', index, 'name'], around);
  });
  const sum = clusters.reduce((total, cluster) => total + (cluster?.weight ?? 0), 0);
  const wanted = action.weighted_clusters?.total_weight;
  if (clusters.length > 0 && sum === 0) {
    around.problems.error(path, 'the sum of the weights must be above 0');
  } else if (wanted !== undefined && wanted !== sum) {
    around.problems.error([...path, 'total_weight'], `the weights add up to ${sum}, not to ${wanted}`);
  }
}
