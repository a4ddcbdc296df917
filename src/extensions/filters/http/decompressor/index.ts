// envoy.filters.http.decompressor: decompresses requests for hosts, and responses for clients.

import type { Decompressor, Decompressor_CommonDirectionConfig } from '../../../../config/generated/api.js';
import { decompressionLibrary } from '../../../compression/libraries.js';
import {
  type HttpChain,
  type HttpFilterExtension,
  headerKey,
  obeyed,
  reportMistakes,
  scopePrefix,
  type WorkerContext,
} from '../../../sdk.js';
import { DecompressorFilter, type DecompressorRules, type DirectionRules } from './decompressor-filter.js';
import { BodyStats } from './stats.js';

const FILTER = 'envoy.extensions.filters.http.decompressor.v3.Decompressor';

export const decompressor: HttpFilterExtension<Decompressor> = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.decompressor',
  typeUrls: [`type.googleapis.com/${FILTER}`],
  implemented: {
    'envoy.extensions.filters.http.decompressor.v3.Decompressor': obeyed(
      'decompressor_library',
      'request_direction_config',
      'response_direction_config',
    ),
    'envoy.extensions.filters.http.decompressor.v3.Decompressor.CommonDirectionConfig': obeyed(
      'enabled',
      'ignore_no_transform_header',
    ),
    'envoy.extensions.filters.http.decompressor.v3.Decompressor.RequestDirectionConfig': obeyed(
      'common_config',
      'advertise_accept_encoding',
    ),
    'envoy.extensions.filters.http.decompressor.v3.Decompressor.ResponseDirectionConfig': obeyed('common_config'),
  },
  validate(config, report) {
    // Its name becomes a part of the names of trailers.
    reportMistakes(report, 'decompressor_library.name', () => trailerOf(config as Decompressor, 'compressed'));
  },
  scopes: (config, chain) => {
    const prefix = statsPrefix(config, chain);
    return [
      { prefix: `${prefix}request.`, layout: BodyStats },
      { prefix: `${prefix}response.`, layout: BodyStats },
    ];
  },
  createOnWorker(config, context, chain) {
    const { request_direction_config: request, response_direction_config: response } = config;
    const prefix = statsPrefix(config, chain);
    const library = decompressionLibrary(config.decompressor_library!);
    const rules: DecompressorRules = {
      library,
      request: directionOf(request?.common_config, context, `${prefix}request.`),
      response: directionOf(response?.common_config, context, `${prefix}response.`),
      advertises: request?.advertise_accept_encoding ?? true,
      compressedTrailer: trailerOf(config, 'compressed'),
      uncompressedTrailer: trailerOf(config, 'uncompressed'),
      invalidBodies: () => context.stats.dynamicCounter(prefix, `decompressor_library.${library.errorStat}`),
    };
    return { create: (stream) => new DecompressorFilter(stream, rules) };
  },
};

function directionOf(
  { enabled, ignore_no_transform_header: ignores = false }: Decompressor_CommonDirectionConfig = {},
  context: WorkerContext,
  prefix: string,
): DirectionRules {
  return {
    enabled: context.runtime.flag(enabled, true),
    ignoresNoTransform: ignores,
    stats: context.scope(prefix, BodyStats),
  };
}

function trailerOf({ decompressor_library: library }: Decompressor, kind: string) {
  return headerKey(`x-envoy-decompressor-${library?.name ?? ''}-${kind}-bytes`);
}

function statsPrefix({ decompressor_library: library }: Decompressor, { statPrefix }: HttpChain): string {
  return `${statPrefix}decompressor.${scopePrefix(library!.name ?? '')}.${decompressionLibrary(library!).statName}.`;
}
