// Checks of dynamic resources across messages: the checks of a bootstrap, for a single resource.

import type {
  Cluster,
  ClusterLoadAssignment,
  Listener,
  RouteConfiguration,
  ScopedRouteConfiguration,
  VirtualHost,
} from '../generated/api.js';
import type { CheckContext } from './check-context.js';
import { checkCluster, checkEndpoints } from './clusters/clusters.js';
import { checkRouteFilters, checkVirtualHostFilters } from './listeners/http-filters.js';
import { checkListener } from './listeners/listeners.js';
import { checkScope } from './listeners/manager-routes.js';
import { checkExtensionNames } from './names/extension-names.js';
import { checkRoutes, checkVirtualHost } from './routes.js';

/**
 * Checks a resource whose parts are valid individually. `name`: the full name of its message. Other messages need no check
 * here.
 */
export function checkResource(name: string, message: unknown, context: CheckContext): void {
  context.problems.checking([], () => CHECKS[name]?.(message as never, context));
}

const CHECKS: { readonly [name: string]: (message: never, context: CheckContext) => void } = {
  'envoy.config.listener.v3.Listener': (listener: Listener, context) => checkListener(listener, [], context),
  'envoy.config.cluster.v3.Cluster': (cluster: Cluster, context) => {
    checkCluster(cluster, [], context.catalog, context.problems);
  },
  'envoy.config.endpoint.v3.ClusterLoadAssignment': (assignment: ClusterLoadAssignment, { problems }) =>
    checkEndpoints(assignment, [], problems),
  'envoy.config.route.v3.RouteConfiguration': (routes: RouteConfiguration, context) => {
    checkRouteFilters(routes, [], context, undefined);
    checkRoutes(routes, [], context, false);
    checkExtensionNames(routes, [], context, false);
  },
  'envoy.config.route.v3.ScopedRouteConfiguration': (scope: ScopedRouteConfiguration, context) =>
    checkScope(scope, [], context, undefined),
  'envoy.config.route.v3.VirtualHost': (host: VirtualHost, context) => {
    checkVirtualHostFilters(host, [], context);
    checkVirtualHost(host, [], context);
  },
};
