// Creates the filters of requests, with the service of the configuration or that of a route.

import type { CheckSettings, ExtAuthz } from '../../../../config/generated/api.js';
import { GrpcChannel } from '../../../grpc-sdk.js';
import {
  byteText,
  compileCallRetries,
  durationMs,
  errorStatus,
  headerKey,
  type StreamControl,
  type WorkerContext,
} from '../../../sdk.js';
import { MutationRules } from '../../common/mutation-rules.js';
import type { AuthorizationFilter, CommonRules, Counting, RequestRules } from './authorization-filter.js';
import { labelsOf } from './check-request.js';
import { ExtAuthzFilter, type ExtAuthzRules } from './ext-authz-filter.js';
import { GrpcCheckFilter, type GrpcCheckRules } from './grpc-check-filter.js';
import { compileNameRules } from './name-rules.js';

/** Creates the filter of a request. */
export type CreateFilter = (stream: StreamControl, request: RequestRules, counting: Counting) => AuthorizationFilter;

/** Returns a function that creates filters. `override`: the service of a route. `filterName`: of the filter in its chain. */
export function filtersOf(
  config: ExtAuthz,
  context: WorkerContext,
  filterName: string,
  override: Pick<CheckSettings, 'grpc_service' | 'http_service'> = {},
): CreateFilter {
  const { grpc_service: grpc, http_service: http } = override;
  const isOwn = grpc === undefined && http === undefined;
  const { grpc_service: ownGrpc, http_service: ownHttp, ...common } = config;
  const service = isOwn ? { grpc_service: ownGrpc, http_service: ownHttp } : { grpc_service: grpc, http_service: http };
  const merged = { ...common, ...service } as ExtAuthz;
  const rules = commonRules(config, filterName);
  if (service.http_service !== undefined) return httpFilters(merged, rules, context, !isOwn && ownHttp === undefined);
  return grpcFilters(merged, rules, context, ownHttp !== undefined);
}

/** `sendsAll`: as in Envoy, an HTTP service of a route in place of a gRPC service gets all fields. */
function httpFilters(config: ExtAuthz, common: CommonRules, { calls }: WorkerContext, sendsAll: boolean): CreateFilter {
  const rules = httpRules(config, common, sendsAll);
  const cluster = calls.reference(config.http_service!.server_uri!.cluster!);
  return (stream, request, counting) => new ExtAuthzFilter(stream, rules, calls, cluster, request, counting);
}

/** `sendsFew`: as in Envoy, a gRPC service of a route in place of an HTTP service gets the fields that this would get. */
function grpcFilters(
  config: ExtAuthz,
  common: CommonRules,
  { calls, node }: WorkerContext,
  sendsFew: boolean,
): CreateFilter {
  const channel = new GrpcChannel(config.grpc_service!, calls);
  const mutations = config.decoder_header_mutation_rules;
  const { bootstrap_metadata_labels_key: labelsKey = '' } = config;
  const { patterns: allowed = [] } = config.allowed_headers ?? {};
  const rules: GrpcCheckRules = {
    ...common,
    sent: compileNameRules(sendsFew ? { patterns: [...allowed, ...ALWAYS_SENT] } : config.allowed_headers, ''),
    notSent: compileNameRules(config.disallowed_headers, ''),
    includesCertificate: config.include_peer_certificate ?? false,
    includesTlsSession: config.include_tls_session ?? false,
    namespaces: config.metadata_context_namespaces ?? [],
    routeNamespaces: config.route_metadata_context_namespaces ?? [],
    sendsRawFields: config.encode_raw_headers ?? false,
    labels: labelsKey === '' ? new Map() : labelsOf(node.metadata?.[labelsKey]),
    mutations: mutations && new MutationRules(mutations, ''),
    validates: config.validate_mutations ?? false,
  };
  return (stream, request, counting) => new GrpcCheckFilter(stream, rules, channel, request, counting);
}

const ALWAYS_SENT = [':authority', ':method', ':path', 'authorization'].map((exact) => ({ exact }));

/** Compiles a configuration that validate() has accepted. */
function httpRules(config: ExtAuthz, common: CommonRules, sendsAll: boolean): ExtAuthzRules {
  const { authorization_request: request, authorization_response: response, ...service } = config.http_service!;
  const mutations = config.decoder_header_mutation_rules;
  return {
    ...common,
    timeoutMs: durationMs(service.server_uri!.timeout!),
    retries: compileCallRetries(service.retry_policy, ''),
    pathPrefix: service.path_prefix ?? '',
    pathOverride: service.path_override ?? '',
    sent: compileNameRules(config.allowed_headers ?? request?.allowed_headers, ''),
    sendsAll: sendsAll && config.allowed_headers === undefined,
    notSent: compileNameRules(config.disallowed_headers, ''),
    added: (request?.headers_to_add ?? []).map(({ key, value }) => ({
      key: headerKey(key!),
      value: byteText(value ?? ''),
    })),
    toHost: compileNameRules(response?.allowed_upstream_headers, ''),
    toHostAppended: compileNameRules(response?.allowed_upstream_headers_to_append, ''),
    toClient: compileNameRules(response?.allowed_client_headers, ''),
    toClientOnSuccess: compileNameRules(response?.allowed_client_headers_on_success, ''),
    toMetadata: compileNameRules(response?.dynamic_metadata_from_headers, ''),
    mutations: mutations && new MutationRules(mutations, ''),
  };
}

function commonRules(config: ExtAuthz, filterName: string): CommonRules {
  const { clear_route_cache: isCleared = false, clear_route_cache_headers: names = [] } = config;
  return {
    statusOnError: errorStatus(config.status_on_error, 403),
    allowsOnError: config.failure_mode_allow ?? false,
    marksAllowedOnError: config.failure_mode_allow_header_add ?? false,
    maxDeniedBytes: config.max_denied_response_body_bytes || Number.POSITIVE_INFINITY,
    chargesCluster: config.charge_cluster_response_stats ?? true,
    shadowKey: shadowKeyOf(config, filterName),
    takesMetadata: config.enable_dynamic_metadata_ingestion ?? true,
    choosesRouteAgain: isCleared && names.length > 0 ? new Set(names.map((name) => name.toLowerCase())) : isCleared,
  };
}

/** Returns the key of decisions in the filter state; undefined: decisions are enforced. */
export function shadowKeyOf(config: ExtAuthz, filterName: string): string | undefined {
  return config.shadow_mode === true ? `${filterName}.shadow` : undefined;
}
