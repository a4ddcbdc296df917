// envoy.filters.http.compressor: compresses responses for clients that accept it, and requests to hosts.

import type { Compressor, CompressorPerRoute } from '../../../../config/generated/api.js';
import { compressionLibrary } from '../../../compression/libraries.js';
import {
  type HttpChain,
  type HttpFilterExtension,
  obeyed,
  type Report,
  Runtime,
  reportMistakes,
  scopePrefix,
  unpack,
} from '../../../sdk.js';
import { ChainEncodings } from './chain-encodings.js';
import { CompressorFilter, type CompressorStats } from './compressor-filter.js';
import { compileRoute, compileRules, type RouteRules } from './rules.js';
import { BodyStats, ResponseStats, UndirectedStats } from './stats.js';

const PACKAGE = 'envoy.extensions.filters.http.compressor.v3';
const FILTER = `${PACKAGE}.Compressor`;

export const compressor: HttpFilterExtension<Compressor> = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.compressor',
  runsUpstream: true,
  typeUrls: [`type.googleapis.com/${FILTER}`, `type.googleapis.com/${PACKAGE}.CompressorPerRoute`],
  implemented: {
    'envoy.extensions.filters.http.compressor.v3.Compressor': obeyed(
      'content_length',
      'content_type',
      'disable_on_etag_header',
      'remove_accept_encoding_header',
      'runtime_enabled',
      'compressor_library',
      'request_direction_config',
      'response_direction_config',
      'choose_first',
    ),
    'envoy.extensions.filters.http.compressor.v3.Compressor.CommonDirectionConfig': obeyed(
      'enabled',
      'min_content_length',
      'content_type',
      'content_type_matcher',
    ),
    'envoy.extensions.filters.http.compressor.v3.Compressor.RequestDirectionConfig': obeyed('common_config'),
    'envoy.extensions.filters.http.compressor.v3.Compressor.ResponseDirectionConfig': obeyed(
      'common_config',
      'disable_on_etag_header',
      'weaken_etag_on_compress',
      'remove_accept_encoding_header',
      'uncompressible_response_codes',
      'status_header_enabled',
    ),
    'envoy.extensions.filters.http.compressor.v3.CompressorPerRoute': obeyed('disabled', 'overrides'),
    'envoy.extensions.filters.http.compressor.v3.CompressorOverrides': obeyed(
      'response_direction_config',
      'compressor_library',
    ),
    'envoy.extensions.filters.http.compressor.v3.ResponseDirectionOverrides': obeyed('remove_accept_encoding_header'),
  },
  validate(config, report) {
    const filter = unpack(config, FILTER);
    if (filter !== undefined) check(filter, report);
  },
  scopes: (config, chain) => {
    const prefix = statsPrefix(config, chain);
    const request = { prefix: `${prefix}request.`, layout: BodyStats };
    if (config.response_direction_config === undefined) return [request, { prefix, layout: UndirectedStats }];
    return [request, { prefix, layout: ResponseStats }, { prefix: `${prefix}response.`, layout: BodyStats }];
  },
  createOnWorker(config, context, chain) {
    const rules = compileRules(config, context.runtime);
    const prefix = statsPrefix(config, chain);
    const isDirected = config.response_direction_config !== undefined;
    const response = context.scope(prefix, isDirected ? ResponseStats : UndirectedStats);
    const stats: CompressorStats = {
      response,
      requestBodies: context.scope(`${prefix}request.`, BodyStats),
      responseBodies: isDirected ? context.scope(`${prefix}response.`, BodyStats) : response,
      responseBodySlots: isDirected ? BodyStats.at : UndirectedStats.at,
    };
    return {
      create(stream, route) {
        const encodings = ChainEncodings.of(stream.info);
        return new CompressorFilter(stream, rules, route as RouteRules | undefined, stats, encodings);
      },
    };
  },
  /** The most specific configuration applies. */
  compileRouteConfig: (configs) => compileRoute(configs.at(-1) as CompressorPerRoute),
};

function check(config: Compressor, report: Report): void {
  reportMistakes(report, '', () => compileRules(config, new Runtime()));
  if (config.response_direction_config === undefined) return;
  for (const field of DEPRECATED) {
    if (config[field] !== undefined) report(field, 'response_direction_config replaces it: leave it out');
  }
}

const DEPRECATED = [
  'content_length',
  'content_type',
  'disable_on_etag_header',
  'remove_accept_encoding_header',
  'runtime_enabled',
] as const;

function statsPrefix({ compressor_library: library }: Compressor, { statPrefix }: HttpChain): string {
  return `${statPrefix}compressor.${scopePrefix(library!.name ?? '')}.${compressionLibrary(library!).statName}.`;
}
