// The scopes of stats that a route configuration asks for: those of its virtual clusters, and of its routes with a stat_prefix.

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
  for (const { name: host = '', routes = [], virtual_clusters: clusters = [] } of config.virtual_hosts ?? []) {
    for (const { name = '' } of clusters) prefixes.add(virtualClusterPrefix(host, name));
    if (clusters.length > 0) prefixes.add(virtualClusterPrefix(host, OTHER));
    for (const { stat_prefix: own } of routes) if (own) prefixes.add(routePrefix(host, own));
  }
  return Array.from(prefixes, (prefix) => ({ prefix, layout: RouteStats }));
}
