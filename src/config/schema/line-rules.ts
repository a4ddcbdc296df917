// Constraints that Baton adds to the API: values that can become part of headers, log lines or admin output must not contain
// control characters, which end lines, make headers invalid, and control terminals.

import type { Messages } from '../generated/api.js';

type Fields = { readonly [N in keyof Messages]?: readonly (keyof Messages[N])[] };

/**
 * Become part of headers: by auto_host_rewrite, by operators such as %ROUTE_NAME%, as the name of this server, or as header
 * values.
 */
const IN_HEADS: Fields = {
  'envoy.config.core.v3.Node': ['id', 'cluster'],
  'envoy.config.core.v3.Pipe': ['path'],
  'envoy.config.core.v3.EnvoyInternalAddress': ['server_listener_name', 'endpoint_id'],
  'envoy.config.cluster.v3.Cluster': ['name', 'alt_stat_name'],
  'envoy.config.route.v3.RedirectAction': ['host_redirect', 'path_redirect', 'prefix_rewrite', 'scheme_redirect'],
  'envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager': ['server_name', 'via'],
  'envoy.config.endpoint.v3.Endpoint': ['hostname'],
  'envoy.config.route.v3.VirtualHost': ['name'],
  'envoy.config.route.v3.Route': ['name'],
  'envoy.config.route.v3.RouteConfiguration': ['name'],
  'envoy.config.route.v3.VirtualCluster': ['name'],
  'envoy.config.listener.v3.FilterChain': ['name'],
  'envoy.config.route.v3.CorsPolicy': ['allow_methods', 'allow_headers', 'expose_headers', 'max_age'],
  'envoy.extensions.filters.http.cors.v3.CorsPolicy': ['allow_methods', 'allow_headers', 'expose_headers', 'max_age'],
};

/** Become part of the text output of /listeners, /clusters and /stats, as do those in headers. */
const IN_TEXTS: Fields = {
  'envoy.service.discovery.v3.DiscoveryResponse': ['version_info'],
  'envoy.config.core.v3.Locality': ['region', 'zone', 'sub_zone'],
  'envoy.config.cluster.v3.Cluster.EdsClusterConfig': ['service_name'],
  'envoy.config.listener.v3.Listener': ['name'],
};

/** Control characters and the line ends of Unicode, and the errors for them. */
const BREAKS_LINE = /[\0-\x1f\x7f-\x9f\u2028\u2029]/;
export const BREAKS_A_HEADER =
  'it must not contain a control character, such as a line end (CR, LF) or NUL, because it can become part of headers';
export const BREAKS_A_LINE =
  'it must not contain a control character, such as a line end (CR, LF) or NUL, because it becomes part of a line in the log and the admin interface';

export function breaksLine(text: string): boolean {
  return BREAKS_LINE.test(text);
}

/** Returns the error for a field's value, or undefined. */
export function brokenLineRule(message: string, field: string, value: unknown): string | undefined {
  if (typeof value !== 'string' || !breaksLine(value)) return undefined;
  const has = (fields: Fields) => fields[message as keyof Messages]?.some((each) => each === field);
  if (has(IN_HEADS)) return BREAKS_A_HEADER;
  return has(IN_TEXTS) ? BREAKS_A_LINE : undefined;
}
