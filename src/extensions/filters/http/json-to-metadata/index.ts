// envoy.filters.http.json_to_metadata: copies values of JSON bodies into the dynamic metadata of requests.

import type { JsonToMetadata } from '../../../../config/generated/api.js';
import { byValue, type HttpFilterExtension, obeyed, reportMistakes } from '../../../sdk.js';
import { BodyStats, JsonToMetadataFilter } from './json-to-metadata-filter.js';
import { type CompiledRules, compileRules } from './rules.js';

const MESSAGE = 'envoy.extensions.filters.http.json_to_metadata.v3.JsonToMetadata';
const SCOPE = 'json_to_metadata.';

export const jsonToMetadata: HttpFilterExtension<JsonToMetadata> = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.json_to_metadata',
  typeUrls: [`type.googleapis.com/${MESSAGE}`],
  takesOwnMessageFromRoutes: true,
  implemented: {
    'envoy.extensions.filters.http.json_to_metadata.v3.JsonToMetadata': obeyed('request_rules', 'response_rules'),
    'envoy.extensions.filters.http.json_to_metadata.v3.JsonToMetadata.MatchRules': obeyed(
      'rules',
      'allow_content_types',
      'allow_empty_content_type',
      'allow_content_types_regex',
    ),
    'envoy.extensions.filters.http.json_to_metadata.v3.JsonToMetadata.Rule': obeyed(
      'selectors',
      'on_present',
      'on_missing',
      'on_error',
    ),
    'envoy.extensions.filters.http.json_to_metadata.v3.JsonToMetadata.Selector': obeyed('key'),
    'envoy.extensions.filters.http.json_to_metadata.v3.JsonToMetadata.KeyValuePair': {
      ...obeyed('metadata_namespace', 'key', 'value', 'preserve_existing_metadata_value'),
      type: byValue({ PROTOBUF_VALUE: true, STRING: true, NUMBER: true }),
    },
  },
  validate(config, report) {
    const { request_rules: request, response_rules: response } = config as JsonToMetadata;
    if (request === undefined && response === undefined) report('', 'request_rules or response_rules must be set');
    reportMistakes(report, '', () => compileRules(config as JsonToMetadata, ''));
  },
  scopes: () => [{ prefix: SCOPE, layout: BodyStats }],
  createOnWorker(config, context) {
    const own = compileRules(config, '');
    const stats = context.scope(SCOPE, BodyStats);
    return {
      create: (stream, ofRoute) =>
        new JsonToMetadataFilter(stream, (ofRoute as CompiledRules | undefined) ?? own, context.memory, stats),
    };
  },
  /** The most specific configuration applies. */
  compileRouteConfig: (configs, where) => compileRules(configs.at(-1) as JsonToMetadata, where),
};
