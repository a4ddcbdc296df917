// envoy.filters.http.ext_authz: asks an HTTP or gRPC service whether a request is allowed, and applies its answer.

import type {
  Any,
  ExtAuthz,
  ExtAuthzHttpService,
  ExtAuthzPerRoute,
  GrpcService,
} from '../../../../config/generated/api.js';
import { GrpcChannel } from '../../../grpc-sdk.js';
import {
  byteText,
  byValue,
  checkGrpcService,
  durationMs,
  errorStatus,
  type HttpChain,
  type HttpFilter,
  type HttpFilterExtension,
  headerKey,
  notImplemented,
  obeyed,
  onlyFalse,
  type Report,
  refused,
  reportMistakes,
  type StreamControl,
  unpack,
  type WorkerContext,
} from '../../../sdk.js';
import type { Counting, ErrorRules } from './authorization-filter.js';
import { ClusterOutcomes } from './cluster-outcomes.js';
import { ExtAuthzFilter, type ExtAuthzRules } from './ext-authz-filter.js';
import { GrpcCheckFilter, type GrpcCheckRules } from './grpc-check-filter.js';
import { compileNameRules } from './name-rules.js';
import { ExtAuthzStats } from './stats.js';

const PACKAGE = 'envoy.extensions.filters.http.ext_authz.v3';
const FILTER = `${PACKAGE}.ExtAuthz`;
const PER_ROUTE = `${PACKAGE}.ExtAuthzPerRoute`;

export const extAuthz: HttpFilterExtension<ExtAuthz> = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.ext_authz',
  typeUrls: [`type.googleapis.com/${FILTER}`, `type.googleapis.com/${PER_ROUTE}`],
  implemented: {
    'envoy.extensions.filters.http.ext_authz.v3.ExtAuthz': {
      http_service: true,
      grpc_service: true,
      transport_api_version: byValue({ AUTO: true, V2: false, V3: true }),
      failure_mode_allow: true,
      failure_mode_allow_header_add: true,
      status_on_error: true,
      clear_route_cache: true,
      metadata_context_namespaces: true,
      include_peer_certificate: true,
      include_tls_session: true,
      enable_dynamic_metadata_ingestion: true,
      filter_enabled: true,
      stat_prefix: true,
      allowed_headers: true,
      disallowed_headers: true,
      ...notImplemented(
        'with_request_body',
        'validate_mutations',
        'typed_metadata_context_namespaces',
        'route_metadata_context_namespaces',
        'route_typed_metadata_context_namespaces',
        'filter_enabled_metadata',
        'deny_at_disable',
        'bootstrap_metadata_labels_key',
        'charge_cluster_response_stats',
        'encode_raw_headers',
        'decoder_header_mutation_rules',
      ),
      clear_route_cache_headers: refused('the route is not selected again after the authorization: leave it out'),
      filter_metadata: refused('requests have no dynamic metadata'),
      emit_filter_state_stats: onlyFalse('filters do not set filter state: leave it out'),
      max_denied_response_body_bytes: refused(
        'the body of a denial is always sent whole: make the service send a short one',
      ),
      enforce_response_header_limits: onlyFalse(
        'responses of the service have the limits of all responses: leave it out',
      ),
      shadow_mode: onlyFalse(
        'the decision is always enforced: filter_enabled sets the share of requests that need authorization',
      ),
      emit_client_span: onlyFalse('tracing is not implemented: leave it out'),
    },
    'envoy.extensions.filters.http.ext_authz.v3.HttpService': {
      ...obeyed('server_uri', 'path_prefix', 'authorization_request', 'authorization_response'),
      path_override: refused('the service gets the path of the request: path_prefix adds a prefix'),
      retry_policy: refused('calls are not retried: failure_mode_allow decides about requests when the service fails'),
    },
    'envoy.extensions.filters.http.ext_authz.v3.AuthorizationRequest': { allowed_headers: true, headers_to_add: true },
    'envoy.extensions.filters.http.ext_authz.v3.AuthorizationResponse': {
      allowed_upstream_headers: true,
      allowed_upstream_headers_to_append: true,
      allowed_client_headers: true,
      allowed_client_headers_on_success: true,
      ...notImplemented('dynamic_metadata_from_headers'),
    },
    'envoy.extensions.filters.http.ext_authz.v3.ExtAuthzPerRoute': {
      disabled: true,
      check_settings: true,
    },
    'envoy.extensions.filters.http.ext_authz.v3.CheckSettings': {
      context_extensions: true,
      disable_request_body_buffering: onlyFalse('the service gets no bodies: leave it out'),
      ...notImplemented('with_request_body', 'grpc_service', 'http_service'),
      emit_client_span: onlyFalse('tracing is not implemented: leave it out'),
    },
  },
  validate(config, report) {
    const filter = unpack(config as Any, FILTER);
    if (filter === undefined) return;
    if (filter.http_service !== undefined) checkService(filter.http_service, report);
    else if (filter.grpc_service === undefined) report('', 'http_service or grpc_service must be set');
    else checkGrpc(filter.grpc_service, report);
    for (const field of ONLY_GRPC)
      if (filter.grpc_service === undefined && filter[field] !== undefined) report(field, 'it needs a grpc_service');
    if (filter.failure_mode_allow !== true && filter.failure_mode_allow_header_add === true)
      report('failure_mode_allow_header_add', 'it has no effect without failure_mode_allow');
    if (
      filter.allowed_headers !== undefined &&
      filter.http_service?.authorization_request?.allowed_headers !== undefined
    )
      report(DEPRECATED_LIST, 'allowed_headers of the filter is also set, and replaces this: leave this out');
    reportMistakes(report, '', () => compileNameRules(filter.allowed_headers, 'allowed_headers'));
    reportMistakes(report, '', () => compileNameRules(filter.disallowed_headers, 'disallowed_headers'));
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
    const { random, runtime } = context;
    const stats = context.scope(statsPrefix(config, chain), ExtAuthzStats);
    const counting = { stats, outcomes: new ClusterOutcomes(config.stat_prefix ?? '') };
    const enabled = runtime.fractionOf(config.filter_enabled, { numerator: 100 });
    const create = config.http_service === undefined ? grpcFilters(config, context) : httpFilters(config, context);
    return {
      create(stream, routeRules) {
        const { extensions, isDisabled } = (routeRules as RouteRules | undefined) ?? NO_RULES;
        if (isDisabled || hasNoRoute(stream)) return undefined;
        if (enabled.isHit(random)) return create(stream, extensions, counting);
        stats.increment(ExtAuthzStats.at.disabled);
        return undefined;
      },
    };
  },
  /** The most specific configuration decides whether the filter runs; extensions are merged. */
  compileRouteConfig: (configs): RouteRules => {
    const all = configs as readonly ExtAuthzPerRoute[];
    const extensions = all.flatMap((each) => Object.entries(each.check_settings?.context_extensions ?? {}));
    return {
      isDisabled: all.at(-1)?.disabled === true,
      extensions: new Map(extensions.map(([key, value]) => [byteText(key), byteText(value)])),
    };
  },
};

/** The compiled configuration of a route. */
interface RouteRules {
  readonly isDisabled: boolean;
  readonly extensions: ReadonlyMap<string, string>;
}

const NO_RULES: RouteRules = { isDisabled: false, extensions: new Map() };

/** Creates the filter of a request. */
type CreateFilter = (stream: StreamControl, extensions: ReadonlyMap<string, string>, counting: Counting) => HttpFilter;

function httpFilters(config: ExtAuthz, { calls }: WorkerContext): CreateFilter {
  const rules = rulesOf(config);
  const cluster = calls.reference(config.http_service!.server_uri!.cluster!);
  return (stream, _extensions, counting) => new ExtAuthzFilter(stream, rules, calls, cluster, counting);
}

function grpcFilters(config: ExtAuthz, { calls, clock }: WorkerContext): CreateFilter {
  const channel = new GrpcChannel(config.grpc_service!, calls);
  const rules: GrpcCheckRules = {
    ...errorRules(config),
    sent: compileNameRules(config.allowed_headers, ''),
    notSent: compileNameRules(config.disallowed_headers, ''),
    includesCertificate: config.include_peer_certificate ?? false,
    includesTlsSession: config.include_tls_session ?? false,
    namespaces: config.metadata_context_namespaces ?? [],
    choosesRouteAgain: config.clear_route_cache ?? false,
    takesMetadata: config.enable_dynamic_metadata_ingestion ?? true,
  };
  const nowMs = () => clock.monotonicMs;
  return (stream, extensions, counting) => new GrpcCheckFilter(stream, rules, channel, extensions, nowMs, counting);
}

/** Fields that only gRPC services have. */
const ONLY_GRPC = [
  'clear_route_cache',
  'metadata_context_namespaces',
  'include_peer_certificate',
  'include_tls_session',
  'enable_dynamic_metadata_ingestion',
] as const;

function checkGrpc(service: GrpcService, report: Report): void {
  checkGrpcService(service, 'grpc_service', report);
  if (service.google_grpc !== undefined)
    report('grpc_service.google_grpc', 'workers call the hosts of clusters: use envoy_grpc');
  if (service.timeout !== undefined && durationMs(service.timeout) === 0)
    report('grpc_service.timeout', 'must be above 0: without a timeout a request could wait forever');
}

/**
 * Returns whether the request has no route and no later filter waits for one: its response is 404 whatever the service decides.
 */
function hasNoRoute(stream: StreamControl): boolean {
  return stream.route() === undefined && stream.missingHost() === undefined;
}

function checkService(service: ExtAuthzHttpService, report: Report): void {
  const { authorization_request: request, authorization_response: response, path_prefix: prefix } = service;
  const { timeout } = service.server_uri ?? {};
  if (service.server_uri === undefined) report('http_service', 'server_uri must be set');
  if (timeout !== undefined && durationMs(timeout) === 0) {
    report('http_service.server_uri.timeout', 'must be above 0: without a timeout a request could wait forever');
  }
  if (prefix !== undefined && !/^\/[\x21-\x7e]*$/.test(prefix))
    report('http_service.path_prefix', "it must begin with '/' and be plain ASCII");
  reportMistakes(report, '', () => compileNameRules(request?.allowed_headers, DEPRECATED_LIST));
  request?.headers_to_add?.forEach(({ key = '', value = '' }, index) => {
    const at = `http_service.authorization_request.headers_to_add[${index}]`;
    if (!/^[\w!#$%&'*+.^`|~-]+$/.test(key)) report(`${at}.key`, `'${key}' is not a header name`);
    if (key.toLowerCase() === 'host') report(`${at}.key`, "the service gets the request's own 'host'");
    if (/[\0\r\n]/.test(value)) report(`${at}.value`, 'it must be one line');
  });
  for (const list of RESPONSE_LISTS) {
    const at = `http_service.authorization_response.${list}`;
    reportMistakes(report, '', () => compileNameRules(response?.[list], at));
  }
}

/** The deprecated place of `allowed_headers`. */
const DEPRECATED_LIST = 'http_service.authorization_request.allowed_headers';

const RESPONSE_LISTS = [
  'allowed_upstream_headers',
  'allowed_upstream_headers_to_append',
  'allowed_client_headers',
  'allowed_client_headers_on_success',
] as const;

/** Compiles a configuration that validate() has accepted. */
function rulesOf(config: ExtAuthz): ExtAuthzRules {
  const { authorization_request: request, authorization_response: response, ...service } = config.http_service!;
  return {
    timeoutMs: durationMs(service.server_uri!.timeout!),
    pathPrefix: service.path_prefix ?? '',
    sent: compileNameRules(config.allowed_headers ?? request?.allowed_headers, ''),
    notSent: compileNameRules(config.disallowed_headers, ''),
    added: (request?.headers_to_add ?? []).map(({ key, value }) => ({
      key: headerKey(key!),
      value: byteText(value ?? ''),
    })),
    toHost: compileNameRules(response?.allowed_upstream_headers, ''),
    toHostAppended: compileNameRules(response?.allowed_upstream_headers_to_append, ''),
    toClient: compileNameRules(response?.allowed_client_headers, ''),
    toClientOnSuccess: compileNameRules(response?.allowed_client_headers_on_success, ''),
    ...errorRules(config),
  };
}

function errorRules(config: ExtAuthz): ErrorRules {
  return {
    statusOnError: errorStatus(config.status_on_error, 403),
    allowsOnError: config.failure_mode_allow ?? false,
    marksAllowedOnError: config.failure_mode_allow_header_add ?? false,
  };
}

function statsPrefix({ stat_prefix: own = '' }: ExtAuthz, { statPrefix }: HttpChain): string {
  return `${statPrefix}ext_authz.${own === '' ? '' : `${own}.`}`;
}
