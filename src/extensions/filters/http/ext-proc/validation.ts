// The checks of configurations of the ext_proc filter beyond those of the schema.

import type {
  ExternalProcessor,
  ExtProcOverrides,
  GrpcService,
  ProcessingMode,
} from '../../../../config/generated/api.js';
import { checkGrpcService, checkHttpService, durationMs, type Report, reportMistakes } from '../../../sdk.js';
import { MutationRules } from '../../common/mutation-rules.js';
import { AttributeList } from './attributes.js';
import { ForwardRules } from './forward-rules.js';
import { compileMode, hasMoreThanHeads } from './modes.js';

/** Checks the filter's own message. */
export function checkFilter(filter: ExternalProcessor, report: Report): void {
  const { grpc_service: grpc, http_service: http } = filter;
  if ((grpc === undefined) === (http === undefined))
    report('', 'grpc_service or http_service must be set, and not both');
  else if (grpc !== undefined) checkService(grpc, 'grpc_service', report);
  else checkHttp(filter, report);
  checkPrefix(filter.stat_prefix, report);
  if (filter.message_timeout !== undefined && durationMs(filter.message_timeout) === 0)
    report('message_timeout', 'must be above 0: without a timeout a request could wait forever');
  if (filter.disable_clear_route_cache === true && (filter.route_cache_action ?? 'DEFAULT') !== 'DEFAULT')
    report('disable_clear_route_cache', 'route_cache_action is also set: leave one of them out');
  checkMode(filter.processing_mode, 'processing_mode', report);
  checkAttributes(filter, '', report);
  filter.allowed_override_modes?.forEach((mode, index) => {
    if ([mode.request_body_mode, mode.response_body_mode].includes('FULL_DUPLEX_STREAMED'))
      report(`allowed_override_modes[${index}]`, 'answers cannot change the mode to FULL_DUPLEX_STREAMED');
  });
  reportMistakes(report, '', () => {
    const { forward_rules: forward, mutation_rules: mutation } = filter;
    if (forward !== undefined) new ForwardRules(forward, 'forward_rules');
    if (mutation !== undefined) new MutationRules(mutation, 'mutation_rules');
  });
}

/** Checks the settings of a route. */
export function checkRoute(overrides: ExtProcOverrides, report: Report): void {
  const { grpc_initial_metadata: metadata, grpc_service: service } = overrides;
  if (service !== undefined) checkService(service, 'overrides.grpc_service', report);
  checkMode(overrides.processing_mode, 'overrides.processing_mode', report);
  checkAttributes(overrides, 'overrides.', report);
  // Checked as those of a service.
  checkGrpcService({ initial_metadata: metadata ?? [] }, 'overrides', (path, text) =>
    report(path.replace('.initial_metadata', '.grpc_initial_metadata'), text),
  );
}

function checkHttp({ http_service: http, processing_mode: mode }: ExternalProcessor, report: Report): void {
  if (http?.http_service === undefined) report('http_service', 'http_service must be set');
  checkHttpService(http?.http_service, 'http_service.http_service', report);
  if (hasMoreThanHeads(compileMode(mode)))
    report('processing_mode', 'bodies and trailers are not sent to an http_service: use grpc_service');
}

function checkService(service: GrpcService, where: string, report: Report): void {
  checkGrpcService(service, where, report);
  if (service.google_grpc !== undefined)
    report(
      `${where}.google_grpc`,
      'workers call the hosts of clusters: define one with http2_protocol_options for target_uri, and name it in envoy_grpc',
    );
}

function checkMode(mode: ProcessingMode | undefined, where: string, report: Report): void {
  for (const direction of ['request', 'response'] as const) {
    if (mode?.[`${direction}_body_mode`] !== 'FULL_DUPLEX_STREAMED') continue;
    if (mode[`${direction}_trailer_mode`] !== 'SEND')
      report(`${where}.${direction}_trailer_mode`, 'it must be SEND: the body mode is FULL_DUPLEX_STREAMED');
  }
}

function checkAttributes(
  lists: Pick<ExternalProcessor, 'request_attributes' | 'response_attributes'>,
  prefix: string,
  report: Report,
): void {
  for (const list of ['request_attributes', 'response_attributes'] as const) {
    lists[list]?.forEach((text, index) => {
      reportMistakes(report, `${prefix}${list}[${index}]`, () => new AttributeList([text]));
    });
  }
}

function checkPrefix(prefix: string | undefined, report: Report): void {
  if (prefix !== undefined && /\s/.test(prefix)) report('stat_prefix', 'it must not contain white space');
}
