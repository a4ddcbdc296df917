// Constraints that Baton adds to the API: values that can become part of headers, log lines or admin output must not contain
// line ends.

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
  'envoy.config.endpoint.v3.Endpoint': ['hostname'],
  'envoy.config.route.v3.VirtualHost': ['name'],
  'envoy.config.route.v3.Route': ['name'],
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

/** Characters that end a line, and the errors for them. */
const ENDS_LINE = /[\0\r\n]/;
export const ENDS_A_LINE = 'it must not contain a line end (CR, LF) or NUL, because it can become part of headers';
export const ENDS_A_TEXT_LINE =
  'it must not contain a line end (CR, LF) or NUL, because it becomes part of a line in the log and the admin interface';

export function endsLine(text: string): boolean {
  return ENDS_LINE.test(text);
}

/** Returns the error for a field's value, or undefined. */
export function brokenLineRule(message: string, field: string, value: unknown): string | undefined {
  if (typeof value !== 'string' || !endsLine(value)) return undefined;
  const has = (fields: Fields) => fields[message as keyof Messages]?.some((each) => each === field);
  if (has(IN_HEADS)) return ENDS_A_LINE;
  return has(IN_TEXTS) ? ENDS_A_TEXT_LINE : undefined;
}
