// The constraints that Baton adds to those of the API: texts that can become part of a line, of a message's head or of what
// people and their tools read, do not end it.

import type { Messages } from '../generated/api.js';

type Fields = { readonly [N in keyof Messages]?: readonly (keyof Messages[N])[] };

/** They get there by auto_host_rewrite, by operators such as %ROUTE_NAME%, as the name of this server, or as fields. */
const IN_HEADS: Fields = {
  'envoy.config.core.v3.Node': ['id', 'cluster'],
  'envoy.config.core.v3.Pipe': ['path'],
  'envoy.config.cluster.v3.Cluster': ['name', 'alt_stat_name'],
  'envoy.config.endpoint.v3.Endpoint': ['hostname'],
  'envoy.config.route.v3.VirtualHost': ['name'],
  'envoy.config.route.v3.Route': ['name'],
  'envoy.config.route.v3.CorsPolicy': ['allow_methods', 'allow_headers', 'expose_headers', 'max_age'],
  'envoy.extensions.filters.http.cors.v3.CorsPolicy': ['allow_methods', 'allow_headers', 'expose_headers', 'max_age'],
};

/** They get there in /listeners, /clusters and /stats as text. Those in heads do, too. */
const IN_TEXTS: Fields = {
  'envoy.service.discovery.v3.DiscoveryResponse': ['version_info'],
  'envoy.config.core.v3.Locality': ['region', 'zone', 'sub_zone'],
  'envoy.config.cluster.v3.Cluster.EdsClusterConfig': ['service_name'],
  'envoy.config.listener.v3.Listener': ['name'],
};

/** What no line can hold, and what is said of it. */
const ENDS_LINE = /[\0\r\n]/;
export const ENDS_A_LINE = "it must not hold a line end (CR, LF) or NUL, as it can become part of a message's head";
export const ENDS_A_TEXT_LINE =
  'it must not hold a line end (CR, LF) or NUL, as it becomes part of a line in the log and the admin interface';

export function endsLine(text: string): boolean {
  return ENDS_LINE.test(text);
}

/** What the value of a message's field breaks, or undefined. */
export function brokenLineRule(message: string, field: string, value: unknown): string | undefined {
  if (typeof value !== 'string' || !endsLine(value)) return undefined;
  const has = (fields: Fields) => fields[message as keyof Messages]?.some((each) => each === field);
  if (has(IN_HEADS)) return ENDS_A_LINE;
  return has(IN_TEXTS) ? ENDS_A_TEXT_LINE : undefined;
}
