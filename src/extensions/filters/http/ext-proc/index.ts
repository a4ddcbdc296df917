// envoy.filters.http.ext_proc: sends requests and responses to a gRPC service, which may change, replace or answer them.

import type { Any, ExternalProcessor, ExtProcOverrides, ExtProcPerRoute } from '../../../../config/generated/api.js';
import { type HttpChain, type HttpFilterExtension, unpack } from '../../../sdk.js';
import { ExtProcFilter } from './ext-proc-filter.js';
import { EXT_PROC_FIELDS } from './implemented.js';
import { compileRouteRules, type RouteRules, RulesByRoute } from './route-rules.js';
import { compileRules } from './rules.js';
import { ExtProcStats } from './stats.js';
import { checkFilter, checkRoute } from './validation.js';

const PACKAGE = 'envoy.extensions.filters.http.ext_proc.v3';
const FILTER = `${PACKAGE}.ExternalProcessor`;
const PER_ROUTE = `${PACKAGE}.ExtProcPerRoute`;

export const extProc: HttpFilterExtension<ExternalProcessor> = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.ext_proc',
  typeUrls: [`type.googleapis.com/${FILTER}`, `type.googleapis.com/${PER_ROUTE}`],
  implemented: EXT_PROC_FIELDS,
  validate(config, report) {
    const filter = unpack(config as Any, FILTER);
    if (filter !== undefined) checkFilter(filter, report);
    else checkRoute(unpack(config as Any, PER_ROUTE)?.overrides ?? {}, report);
  },
  clusters(config) {
    const { grpc_service: service, http_service: http } = unpack(config as Any, FILTER) ?? {};
    const { grpc_service: ofRoute } = unpack(config as Any, PER_ROUTE)?.overrides ?? {};
    return [
      ['http_service.http_service.http_uri.cluster', http?.http_service?.http_uri?.cluster],
      ['grpc_service.envoy_grpc.cluster_name', service?.envoy_grpc?.cluster_name],
      ['overrides.grpc_service.envoy_grpc.cluster_name', ofRoute?.envoy_grpc?.cluster_name],
    ];
  },
  scopes: (config, chain) => [{ prefix: statsPrefix(config, chain), layout: ExtProcStats }],
  createOnWorker(config, context, chain) {
    const stats = context.scope(statsPrefix(config, chain), ExtProcStats);
    const compile = (overrides?: ExtProcOverrides) => compileRules(config, context, chain, stats, overrides);
    const rules = new RulesByRoute(compile(), compile);
    return {
      create(stream, routeConfig) {
        const route = routeConfig as RouteRules | undefined;
        return route?.isDisabled === true ? undefined : new ExtProcFilter(stream, rules.of(route));
      },
    };
  },
  compileRouteConfig: (configs) => compileRouteRules(configs as readonly ExtProcPerRoute[]),
};

function statsPrefix({ stat_prefix: own = '' }: ExternalProcessor, { statPrefix }: HttpChain): string {
  return `${statPrefix}ext_proc.${own === '' ? '' : `${own}.`}`;
}
