// envoy.filters.http.tap: shows requests and responses to whoever attaches a tap with POST /tap.

import type { TapTap as TapFilterConfig } from '../../../../config/generated/api.js';
import { type HttpChain, type HttpFilterExtension, type ImplementedTable, refused } from '../../../sdk.js';
import { TapStats } from './stats.js';
import { TapAdmin } from './tap-admin.js';
import { type TapContext, TapFilter } from './tap-filter.js';
import { WorkerTaps } from './worker-taps.js';

/** Of the filter itself, and of what POST /tap takes. */
const IMPLEMENTED: ImplementedTable = {
  'envoy.extensions.filters.http.tap.v3.Tap': 'all',
  'envoy.extensions.common.tap.v3.CommonExtensionConfig': {
    admin_config: true,
    static_config: refused('taps are attached with POST /tap; configure admin_config'),
  },
  'envoy.extensions.common.tap.v3.AdminConfig': 'all',
  'envoy.admin.v3.TapRequest': 'all',
  'envoy.config.tap.v3.TapConfig': { match_config: true, match: true, output_config: true },
  'envoy.config.tap.v3.MatchPredicate': 'all',
  'envoy.config.tap.v3.MatchPredicate.MatchSet': 'all',
  'envoy.config.tap.v3.HttpHeadersMatch': 'all',
  'envoy.config.tap.v3.HttpGenericBodyMatch': 'all',
  'envoy.config.tap.v3.HttpGenericBodyMatch.GenericTextMatch': 'all',
  'envoy.config.common.matcher.v3.MatchPredicate': 'all',
  'envoy.config.common.matcher.v3.MatchPredicate.MatchSet': 'all',
  'envoy.config.common.matcher.v3.HttpHeadersMatch': 'all',
  'envoy.config.common.matcher.v3.HttpGenericBodyMatch': 'all',
  'envoy.config.common.matcher.v3.HttpGenericBodyMatch.GenericTextMatch': 'all',
  'envoy.config.tap.v3.OutputConfig': 'all',
  'envoy.config.tap.v3.OutputSink': {
    format: ['JSON_BODY_AS_BYTES', 'JSON_BODY_AS_STRING', 'PROTO_BINARY_LENGTH_DELIMITED'],
    streaming_admin: true,
    buffered_admin: true,
  },
  'envoy.config.tap.v3.StreamingAdminSink': 'all',
  'envoy.config.tap.v3.BufferedAdminSink': 'all',
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
    const place = WorkerTaps.of(context).place(configIdOf(config));
    return {
      create: (stream) => (place.active === undefined ? undefined : new TapFilter(shared, stream, place.active)),
    };
  },
};

function configIdOf(config: TapFilterConfig): string {
  return config.common_config!.admin_config!.config_id!;
}

function statsPrefix({ statPrefix }: HttpChain): string {
  return `${statPrefix}tap.`;
}
