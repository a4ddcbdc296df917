// Converts the configuration of an HTTP connection manager to the options of its connections and streams on a worker.

import type { AccessLogger } from '../../../../access-log/access-logger.js';
import { headerKey } from '../../../../common/text/header-names.js';
import { durationMs } from '../../../../common/time/duration.js';
import { MAX_TIMER_MS } from '../../../../common/time/max-timer.js';
import type { HttpConnectionManager, HttpFilter } from '../../../../config/generated/api.js';
import { nameCase } from '../../../../http/codec/name-case.js';
import { closeParts } from '../../../../http/connection-manager.js';
import type { TerminalFilterFactory } from '../../../../http/filters/filter.js';
import { NO_FILTERS } from '../../../../http/filters/no-filters.js';
import { http2Options } from '../../../../http/h2/options.js';
import { earlyMutations } from '../../../../http/headers/early-mutations.js';
import { ForwardingRules } from '../../../../http/headers/edge/forwarding-headers.js';
import { ResponseHeaders, ServerHeader } from '../../../../http/headers/edge/response-headers.js';
import { HeaderLine } from '../../../../http/headers/header-line.js';
import { LocalReplyRules } from '../../../../http/local-replies/local-reply-rules.js';
import type { ChainedFilter, ConnectionManagerOptions, RouteSource } from '../../../../http/manager-context.js';
import { HostNormalizer } from '../../../../http/normalization/host-normalization.js';
import { PathNormalizer } from '../../../../http/normalization/path-normalization.js';
import { upgradeTypes } from '../../../../http/routing/actions/upgrade-types.js';
import type { RequestTracing } from '../../../../http/tracing/request-tracing.js';
import { createFactory } from '../../../create-factory.js';
import type { ChainIdentity, HttpChainPlace, RouteFilters, WorkerContext } from '../../../factories.js';
import { createAccessLoggers } from '../../../registry.js';
import { chainFilters } from './chain-filters.js';
import { DiscoveredFilter } from './discovered-filter.js';
import { InlineRoutes } from './inline-routes.js';
import { routeFilters } from './route-filters.js';
import { createTracing } from './tracing.js';

/** Defaults of the API where 0 has another meaning. */
const DEFAULT_STREAM_IDLE_MS = 5 * 60_000;
const DEFAULT_IDLE_MS = 60 * 60_000;
const DEFAULT_DRAIN_MS = 5000;
const DEFAULT_DELAYED_CLOSE_MS = 1000;
/**
 * Longer than Envoy's, which equals delayed_close_timeout: a client that pauses for a second must not lose the end of its
 * response.
 */
const DEFAULT_FLUSH_MS = 5000;
const DEFAULT_HEADERS_KB = 60;
const DEFAULT_MAX_HEADERS = 100;

/** Creates the options. If a part cannot be created, closes the loggers and filters created so far and throws. */
export function connectionManagerOptions(
  config: HttpConnectionManager,
  chain: HttpChainPlace,
  context: WorkerContext,
  { isOutbound, names }: Pick<ChainIdentity, 'isOutbound' | 'names'>,
): ConnectionManagerOptions {
  const accessLogs = createAccessLoggers(config.access_log, 'DownstreamEnd', context);
  const filters: ChainedFilter[] = [];
  let terminal: TerminalFilterFactory | undefined;
  let tracing: RequestTracing | undefined;
  try {
    terminal = createFilters(chainFilters(config, context.extensions), context, chain, filters);
    tracing = createTracing(config, isOutbound, context);
    const rest = settings(config, chain, context, accessLogs, tracing);
    return { ...rest, accessLogs, chain: names, filters, terminal, tracing };
  } catch (error) {
    closeParts({ accessLogs, filters, terminal, tracing }, context.transport);
    throw error;
  }
}

/** Returns the options that need no closing. */
function settings(
  config: HttpConnectionManager,
  chain: HttpChainPlace,
  context: WorkerContext,
  accessLogs: readonly AccessLogger[],
  tracing: RequestTracing | undefined,
): Omit<ConnectionManagerOptions, 'accessLogs' | 'chain' | 'filters' | 'terminal' | 'tracing'> {
  const common = config.common_http_protocol_options ?? {};
  const http1 = config.http_protocol_options ?? {};
  const returnsRequestId = config.always_set_request_id_in_response ?? false;
  const localReplies = LocalReplyRules.of(config.local_reply_config, context);
  const routeFilterList = routeFilters(chainFilters(config, context.extensions), context.extensions);
  const maxHeadBytes = (config.max_request_headers_kb ?? DEFAULT_HEADERS_KB) * 1024;
  const maxHeaders = common.max_headers_count ?? DEFAULT_MAX_HEADERS;
  const streamIdleMs = durationMs(config.stream_idle_timeout, DEFAULT_STREAM_IDLE_MS);
  const underscores = common.headers_with_underscores_action ?? 'ALLOW';
  return {
    codecType: clientProtocols(config),
    http2: http2Options(config.http2_protocol_options, {
      maxHeadBytes,
      maxHeaders,
      flushTimeoutMs: streamIdleMs,
      underscores,
    }),
    http1: {
      maxHeadBytes,
      maxHeaders,
      acceptHttp10: http1.accept_http_10 ?? false,
      allowsCustomMethods: http1.allow_custom_methods ?? false,
      // Only at the edge: with trusted proxies in front, the client's connection ends at a proxy.
      refusesHttpsTargets: config.use_remote_address === true && (config.xff_num_trusted_hops ?? 0) === 0,
      dropsTrailers: http1.enable_trailers !== true,
      nameCase: nameCase(http1),
    },
    routes: routeSource(config, routeFilterList, context, chain.place),
    scopes: config.scoped_routes && context.routes.scoped(config.scoped_routes, routeFilterList),
    earlyMutations: earlyMutations(config.early_header_mutation_extensions, 'early_header_mutation_extensions'),
    forwarding: new ForwardingRules(config, context.identity),
    defaultHost: http1.default_host_for_http_10
      ? new HeaderLine(headerKey('host'), http1.default_host_for_http_10)
      : undefined,
    paths: PathNormalizer.of(config, context.runtime),
    hosts: HostNormalizer.of(config),
    underscores,
    responseHeaders: new ResponseHeaders(
      context.clock,
      serverHeader(config),
      config.server_name ?? 'baton',
      config.via ?? '',
    ),
    localReplies,
    returnsRequestId,
    keepsRequestHeaders:
      returnsRequestId || localReplies?.readsRequest === true || accessLogs.some((log) => log.needs.request.size > 0),
    keepsResponseHeaders: accessLogs.some((log) => log.needs.response.size > 0),
    readsWireBytes: tracing?.needs.wireBytes === true || accessLogs.some((log) => log.needs.wireBytes === true),
    upgrades: allowedUpgrades(config),
    matchesUpstreamScheme: config.scheme_header_transformation?.match_upstream ?? false,
    proxies100Continue: config.proxy_100_continue ?? false,
    streamIdleMs,
    maxStreamMs: durationMs(common.max_stream_duration, 0),
    requestMs: durationMs(config.request_timeout, 0),
    requestHeadersMs: durationMs(config.request_headers_timeout, 0),
    idleMs: durationMs(common.idle_timeout, DEFAULT_IDLE_MS),
    maxConnectionMs: durationMs(common.max_connection_duration, 0),
    drainMs: durationMs(config.drain_timeout, DEFAULT_DRAIN_MS),
    delayedCloseMs: Math.min(MAX_TIMER_MS, durationMs(config.delayed_close_timeout, DEFAULT_DELAYED_CLOSE_MS)),
    flushMs: flushTimeoutMs(config),
    maxRequestsPerConnection: common.max_requests_per_connection ?? 0,
    bufferLimit: chain.bufferLimit,
  };
}

/** Returns delayed_close_timeout as the flush timeout, which restarts whenever the client reads; 0 is unlimited. */
function flushTimeoutMs({ delayed_close_timeout: timeout }: HttpConnectionManager): number {
  return Math.min(MAX_TIMER_MS, durationMs(timeout, DEFAULT_FLUSH_MS) || MAX_TIMER_MS);
}

function routeSource(
  config: HttpConnectionManager,
  filters: RouteFilters,
  context: WorkerContext,
  place: string,
): RouteSource {
  return config.rds === undefined ? new InlineRoutes(filters, context, place) : context.routes.rds(config.rds, filters);
}

/** Creates the filters and adds them to `filters`, also those before one that throws. Returns the terminal filter. */
function createFilters(
  configs: readonly HttpFilter[],
  context: WorkerContext,
  chain: HttpChainPlace,
  filters: ChainedFilter[],
): TerminalFilterFactory {
  for (const [index, filter] of configs.entries()) {
    const { typed_config: config, disabled: isDisabled = false } = filter;
    const own = { ...chain, place: `${chain.place} filter ${index}`, filterName: filter.name! };
    if (config === undefined) {
      filters.push({ factory: new DiscoveredFilter(filter, context, own), isDisabled });
      continue;
    }
    const extension = context.extensions.httpFilter(config);
    if (extension.isTerminal) return extension.createOnWorker(config, context, own);
    filters.push({ factory: createFactory(extension, config, context, own), isDisabled });
  }
  if (configs.length === 0) return NO_FILTERS;
  throw new Error(`the HTTP filter chain has no terminal filter`);
}

function clientProtocols({ codec_type: type }: HttpConnectionManager): 'AUTO' | 'HTTP1' | 'HTTP2' {
  return type === 'HTTP1' || type === 'HTTP2' ? type : 'AUTO';
}

function allowedUpgrades(config: HttpConnectionManager): ReadonlySet<string> {
  const types = upgradeTypes(config.upgrade_configs, 'upgrade_configs');
  return new Set([...types].filter(([, isAllowed]) => isAllowed).map(([type]) => type));
}

function serverHeader(config: HttpConnectionManager): ServerHeader {
  switch (config.server_header_transformation) {
    case 'APPEND_IF_ABSENT':
      return ServerHeader.AppendIfAbsent;
    case 'PASS_THROUGH':
      return ServerHeader.PassThrough;
    default:
      return ServerHeader.Overwrite;
  }
}
