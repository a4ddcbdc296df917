// envoy.filters.http.tap: sends traces of requests and responses to a client that attaches a tap with POST /tap.

import type { TapTap as TapFilterConfig } from '../../../../config/generated/api.js';
import {
  accepted,
  byValue,
  type HttpChain,
  type HttpFilterExtension,
  type ImplementedTable,
  notImplemented,
  obeyed,
  onlyFalse,
  refused,
} from '../../../sdk.js';
import { TapStats } from './stats.js';
import { TapAdmin } from './tap-admin.js';
import { type TapContext, TapFilter } from './tap-filter.js';
import { WorkerTaps } from './worker-taps.js';

/** The API has this message under two names. */
const MATCH_PREDICATE = obeyed(
  'or_match',
  'and_match',
  'not_match',
  'any_match',
  'http_request_headers_match',
  'http_request_trailers_match',
  'http_response_headers_match',
  'http_response_trailers_match',
  'http_request_generic_body_match',
  'http_response_generic_body_match',
);

/** Fields of the filter's configuration and of the body of POST /tap. */
const IMPLEMENTED: ImplementedTable = {
  'envoy.extensions.filters.http.tap.v3.Tap': {
    common_config: true,
    record_headers_received_time: true,
    record_downstream_connection: true,
    record_upstream_connection: onlyFalse('connections to hosts are not recorded: leave it out'),
  },
  'envoy.extensions.common.tap.v3.CommonExtensionConfig': {
    admin_config: true,
    static_config: refused('taps are attached with POST /tap; configure admin_config'),
  },
  'envoy.extensions.common.tap.v3.AdminConfig': obeyed('config_id'),
  'envoy.admin.v3.TapRequest': obeyed('config_id', 'tap_config'),
  'envoy.config.tap.v3.TapConfig': {
    match_config: true,
    match: true,
    output_config: true,
    ...notImplemented('tap_enabled'),
  },
  'envoy.config.tap.v3.MatchPredicate': MATCH_PREDICATE,
  'envoy.config.tap.v3.MatchPredicate.MatchSet': obeyed('rules'),
  'envoy.config.tap.v3.HttpHeadersMatch': obeyed('headers'),
  'envoy.config.tap.v3.HttpGenericBodyMatch': obeyed('bytes_limit', 'patterns'),
  'envoy.config.tap.v3.HttpGenericBodyMatch.GenericTextMatch': obeyed('string_match', 'binary_match'),
  'envoy.config.common.matcher.v3.MatchPredicate': MATCH_PREDICATE,
  'envoy.config.common.matcher.v3.MatchPredicate.MatchSet': obeyed('rules'),
  'envoy.config.common.matcher.v3.HttpHeadersMatch': obeyed('headers'),
  'envoy.config.common.matcher.v3.HttpGenericBodyMatch': obeyed('bytes_limit', 'patterns'),
  'envoy.config.common.matcher.v3.HttpGenericBodyMatch.GenericTextMatch': obeyed('string_match', 'binary_match'),
  'envoy.config.tap.v3.OutputConfig': {
    ...obeyed('sinks', 'max_buffered_rx_bytes', 'max_buffered_tx_bytes', 'streaming'),
    min_streamed_sent_bytes: accepted('it applies to socket taps, which do not exist here'),
  },
  'envoy.config.tap.v3.OutputSink': {
    format: byValue({
      JSON_BODY_AS_BYTES: true,
      JSON_BODY_AS_STRING: true,
      PROTO_BINARY: false,
      PROTO_BINARY_LENGTH_DELIMITED: true,
      PROTO_TEXT: false,
    }),
    streaming_admin: true,
    buffered_admin: true,
    ...notImplemented('file_per_tap', 'streaming_grpc', 'custom_sink'),
  },
  'envoy.config.tap.v3.StreamingAdminSink': {},
  'envoy.config.tap.v3.BufferedAdminSink': obeyed('max_traces', 'timeout'),
};

export const tap: HttpFilterExtension<TapFilterConfig> = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.tap',
  typeUrls: ['type.googleapis.com/envoy.extensions.filters.http.tap.v3.Tap'],
  implemented: IMPLEMENTED,
  scopes: (_config, chain) => [{ prefix: statsPrefix(chain), layout: TapStats }],
  createOnPrimary: (config, context) => TapAdmin.of(context).add(configIdOf(config)),
  createOnWorker(config, context, chain) {
    const shared: TapContext = {
      clock: context.clock,
      memory: context.memory,
      random: context.random,
      recordsTime: config.record_headers_received_time ?? false,
      recordsConnection: config.record_downstream_connection ?? false,
      stats: context.scope(statsPrefix(chain), TapStats),
    };
    const slot = WorkerTaps.of(context).slot(configIdOf(config));
    return {
      create: (stream) => (slot.active === undefined ? undefined : new TapFilter(shared, stream, slot.active)),
    };
  },
};

function configIdOf(config: TapFilterConfig): string {
  return config.common_config!.admin_config!.config_id!;
}

function statsPrefix({ statPrefix }: HttpChain): string {
  return `${statPrefix}tap.`;
}
