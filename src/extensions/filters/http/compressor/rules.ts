// The compiled configuration of a compressor.

import type {
  Compressor,
  Compressor_CommonDirectionConfig,
  CompressorPerRoute,
} from '../../../../config/generated/api.js';
import { compressionLibrary } from '../../../compression/libraries.js';
import type { CompressionLibrary } from '../../../compression/library.js';
import { compileStringMatcher, type Runtime, type RuntimeFlag, type StringRule } from '../../../sdk.js';

const DEFAULT_MIN_LENGTH = 30;

const DEFAULT_TYPES: readonly string[] = [
  'application/javascript',
  'application/json',
  'application/xhtml+xml',
  'image/svg+xml',
  'text/css',
  'text/html',
  'text/plain',
  'text/xml',
];

/** Which bodies of one direction are compressed. */
export interface DirectionRules {
  readonly enabled: RuntimeFlag;
  readonly minLength: number;
  readonly types: ContentTypes;
}

export interface CompressorRules {
  readonly library: CompressionLibrary;
  readonly isPreferred: boolean;
  /** Undefined: requests are not compressed. */
  readonly request: DirectionRules | undefined;
  readonly response: DirectionRules;
  readonly disablesOnEtag: boolean;
  readonly weakensEtag: boolean;
  readonly removesAcceptEncoding: boolean;
  readonly uncompressibleStatuses: ReadonlySet<number>;
  readonly addsStatusHeader: boolean;
}

/** What a route changes. */
export interface RouteRules {
  /** Undefined: as configured. */
  readonly isEnabled: boolean | undefined;
  readonly removesAcceptEncoding: boolean | undefined;
  readonly library: CompressionLibrary | undefined;
}

/** Throws a BatonError with the path of a mistake. */
export function compileRules(config: Compressor, runtime: Runtime): CompressorRules {
  const request = config.request_direction_config;
  const response = config.response_direction_config ?? deprecatedResponse(config);
  const at = 'response_direction_config.common_config';
  return {
    library: compressionLibrary(config.compressor_library!),
    isPreferred: config.choose_first ?? false,
    request: request && directionOf(request.common_config, runtime, 'request_direction_config.common_config'),
    response: directionOf(response.common_config, runtime, at),
    disablesOnEtag: response.disable_on_etag_header ?? false,
    weakensEtag: response.weaken_etag_on_compress ?? false,
    removesAcceptEncoding: response.remove_accept_encoding_header ?? false,
    uncompressibleStatuses: new Set(response.uncompressible_response_codes),
    addsStatusHeader: response.status_header_enabled ?? false,
  };
}

export function compileRoute({ disabled, overrides }: CompressorPerRoute): RouteRules {
  const response = overrides?.response_direction_config;
  const library = overrides?.compressor_library;
  return {
    isEnabled: disabled === true ? false : response && true,
    removesAcceptEncoding: response?.remove_accept_encoding_header,
    library: library && compressionLibrary(library),
  };
}

type ResponseDirection = NonNullable<Compressor['response_direction_config']>;

/** The fields that response_direction_config has replaced. */
function deprecatedResponse(config: Compressor): ResponseDirection {
  return {
    common_config: {
      ...(config.runtime_enabled === undefined ? {} : { enabled: config.runtime_enabled }),
      ...(config.content_length === undefined ? {} : { min_content_length: config.content_length }),
      ...(config.content_type === undefined ? {} : { content_type: config.content_type }),
    },
    disable_on_etag_header: config.disable_on_etag_header ?? false,
    remove_accept_encoding_header: config.remove_accept_encoding_header ?? false,
  };
}

function directionOf(config: Compressor_CommonDirectionConfig = {}, runtime: Runtime, where: string): DirectionRules {
  return {
    enabled: runtime.flag(config.enabled, true),
    minLength: config.min_content_length ?? DEFAULT_MIN_LENGTH,
    types: new ContentTypes(config, where),
  };
}

export class ContentTypes {
  readonly #names: ReadonlySet<string>;
  readonly #rules: readonly StringRule[];

  constructor(
    { content_type: names = [], content_type_matcher: rules = [] }: Compressor_CommonDirectionConfig,
    where: string,
  ) {
    const list = names.length === 0 ? DEFAULT_TYPES : names;
    // As in Envoy, matchers replace the list.
    this.#names = new Set(rules.length > 0 ? [] : list.map((name) => name.toLowerCase()));
    this.#rules = rules.map((rule, index) => compileStringMatcher(rule, `${where}.content_type_matcher[${index}]`));
  }

  /** `contentType`: undefined without the header, which allows compression. */
  allow(contentType: string | undefined): boolean {
    if (contentType === undefined) return true;
    const type = contentType.split(';', 1)[0]!.trim();
    return this.#names.has(type.toLowerCase()) || this.#rules.some((rule) => rule.matchesText(type));
  }
}
