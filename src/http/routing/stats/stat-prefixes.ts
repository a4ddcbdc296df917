// The scopes of stats that a route configuration asks for: those of its virtual clusters, and of its routes with a stat_prefix.

import { hostRoutes } from '../../../config/fields/host-routes.js';
import type { RouteConfiguration } from '../../../config/generated/api.js';
import { RouteStats } from '../../../stats/layouts/route.js';
import { scopePrefix } from '../../../stats/scope-prefix.js';
import type { ScopeRequest } from '../../../stats/store.js';

/** The virtual cluster of requests that match no other one of their virtual host. */
export const OTHER = 'other';

export function virtualClusterPrefix(virtualHost: string, name: string): string {
  return scopePrefix(`vhost.${virtualHost}.vcluster.${name}.`);
}

export function routePrefix(virtualHost: string, statPrefix: string): string {
  return scopePrefix(`vhost.${virtualHost}.route.${statPrefix}.`);
}

/** Returns each scope of `config` once. */
export function routeStatScopes(config: RouteConfiguration): ScopeRequest[] {
  const prefixes = new Set<string>();
  for (const virtualHost of config.virtual_hosts ?? []) {
    const { name: host = '', virtual_clusters: clusters = [] } = virtualHost;
    for (const { name = '' } of clusters) prefixes.add(virtualClusterPrefix(host, name));
    if (clusters.length > 0) prefixes.add(virtualClusterPrefix(host, OTHER));
    for (const { route } of hostRoutes(virtualHost))
      if (route.stat_prefix) prefixes.add(routePrefix(host, route.stat_prefix));
  }
  return Array.from(prefixes, (prefix) => ({ prefix, layout: RouteStats }));
}
