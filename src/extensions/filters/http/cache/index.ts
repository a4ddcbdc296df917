// envoy.filters.http.cache: answers requests with responses that hosts have given before (RFC 9111).

import type { CacheConfig } from '../../../../config/generated/api.js';
import { accepted, type HttpFilterExtension, obeyed, reportMistakes } from '../../../sdk.js';
import { CacheFilter } from './cache-filter.js';
import { MAX_RESPONSE_BYTES, STORE } from './store.js';
import { VaryRules } from './vary.js';

const CONFIG = 'envoy.extensions.filters.http.cache.v3.CacheConfig';
const NO_EFFECT = 'the field has no effect in Envoy either: the key of a response is its whole URL';

export const cache: HttpFilterExtension<CacheConfig> = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.cache',
  typeUrls: [`type.googleapis.com/${CONFIG}`],
  implemented: {
    [CONFIG]: {
      ...obeyed('typed_config', 'disabled', 'allowed_vary_headers', 'max_body_bytes'),
      ignore_request_cache_control_header: true,
      key_creator_params: accepted(NO_EFFECT),
    },
    'envoy.extensions.filters.http.cache.v3.CacheConfig.KeyCreatorParams': {
      exclude_scheme: accepted(NO_EFFECT),
      exclude_host: accepted(NO_EFFECT),
      query_parameters_included: accepted(NO_EFFECT),
      query_parameters_excluded: accepted(NO_EFFECT),
    },
  },
  validate(config, report) {
    const own = config as CacheConfig;
    if (own.typed_config === undefined && own.disabled !== true)
      report('typed_config', 'at least one of typed_config or disabled must be set');
    reportMistakes(report, '', () => void new VaryRules(own));
  },
  createOnWorker(config, { clock, memory }, { bufferLimit, filterName, statPrefix }) {
    if (config.disabled === true) return { create: () => undefined };
    const maxBodyBytes = Math.min(config.max_body_bytes || MAX_RESPONSE_BYTES, MAX_RESPONSE_BYTES);
    const context = {
      ...{ clock, memory, store: STORE, vary: new VaryRules(config), maxBodyBytes, bufferLimit },
      keyPrefix: `${statPrefix}${filterName}`,
      ignoresRequestDirectives: config.ignore_request_cache_control_header ?? false,
    };
    STORE.addUser();
    return {
      create: (stream) => new CacheFilter(context, stream),
      close: () => STORE.removeUser(),
    };
  },
};
