// Route configurations: unique domains, existing clusters.

import { hostRoutes } from '../fields/host-routes.js';
import type {
  Route,
  RouteAction,
  RouteAction_RequestMirrorPolicy,
  RouteConfiguration,
  VirtualHost,
} from '../generated/api.js';
import type { Path } from '../text/path.js';
import type { CheckContext } from './check-context.js';
import { checkClusterName } from './names/cluster-name.js';
import { checkUnique } from './names/unique-names.js';
import { unreachableRoutes } from './unreachable-routes.js';

/** @param needsClusters default of validate_clusters */
export function checkRoutes(
  routes: RouteConfiguration,
  path: Path,
  context: CheckContext,
  needsClusters: boolean,
): void {
  const hosts = routes.virtual_hosts ?? [];
  const at = [...path, 'virtual_hosts'];
  checkDomains(hosts, (number) => [...at, number, 'domains'], context);
  const mustExist = routes.validate_clusters ?? needsClusters;
  checkMirrors(routes.request_mirror_policies, path, context, mustExist);
  hosts.forEach((host, number) => {
    if (host) checkHostRoutes(host, [...at, number], context, mustExist);
  });
}

/** Checks a single virtual host. Its clusters need not exist. */
export function checkVirtualHost(host: VirtualHost, path: Path, context: CheckContext): void {
  checkDomains([host], () => [...path, 'domains'], context);
  checkHostRoutes(host, path, context, false);
}

function checkDomains(
  hosts: readonly VirtualHost[],
  pathOf: (number: number) => Path,
  { problems }: CheckContext,
): void {
  const domains = hosts.flatMap((host, number) =>
    (host?.domains ?? []).map((domain, index) => ({ domain, at: [...pathOf(number), index] })),
  );
  const lower = domains.map(({ domain }) => domain?.toLowerCase());
  checkUnique(lower, (index) => domains[index]!.at, 'domain', problems);
}

function checkHostRoutes(host: VirtualHost, path: Path, context: CheckContext, mustExist: boolean): void {
  checkMirrors(host.request_mirror_policies, path, context, mustExist);
  for (const { path: inner, route } of hostRoutes(host)) checkRoute(route, [...path, ...inner], context, mustExist);
  if (host.matcher !== undefined && (host.routes?.length ?? 0) > 0)
    context.problems.error([...path, 'matcher'], 'cannot set both matcher and routes on virtual host');
  // Resources that arrive later are not for a person to read.
  if (context.clusters !== undefined) warnOfUnreachable(host, path, context);
}

function warnOfUnreachable({ routes = [] }: VirtualHost, path: Path, { problems }: CheckContext): void {
  for (const { index, taker } of unreachableRoutes(routes)) {
    const name = routes[taker]?.name ? ` '${routes[taker].name}'` : '';
    problems.warn(
      [...path, 'routes', index, 'match'],
      `no request reaches this route: routes[${taker}]${name} takes them all`,
    );
  }
}

function checkRoute(route: Route, path: Path, context: CheckContext, mustExist: boolean): void {
  const action = route.route;
  if (!action) return;
  const at = [...path, 'route'];
  checkClusterName(action.cluster, [...at, 'cluster'], context, mustExist);
  checkMirrors(action.request_mirror_policies, at, context, mustExist);
  if (action.weighted_clusters) checkWeights(action, [...at, 'weighted_clusters'], context, mustExist);
  checkGrpcTimeouts(action, at, context);
}

function checkMirrors(
  policies: readonly RouteAction_RequestMirrorPolicy[] | undefined,
  path: Path,
  context: CheckContext,
  mustExist: boolean,
): void {
  policies?.forEach((policy, index) => {
    const at = [...path, 'request_mirror_policies', index, 'cluster'];
    checkClusterName(policy?.cluster, at, context, mustExist);
  });
}

/** Reports timeouts without an effect. */
function checkGrpcTimeouts(action: RouteAction, path: Path, { problems }: CheckContext): void {
  const { max_stream_duration: duration, max_grpc_timeout: max, grpc_timeout_offset: offset } = action;
  const refuse = (field: Path, why: string) => problems.error([...path, ...field], why, 'key');
  const maxAt = [...path, 'max_stream_duration', 'grpc_timeout_header_max'];
  const isAsked = duration?.grpc_timeout_header_max !== undefined || problems.has(maxAt);
  if (duration?.grpc_timeout_header_offset !== undefined && !isAsked) {
    const field = ['max_stream_duration', 'grpc_timeout_header_offset'];
    refuse(field, 'it has an effect with grpc_timeout_header_max only: set that, or leave it out');
  }
  if (max !== undefined && duration !== undefined) {
    refuse(
      ['max_grpc_timeout'],
      'it has no effect because max_stream_duration is set: set grpc_timeout_header_max there',
    );
  }
  if (offset !== undefined && max === undefined && !problems.has([...path, 'max_grpc_timeout'])) {
    refuse(['grpc_timeout_offset'], 'it has an effect with max_grpc_timeout only: set that, or leave it out');
  }
}

function checkWeights(action: RouteAction, path: Path, context: CheckContext, mustExist: boolean): void {
  const clusters = action.weighted_clusters?.clusters ?? [];
  clusters.forEach((cluster, index) => {
    checkClusterName(cluster?.name, [...path, 'clusters', index, 'name'], context, mustExist);
  });
  const sum = clusters.reduce((total, cluster) => total + (cluster?.weight ?? 0), 0);
  const expected = action.weighted_clusters?.total_weight;
  if (clusters.length > 0 && sum === 0) {
    context.problems.error(path, 'the sum of the weights must be above 0');
  } else if (expected !== undefined && expected !== sum) {
    context.problems.warn([...path, 'total_weight'], `it has no effect: the weights add up to ${sum}`);
  }
}
