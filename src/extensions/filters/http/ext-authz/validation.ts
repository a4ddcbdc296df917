// The checks of configurations of the ext_authz filter beyond those of the schema.

import type { CheckSettings, ExtAuthz, ExtAuthzHttpService, GrpcService } from '../../../../config/generated/api.js';
import {
  checkGrpcService,
  compileCallRetries,
  durationMs,
  MetadataRule,
  type Report,
  reportMistakes,
  settableKey,
} from '../../../sdk.js';
import { MutationRules } from '../../common/mutation-rules.js';
import { compileNameRules } from './name-rules.js';

/** Checks the filter's own message. */
export function checkFilter(filter: ExtAuthz, report: Report): void {
  if (filter.http_service !== undefined) checkService(filter.http_service, 'http_service', report);
  else if (filter.grpc_service === undefined) report('', 'http_service or grpc_service must be set');
  else checkGrpc(filter.grpc_service, 'grpc_service', report);
  if (filter.failure_mode_allow !== true && filter.failure_mode_allow_header_add === true)
    report('failure_mode_allow_header_add', 'it has no effect without failure_mode_allow');
  if (filter.allowed_headers !== undefined && filter.http_service?.authorization_request?.allowed_headers !== undefined)
    report(
      'http_service.authorization_request.allowed_headers',
      'allowed_headers of the filter is also set, and replaces this: leave this out',
    );
  reportMistakes(report, '', () => compileNameRules(filter.allowed_headers, 'allowed_headers'));
  reportMistakes(report, '', () => compileNameRules(filter.disallowed_headers, 'disallowed_headers'));
  reportMistakes(report, '', () => {
    const { decoder_header_mutation_rules: rules, filter_enabled_metadata: metadata } = filter;
    if (rules !== undefined) new MutationRules(rules, 'decoder_header_mutation_rules');
    if (metadata !== undefined) new MetadataRule(metadata, 'filter_enabled_metadata');
  });
}

/** Checks the settings of a route. */
export function checkRoute(settings: CheckSettings | undefined, report: Report): void {
  if (settings?.http_service !== undefined) checkService(settings.http_service, 'check_settings.http_service', report);
  if (settings?.grpc_service !== undefined) checkGrpc(settings.grpc_service, 'check_settings.grpc_service', report);
  if (settings?.disable_request_body_buffering === true && settings.with_request_body !== undefined)
    report('check_settings.with_request_body', 'disable_request_body_buffering is also set: leave one of them out');
}

function checkGrpc(service: GrpcService, where: string, report: Report): void {
  checkGrpcService(service, where, report);
  if (service.google_grpc !== undefined)
    report(
      `${where}.google_grpc`,
      'workers call the hosts of clusters: define one with http2_protocol_options for target_uri, and name it in envoy_grpc',
    );
  if (service.timeout !== undefined && durationMs(service.timeout) === 0)
    report(`${where}.timeout`, 'must be above 0: without a timeout a request could wait forever');
}

function checkService(service: ExtAuthzHttpService, where: string, report: Report): void {
  const { authorization_request: request, authorization_response: response } = service;
  const { path_override: override, path_prefix: prefix } = service;
  const { timeout } = service.server_uri ?? {};
  if (service.server_uri === undefined) report(where, 'server_uri must be set');
  reportMistakes(report, '', () => compileCallRetries(service.retry_policy, `${where}.retry_policy`));
  if (timeout !== undefined && durationMs(timeout) === 0) {
    report(`${where}.server_uri.timeout`, 'must be above 0: without a timeout a request could wait forever');
  }
  if (prefix !== undefined && !TARGET.test(prefix)) report(`${where}.path_prefix`, NO_TARGET);
  if (override !== undefined && !TARGET.test(override)) report(`${where}.path_override`, NO_TARGET);
  if (override !== undefined && prefix !== undefined)
    report(`${where}.path_override`, 'path_prefix is also set: leave one of them out');
  const allowed = `${where}.authorization_request.allowed_headers`;
  reportMistakes(report, '', () => compileNameRules(request?.allowed_headers, allowed));
  request?.headers_to_add?.forEach(({ key = '', value = '' }, index) => {
    const at = `${where}.authorization_request.headers_to_add[${index}]`;
    if (!/^[\w!#$%&'*+.^`|~-]+$/.test(key)) report(`${at}.key`, `'${key}' is not a header name`);
    else if (key.toLowerCase() === 'host') report(`${at}.key`, "the service gets the request's own 'host'");
    else reportMistakes(report, `${at}.key`, () => settableKey(key));
    if (/[\0\r\n]/.test(value)) report(`${at}.value`, 'it must be one line');
  });
  for (const list of RESPONSE_LISTS) {
    const at = `${where}.authorization_response.${list}`;
    reportMistakes(report, '', () => compileNameRules(response?.[list], at));
  }
}

const RESPONSE_LISTS = [
  'allowed_upstream_headers',
  'allowed_upstream_headers_to_append',
  'allowed_client_headers',
  'allowed_client_headers_on_success',
  'dynamic_metadata_from_headers',
] as const;

/** The target of a request has no fragment. */
const TARGET = /^\/[!"$-~]*$/;
const NO_TARGET = "it must begin with '/' and be plain ASCII without spaces, control characters and '#'";
