// envoy.filters.http.ext_authz: asks an HTTP service whether a request is allowed, and passes fields of its response on.

import type { Any, ExtAuthz, ExtAuthzHttpService, ExtAuthzPerRoute } from '../../../../config/generated/api.js';
import {
  byteText,
  byValue,
  durationMs,
  errorStatus,
  type HttpChain,
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
} from '../../../sdk.js';
import { ClusterOutcomes } from './cluster-outcomes.js';
import { ExtAuthzFilter, type ExtAuthzRules } from './ext-authz-filter.js';
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
      grpc_service: refused('only HTTP services are supported: use http_service'),
      transport_api_version: byValue({ AUTO: true, V2: false, V3: true }),
      failure_mode_allow: true,
      failure_mode_allow_header_add: true,
      status_on_error: true,
      filter_enabled: true,
      stat_prefix: true,
      allowed_headers: true,
      disallowed_headers: true,
      ...notImplemented(
        'with_request_body',
        'clear_route_cache',
        'validate_mutations',
        'metadata_context_namespaces',
        'typed_metadata_context_namespaces',
        'route_metadata_context_namespaces',
        'route_typed_metadata_context_namespaces',
        'filter_enabled_metadata',
        'deny_at_disable',
        'include_peer_certificate',
        'bootstrap_metadata_labels_key',
        'include_tls_session',
        'charge_cluster_response_stats',
        'encode_raw_headers',
        'decoder_header_mutation_rules',
        'enable_dynamic_metadata_ingestion',
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
      ...notImplemented('check_settings'),
    },
  },
  validate(config, report) {
    const filter = unpack(config as Any, FILTER);
    if (filter === undefined) return;
    if (filter.http_service === undefined) report('', 'http_service must be set');
    else checkService(filter.http_service, report);
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
    const cluster = unpack(config, FILTER)?.http_service?.server_uri?.cluster;
    return [['http_service.server_uri.cluster', cluster]];
  },
  scopes: (config, chain) => [{ prefix: statsPrefix(config, chain), layout: ExtAuthzStats }],
  createOnWorker(config, context, chain) {
    const rules = rulesOf(config);
    const { calls, random, runtime } = context;
    const cluster = calls.reference(config.http_service!.server_uri!.cluster!);
    const stats = context.scope(statsPrefix(config, chain), ExtAuthzStats);
    const outcomes = new ClusterOutcomes(config.stat_prefix ?? '');
    const enabled = runtime.fractionOf(config.filter_enabled, { numerator: 100 });
    return {
      create(stream, isDisabled) {
        if (isDisabled === true || hasNoRoute(stream)) return undefined;
        if (enabled.isHit(random)) return new ExtAuthzFilter(stream, rules, calls, cluster, stats, outcomes);
        stats.increment(ExtAuthzStats.at.disabled);
        return undefined;
      },
    };
  },
  /** The most specific configuration applies. */
  compileRouteConfig: (configs) => (configs.at(-1) as ExtAuthzPerRoute | undefined)?.disabled === true,
};

/**
 * Returns whether the request has no route and no later filter waits for one: its response is 404 whatever the service decides.
 */
function hasNoRoute(stream: StreamControl): boolean {
  return stream.route() === undefined && stream.missingHost() === undefined;
}

function checkService(service: ExtAuthzHttpService, report: Report): void {
  const { authorization_request: request, authorization_response: response, path_prefix: prefix } = service;
  const { timeout, uri = '' } = service.server_uri ?? {};
  if (service.server_uri === undefined) report('http_service', 'server_uri must be set');
  // The service's address is that of its cluster; only the scheme of the URI matters.
  else if (/^https:/i.test(uri)) report('http_service.server_uri.uri', 'TLS is not implemented: write it with http://');
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
    statusOnError: errorStatus(config.status_on_error, 403),
    allowsOnError: config.failure_mode_allow ?? false,
    marksAllowedOnError: config.failure_mode_allow_header_add ?? false,
  };
}

function statsPrefix({ stat_prefix: own = '' }: ExtAuthz, { statPrefix }: HttpChain): string {
  return `${statPrefix}ext_authz.${own === '' ? '' : `${own}.`}`;
}
