// envoy.filters.network.http_connection_manager: serves HTTP on a listener.

import { callExtension } from '../../../../common/errors/defects.js';
import { BatonError } from '../../../../common/errors/errors.js';
import { withInnerFilters } from '../../../../config/fields/inner-filters.js';
import { routerFilters } from '../../../../config/fields/upstream-filters.js';
import type { HttpConnectionManager, HttpFilter } from '../../../../config/generated/api.js';
import { ConnectionManager } from '../../../../http/connection-manager.js';
import { UserAgentStats } from '../../../../http/connections/user-agent-stats.js';
import { earlyMutations } from '../../../../http/headers/early-mutations.js';
import { InternalAddresses } from '../../../../http/headers/edge/internal-addresses.js';
import { OriginalIpDetection } from '../../../../http/headers/edge/original-ip.js';
import { LocalReplyRules } from '../../../../http/local-replies/local-reply-rules.js';
import { CHECKING } from '../../../../http/log-filters/compile-log-filter.js';
import { upgradeTypes } from '../../../../http/routing/actions/upgrade-types.js';
import { findRouteMistakes } from '../../../../http/routing/tables/route-mistakes.js';
import { ScopeKeyBuilder } from '../../../../http/routing/tables/scope-key.js';
import { Http1CodecStats, Http2Stats, HttpStats, ListenerHttpStats } from '../../../../stats/layouts/http.js';
import { scopePrefix } from '../../../../stats/scope-prefix.js';
import type { ScopeRequest } from '../../../../stats/store.js';
import type {
  ExtensionFinder,
  HttpChain,
  ListenerIdentity,
  PrimaryFilterContext,
  PrimaryPart,
  TerminalNetworkFilterExtension,
} from '../../../factories.js';
import { reportLogFilters } from '../../../log-filters.js';
import { createPart } from '../../../primary-part.js';
import { accessLogScopes } from '../../../registry.js';
import { reportMistake, reportMistakes } from '../../../report-mistakes.js';
import { requestMatchers } from '../../../request-matchers.js';
import { tracerScopes } from '../../../share-tracer.js';
import { upstreamScopes, upstreamSecrets } from '../../../upstream-filters.js';
import { chainFilters } from './chain-filters.js';
import { connectionManagerOptions } from './options.js';
import { routeFilters } from './route-filters.js';
import { checkTracing } from './tracing.js';

export const httpConnectionManager: TerminalNetworkFilterExtension<HttpConnectionManager> = {
  category: 'envoy.filters.network',
  name: 'envoy.filters.network.http_connection_manager',
  typeUrls: ['type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager'],
  isTerminal: true,
  validate(config, report) {
    const { internal_address_config: internal, route_config: routes = {} } = config;
    const host = config.http_protocol_options?.default_host_for_http_10 ?? '';
    if (!/^[\t\x20-\x7e\x80-\uffff]*$/.test(host)) {
      report('http_protocol_options.default_host_for_http_10', 'it is not a valid header value');
    }
    reportLogFilters(config.access_log, 'access_log', report);
    reportMistakes(report, 'local_reply_config', () => LocalReplyRules.of(config.local_reply_config, CHECKING));
    reportMistakes(report, 'internal_address_config', () => InternalAddresses.of(internal));
    reportMistakes(report, '', () => checkOriginalIp(config));
    reportMistakes(report, '', () => {
      earlyMutations(config.early_header_mutation_extensions, 'early_header_mutation_extensions');
    });
    reportMistakes(report, '', () => upgradeTypes(config.upgrade_configs, 'upgrade_configs'));
    const { tracing } = config;
    if (tracing !== undefined) reportMistakes(report, '', () => checkTracing(tracing));
    const scopes = config.scoped_routes?.scope_key_builder;
    if (scopes !== undefined) {
      reportMistakes(report, 'scoped_routes.scope_key_builder', () => new ScopeKeyBuilder(scopes));
    }
    const onMistake = (mistake: unknown) => reportMistake(report, 'route_config', mistake);
    findRouteMistakes(routes, [], onMistake, undefined, requestMatchers(undefined));
  },
  scopes: (config, listener, extensions) => [
    { prefix: httpPrefix(config), layout: HttpStats },
    { prefix: listenerPrefix(config, listener), layout: ListenerHttpStats },
    { prefix: HTTP1_PREFIX, layout: Http1CodecStats },
    { prefix: HTTP2_PREFIX, layout: Http2Stats },
    ...filterScopes(config, extensions),
    ...upstreamScopes(routerFilters(config), chainOf(config), extensions),
    ...accessLogScopes(config.access_log, extensions),
    ...tracerScopes(config.tracing?.provider?.typed_config, extensions),
  ],
  createOnPrimary(config, context) {
    const routes = context.routes.attach({
      manager: config,
      statPrefix: httpPrefix(config),
      filters: routeFilters(chainFilters(config, context.extensions), context.extensions),
      waitFor: context.waitFor,
    });
    const parts = [routes];
    try {
      for (const filter of withInnerFilters(chainFilters(config, context.extensions)))
        parts.push(...partsOf(filter, chainOf(config), context));
      const secrets = upstreamSecrets(routerFilters(config), context.extensions);
      if (secrets.length > 0) parts.push(context.secrets.use(secrets, context.waitFor));
      return parts;
    } catch (error) {
      for (const part of parts) part.close();
      throw error;
    }
  },
  createOnWorker(config, listener, context) {
    const stats = {
      http: context.scope(httpPrefix(config), HttpStats),
      listener: context.scope(listenerPrefix(config, listener), ListenerHttpStats),
      http1: context.scope(HTTP1_PREFIX, Http1CodecStats),
      http2: context.scope(HTTP2_PREFIX, Http2Stats),
      userAgents: new UserAgentStats(context.stats, scopePrefix(httpPrefix(config))),
    };
    const place = `chain ${listener.chain}`;
    const chain = { statPrefix: httpPrefix(config), bufferLimit: listener.bufferLimit, place };
    return new ConnectionManager(context, connectionManagerOptions(config, chain, context, listener), stats);
  },
};

function checkOriginalIp(config: HttpConnectionManager): void {
  const {
    original_ip_detection_extensions: extensions,
    use_remote_address: usesPeer,
    xff_num_trusted_hops: hops,
  } = config;
  const where = 'original_ip_detection_extensions';
  if (OriginalIpDetection.of(extensions, where) === undefined) return;
  const other = usesPeer ? 'use_remote_address' : hops ? 'xff_num_trusted_hops' : undefined;
  if (other !== undefined) throw new BatonError('CONFIG_INVALID', `it cannot be used with ${other}`, { where });
}

const HTTP1_PREFIX = 'http1.';
const HTTP2_PREFIX = 'http2.';

function filterScopes(config: HttpConnectionManager, extensions: ExtensionFinder): ScopeRequest[] {
  return withInnerFilters(chainFilters(config, extensions)).flatMap(({ typed_config: own }) => {
    // The scopes of a discovered filter are created with its configuration.
    if (own === undefined) return [];
    const extension = extensions.httpFilter(own);
    if (extension.isTerminal) return [];
    return callExtension('scopes', extension.name, () => extension.scopes?.(own, chainOf(config)) ?? []);
  });
}

function partsOf(filter: HttpFilter, chain: HttpChain, context: PrimaryFilterContext): readonly PrimaryPart[] {
  const { typed_config: own } = filter;
  if (own === undefined) return [context.filterConfigs.attach({ filter, chain, context })];
  const extension = context.extensions.httpFilter(own);
  const part = extension.isTerminal ? undefined : createPart(extension, own, context, chain);
  return part === undefined ? [] : [part];
}

function chainOf(config: HttpConnectionManager): HttpChain {
  return { statPrefix: httpPrefix(config) };
}

function httpPrefix(config: HttpConnectionManager): string {
  return `http.${config.stat_prefix}.`;
}

function listenerPrefix(config: HttpConnectionManager, listener: ListenerIdentity): string {
  return `listener.${listener.statToken}.http.${config.stat_prefix}.`;
}
