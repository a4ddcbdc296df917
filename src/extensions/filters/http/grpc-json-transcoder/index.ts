// envoy.filters.http.grpc_json_transcoder: lets clients call gRPC services with JSON over HTTP, as the google.api.http options of the
// services' methods say.

import type { Any, GrpcJsonTranscoder } from '../../../../config/generated/api.js';
import { BatonError, byValue, type HttpFilterExtension, obeyed, type Report, unpack } from '../../../sdk.js';
import { TranscoderFilter } from './transcoder-filter.js';
import { TranscoderGauges, TranscoderStats } from './transcoder-gauges.js';
import { compileRules, type TranscoderRules } from './transcoder-rules.js';

const CONFIG = 'envoy.extensions.filters.http.grpc_json_transcoder.v3.GrpcJsonTranscoder';

export const grpcJsonTranscoder: HttpFilterExtension<GrpcJsonTranscoder> = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.grpc_json_transcoder',
  typeUrls: [`type.googleapis.com/${CONFIG}`],
  takesOwnMessageFromRoutes: true,
  implemented: {
    [CONFIG]: {
      ...obeyed(
        'proto_descriptor',
        'proto_descriptor_bin',
        'services',
        'print_options',
        'match_incoming_request_route',
        'ignored_query_parameters',
        'auto_mapping',
        'ignore_unknown_query_parameters',
        'convert_grpc_status',
        'query_param_unescape_plus',
        'match_unregistered_custom_verb',
        'request_validation_options',
        'case_insensitive_enum_parsing',
        'max_request_body_size',
        'max_response_body_size',
        'capture_unknown_query_parameters',
      ),
      url_unescape_spec: byValue({
        ALL_CHARACTERS_EXCEPT_RESERVED: true,
        ALL_CHARACTERS_EXCEPT_SLASH: true,
        ALL_CHARACTERS: true,
      }),
    },
    [`${CONFIG}.PrintOptions`]: obeyed(
      'add_whitespace',
      'always_print_primitive_fields',
      'always_print_enums_as_ints',
      'preserve_proto_field_names',
      'stream_newline_delimited',
      'stream_sse_style_delimited',
    ),
    [`${CONFIG}.RequestValidationOptions`]: obeyed(
      'reject_unknown_method',
      'reject_unknown_query_parameters',
      'reject_binding_body_field_collisions',
    ),
  },
  validate(config, report) {
    const transcoder = unpack(config, CONFIG);
    if (transcoder !== undefined) check(transcoder, report);
  },
  scopes: (_config, { statPrefix }) => [{ prefix: statPrefix, layout: TranscoderStats }],
  createOnWorker(config, context, { bufferLimit, statPrefix }) {
    const own = compileRules(config);
    const gauges = new TranscoderGauges(context.scope(statPrefix, TranscoderStats));
    return {
      create(stream, routeConfig) {
        const rules = routeConfig === undefined ? own : (routeConfig as RouteRules).rules;
        return rules === undefined ? undefined : new TranscoderFilter(stream, rules, gauges, bufferLimit);
      },
    };
  },
  /** The most specific configuration applies. */
  compileRouteConfig: (configs: readonly Any[]): RouteRules | undefined =>
    configs.length === 0 ? undefined : { rules: compileRules(configs.at(-1) as GrpcJsonTranscoder) },
};

interface RouteRules {
  /** Undefined: the filter is off. */
  readonly rules: TranscoderRules | undefined;
}

function check(config: GrpcJsonTranscoder, report: Report): void {
  try {
    compileRules(config);
  } catch (error) {
    if (!(error instanceof BatonError)) throw error;
    report(error.where ?? '', error.message);
  }
}
