// The constraints that Baton adds to those of the API: texts that can become part of a message's head end no line of it.

import type { Messages } from '../generated/api.js';

/** They get there by auto_host_rewrite, by operators such as %ROUTE_NAME%, or as the name of this server. */
const IN_HEADS: { readonly [N in keyof Messages]?: readonly (keyof Messages[N])[] } = {
  'envoy.config.core.v3.Node': ['id', 'cluster'],
  'envoy.config.core.v3.Pipe': ['path'],
  'envoy.config.cluster.v3.Cluster': ['name', 'alt_stat_name'],
  'envoy.config.endpoint.v3.Endpoint': ['hostname'],
  'envoy.config.route.v3.VirtualHost': ['name'],
  'envoy.config.route.v3.Route': ['name'],
};

/** What no line of a head can hold, and what is said of it. */
const ENDS_LINE = /[\0\r\n]/;
export const ENDS_A_LINE = "it must not hold a line end (CR, LF) or NUL, as it can become part of a message's head";

/** What the value of a message's field breaks, or undefined. */
export function brokenHeadRule(message: string, field: string, value: unknown): string | undefined {
  if (typeof value !== 'string' || !ENDS_LINE.test(value)) return undefined;
  const fields: readonly string[] | undefined = IN_HEADS[message as keyof Messages];
  return fields?.includes(field) ? ENDS_A_LINE : undefined;
}
