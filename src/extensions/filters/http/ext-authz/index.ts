// envoy.filters.http.ext_authz: asks a service over HTTP or gRPC whether a request is allowed, and applies its answer.

import type { Any, ExtAuthz, ExtAuthzPerRoute } from '../../../../config/generated/api.js';
import { type HttpChain, type HttpFilterExtension, MetadataRule, type StreamControl, unpack } from '../../../sdk.js';
import { ClusterOutcomes } from '../../common/cluster-outcomes.js';
import type { Outcome } from './authorization-filter.js';
import { DisabledRequests, GatedFilter } from './disabled.js';
import { EXT_AUTHZ_FIELDS } from './implemented.js';
import { bodyRules } from './request-body.js';
import { compileRouteRules, FiltersByRoute, type RouteRules } from './route-rules.js';
import { filtersOf, shadowKeyOf } from './services.js';
import { ExtAuthzStats } from './stats.js';
import { checkFilter, checkRoute } from './validation.js';

const PACKAGE = 'envoy.extensions.filters.http.ext_authz.v3';
const FILTER = `${PACKAGE}.ExtAuthz`;
const PER_ROUTE = `${PACKAGE}.ExtAuthzPerRoute`;

export const extAuthz: HttpFilterExtension<ExtAuthz> = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.ext_authz',
  typeUrls: [`type.googleapis.com/${FILTER}`, `type.googleapis.com/${PER_ROUTE}`],
  implemented: EXT_AUTHZ_FIELDS,
  validate(config, report) {
    const filter = unpack(config as Any, FILTER);
    if (filter !== undefined) checkFilter(filter, report);
    else checkRoute(unpack(config as Any, PER_ROUTE)?.check_settings, report);
  },
  clusters(config) {
    const { grpc_service: grpc, http_service: http } = unpack(config, FILTER) ?? {};
    return [
      ['http_service.server_uri.cluster', http?.server_uri?.cluster],
      ['grpc_service.envoy_grpc.cluster_name', grpc?.envoy_grpc?.cluster_name],
    ];
  },
  scopes: (config, chain) => [{ prefix: statsPrefix(config, chain), layout: ExtAuthzStats }],
  createOnWorker(config, context, chain) {
    const { clock, memory, random, runtime } = context;
    const stats = context.scope(statsPrefix(config, chain), ExtAuthzStats);
    const outcomes = new ClusterOutcomes<Outcome>('ext_authz', config.stat_prefix ?? '');
    const counting = { stats, outcomes, nowMs: () => clock.monotonicMs };
    const enabled = runtime.fractionOf(config.filter_enabled, { numerator: 100 });
    const enabledBy = config.filter_enabled_metadata && new MetadataRule(config.filter_enabled_metadata, '');
    const disabled = new DisabledRequests(config, runtime, stats, shadowKeyOf(config, chain.filterName));
    const create = filtersOf(config, context, chain.filterName);
    const filters = new FiltersByRoute(
      { create, request: { extensions: new Map(), body: bodyRules(config.with_request_body, memory) } },
      (override) => filtersOf(config, context, chain.filterName, override),
      memory,
    );
    return {
      create(stream, routeConfig) {
        const rules = routeConfig as RouteRules | undefined;
        if (rules?.isDisabled === true || hasNoRoute(stream)) return undefined;
        if (!enabled.isHit(random)) return disabled.filterOf(stream);
        const { create, request } = filters.of(rules);
        const filter = create(stream, request, counting);
        return enabledBy === undefined ? filter : new GatedFilter(stream, filter, enabledBy, disabled);
      },
    };
  },
  compileRouteConfig: (configs) => compileRouteRules(configs as readonly ExtAuthzPerRoute[]),
};

/**
 * Returns whether the request has no route and no later filter waits for one: its response is 404 whatever the service decides.
 */
function hasNoRoute(stream: StreamControl): boolean {
  return stream.route() === undefined && stream.missingHost() === undefined;
}

function statsPrefix({ stat_prefix: own = '' }: ExtAuthz, { statPrefix }: HttpChain): string {
  return `${statPrefix}ext_authz.${own === '' ? '' : `${own}.`}`;
}
