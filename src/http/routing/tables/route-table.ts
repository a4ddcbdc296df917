// Finds the route of a request: the virtual host by its authority, then its first matching route.
//
// A table is built once for each configuration and thread. Matching creates strings only for regular expressions.

import type { StreamInfo } from '../../../access-log/stream/stream-info.js';
import { type HeaderKey, headerKey, knownHeader } from '../../../common/text/header-names.js';
import { runSync } from '../../../common/time/next-turn.js';
import type { RouteConfiguration, VirtualHost_TlsRequirementType } from '../../../config/generated/api.js';
import type { ConnectionSecurity } from '../../../io/tls/connection-security.js';
import { checkRemovable } from '../../headers/field-name.js';
import type { HeaderBlock } from '../../headers/header-block.js';
import type { Route } from '../actions/route.js';
import { DomainTable } from './domain-table.js';
import type { MissingHost, OnDemandHosts } from './on-demand-hosts.js';
import {
  type BuiltVirtualHost,
  buildVirtualHosts,
  type ClusterResolver,
  type RouteTableOptions,
} from './route-table-builder.js';

export { FILTER_OFF, FILTER_ON, type RouteField, type RouteFilter } from './route-levels.js';
export type { BuiltVirtualHost, ClusterResolver, RouteTableOptions } from './route-table-builder.js';

/**
 * Builds the table of a RouteConfiguration.
 * @throws BatonError CONFIG_INVALID or REGEX_INVALID, with the path within the configuration as `where`
 */
export function buildRouteTable<C>(
  config: RouteConfiguration,
  resolveCluster: ClusterResolver<C>,
  options: RouteTableOptions<C> = {},
): RouteTable<C> {
  return runSync(buildRouteTableInSteps(config, resolveCluster, options));
}

/** Builds a table one route per step, so that the caller can let other work run between steps. */
export function* buildRouteTableInSteps<C>(
  config: RouteConfiguration,
  resolveCluster: ClusterResolver<C>,
  options: RouteTableOptions<C>,
): Generator<void, RouteTable<C>> {
  const domains = new DomainTable<VirtualHost<C>>();
  yield* buildVirtualHosts(config, resolveCluster, options, domains, (built) => new VirtualHost(built));
  const internalOnly = (config.internal_only_headers ?? []).map((name, index) => {
    checkRemovable(name, `internal_only_headers[${index}]`);
    return headerKey(name);
  });
  const ignoresPort = config.ignore_port_in_host_matching ?? false;
  return new RouteTable(config.name ?? '', domains, ignoresPort, internalOnly, options.onDemandHosts);
}

export class RouteTable<C> {
  /** The name of the RouteConfiguration. */
  readonly name: string;
  /** Headers to remove from external requests, for ForwardingRules.apply(). */
  readonly internalOnlyHeaders: readonly HeaderKey[];
  readonly #domains: DomainTable<VirtualHost<C>>;
  readonly #ignoresPort: boolean;
  readonly #onDemandHosts: OnDemandHosts | undefined;

  /** Called by buildRouteTable(). */
  constructor(
    name: string,
    domains: DomainTable<VirtualHost<C>>,
    ignoresPort: boolean,
    internalOnlyHeaders: readonly HeaderKey[],
    onDemandHosts: OnDemandHosts | undefined,
  ) {
    this.name = name;
    this.internalOnlyHeaders = internalOnlyHeaders;
    this.#domains = domains;
    this.#ignoresPort = ignoresPort;
    this.#onDemandHosts = onDemandHosts;
  }

  /**
   * Returns the route of a request, or undefined (404) if no virtual host or none of its routes matches.
   * @param random 0 … 2^32 - 1, for fractions and weights
   * @param security of the client's connection; undefined without TLS
   * @param info of the request, for the choice of a weighted cluster by its hash
   */
  match(headers: HeaderBlock, random: number, security?: ConnectionSecurity, info?: StreamInfo): Route<C> | undefined {
    const host = this.#virtualHost(headers);
    return host?.match(headers, random, security, info);
  }

  /** Returns the virtual host to request on demand; undefined if the table has one for the request, or has no source for others. */
  missingHost(headers: HeaderBlock): MissingHost | undefined {
    const hosts = this.#onDemandHosts;
    if (hosts === undefined || this.#virtualHost(headers) !== undefined) return undefined;
    const index = headers.findId(HOST);
    if (index < 0) return undefined;
    const start = headers.valueStart(index);
    let end = headers.valueEnd(index);
    if (this.#ignoresPort) end = hostEnd(headers.memory.bytes, start, end);
    return end === start ? undefined : { host: headers.memory.text(start, end).toLowerCase(), hosts };
  }

  #virtualHost(headers: HeaderBlock): VirtualHost<C> | undefined {
    const domains = this.#domains;
    if (domains.isCatchAll) return domains.catchAll;
    const index = headers.findId(HOST);
    if (index < 0) return undefined;
    const { bytes } = headers.memory;
    const start = headers.valueStart(index);
    let end = headers.valueEnd(index);
    if (this.#ignoresPort) end = hostEnd(bytes, start, end);
    return domains.find(bytes, start, end);
  }
}

/** The routes of one virtual host, in order. */
class VirtualHost<C> {
  readonly #routes: BuiltVirtualHost<C>['routes'];
  readonly #matcher: BuiltVirtualHost<C>['matcher'];
  readonly #requireTls: VirtualHost_TlsRequirementType;
  readonly #httpsRedirect: Route<C>;

  constructor(built: BuiltVirtualHost<C>) {
    this.#routes = built.routes;
    this.#matcher = built.matcher;
    this.#requireTls = built.requireTls;
    this.#httpsRedirect = built.httpsRedirect;
  }

  match(
    headers: HeaderBlock,
    random: number,
    security: ConnectionSecurity | undefined,
    info: StreamInfo | undefined,
  ): Route<C> | undefined {
    if (this.#requireTls !== 'NONE' && mustBecomeHttps(this.#requireTls, headers)) return this.#httpsRedirect;
    const { memory } = headers;
    const routes = this.#matcher === undefined ? this.#routes : (this.#matcher.find(headers, info) ?? this.#routes);
    for (let i = 0; i < routes.length; i++) {
      const entry = routes[i]!;
      if (!entry.matches(memory, headers, random, security)) continue;
      const route = entry.route(headers, random, info);
      if (route !== undefined) return route;
    }
    return undefined;
  }
}

/**
 * Returns whether a virtual host redirects a request to HTTPS. Decides by x-forwarded-proto, which has the scheme of the client's
 * connection to the first proxy.
 */
export function mustBecomeHttps(requireTls: VirtualHost_TlsRequirementType, headers: HeaderBlock): boolean {
  if (requireTls === 'NONE') return false;
  const index = headers.findValue(FORWARDED_PROTO);
  if (index >= 0 && isText(headers, index, 'https')) return false;
  if (requireTls === 'ALL') return true;
  const internal = headers.findValue(ENVOY_INTERNAL);
  return internal < 0 || !isText(headers, internal, 'true');
}

const HOST = knownHeader('host');
const FORWARDED_PROTO = headerKey('x-forwarded-proto');
const ENVOY_INTERNAL = headerKey('x-envoy-internal');
const COLON = 58;
const BRACKET = 93;

/** Returns where the authority of a request is in its memory, without the port if that is ignored; undefined if it has none. */
export function hostOf(
  headers: HeaderBlock,
  ignoresPort: boolean,
): { readonly start: number; readonly end: number } | undefined {
  const index = headers.findId(HOST);
  if (index < 0) return undefined;
  const start = headers.valueStart(index);
  const end = headers.valueEnd(index);
  return { start, end: ignoresPort ? hostEnd(headers.memory.bytes, start, end) : end };
}

/** Returns where the authority ends without its port. */
function hostEnd(bytes: Uint8Array, start: number, end: number): number {
  for (let at = end - 1; at >= start; at--) {
    if (bytes[at] === COLON) return at;
    if (bytes[at] === BRACKET) return end;
  }
  return end;
}

function isText(headers: HeaderBlock, index: number, text: string): boolean {
  const start = headers.valueStart(index);
  if (headers.valueEnd(index) - start !== text.length) return false;
  for (let i = 0; i < text.length; i++) if (headers.memory.bytes[start + i] !== text.charCodeAt(i)) return false;
  return true;
}
