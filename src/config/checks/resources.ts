// What no single message can tell of a dynamic resource: the checks of a bootstrap, for one message that stands by itself.

import { speaksHttp2 } from '../fields/http-options.js';
import type {
  Cluster,
  ClusterLoadAssignment,
  Listener,
  RouteConfiguration,
  ScopedRouteConfiguration,
  VirtualHost,
} from '../generated/api.js';
import { checkCluster, checkEndpoints } from './clusters/clusters.js';
import { checkRouteFilters, checkVirtualHostFilters } from './listeners/http-filters.js';
import { checkListener } from './listeners/listeners.js';
import { checkScope } from './listeners/manager-routes.js';
import { checkNamedClusters } from './names/named-clusters.js';
import { checkRoutes, checkVirtualHost } from './routes.js';
import type { Surroundings } from './surroundings.js';

/** Checks a message whose parts are right each by itself. `name`: its full name; of others there is nothing to check here. */
export function checkResource(name: string, message: unknown, around: Surroundings): void {
  around.problems.checking([], () => CHECKS[name]?.(message as never, around));
}

const CHECKS: { readonly [name: string]: (message: never, around: Surroundings) => void } = {
  'envoy.config.listener.v3.Listener': (listener: Listener, around) => checkListener(listener, [], around),
  'envoy.config.cluster.v3.Cluster': (cluster: Cluster, around) => {
    checkCluster(cluster, [], around.catalog, around.problems);
    if (!speaksHttp2(cluster)) return;
    const reason = "it speaks HTTP/2, which is implemented for gRPC calls of Baton's own only, to static clusters";
    around.problems.error([], reason);
  },
  'envoy.config.endpoint.v3.ClusterLoadAssignment': (assignment: ClusterLoadAssignment, { problems }) =>
    checkEndpoints(assignment, [], problems),
  'envoy.config.route.v3.RouteConfiguration': (routes: RouteConfiguration, around) => {
    checkRouteFilters(routes, [], around, undefined);
    checkRoutes(routes, [], around, false);
    checkNamedClusters(routes, [], around, false);
  },
  'envoy.config.route.v3.ScopedRouteConfiguration': (scope: ScopedRouteConfiguration, around) =>
    checkScope(scope, [], around, undefined),
  'envoy.config.route.v3.VirtualHost': (host: VirtualHost, around) => {
    checkVirtualHostFilters(host, [], around);
    checkVirtualHost(host, [], around);
  },
};
