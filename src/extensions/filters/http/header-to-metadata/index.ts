// envoy.filters.http.header_to_metadata: copies header fields and cookies into the dynamic metadata of requests.

import type { HeaderToMetadataConfig } from '../../../../config/generated/api.js';
import { byValue, type HttpFilterExtension, obeyed, reportMistakes } from '../../../sdk.js';
import { HeaderToMetadataFilter } from './header-to-metadata-filter.js';
import { compileRules, type Rules } from './rules.js';
import { RuleStats, scopePrefixOf } from './stats.js';

const MESSAGE = 'envoy.extensions.filters.http.header_to_metadata.v3.Config';

export const headerToMetadata: HttpFilterExtension<HeaderToMetadataConfig> = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.header_to_metadata',
  typeUrls: [`type.googleapis.com/${MESSAGE}`],
  takesOwnMessageFromRoutes: true,
  implemented: {
    [MESSAGE]: obeyed('request_rules', 'response_rules', 'stat_prefix'),
    'envoy.extensions.filters.http.header_to_metadata.v3.Config.Rule': obeyed(
      'header',
      'cookie',
      'on_header_present',
      'on_header_missing',
      'remove',
    ),
    'envoy.extensions.filters.http.header_to_metadata.v3.Config.KeyValuePair': {
      ...obeyed('metadata_namespace', 'key', 'value', 'regex_value_rewrite'),
      type: byValue({ STRING: true, NUMBER: true, PROTOBUF_VALUE: true }),
      encode: byValue({ NONE: true, BASE64: true }),
    },
  },
  validate(config, report, isOfRoute) {
    const { request_rules: request = [], response_rules: response = [] } = config as HeaderToMetadataConfig;
    if (isOfRoute && request.length + response.length === 0)
      report('', 'request_rules or response_rules must be set: a route has its own rules');
    reportMistakes(report, '', () => compileRules(config as HeaderToMetadataConfig, ''));
  },
  scopes({ stat_prefix: token }) {
    const prefix = scopePrefixOf(token);
    return prefix === undefined ? [] : [{ prefix, layout: RuleStats }];
  },
  createOnWorker(config, context) {
    const own = compileRules(config, '');
    const prefix = scopePrefixOf(config.stat_prefix);
    const stats = prefix === undefined ? undefined : context.scope(prefix, RuleStats);
    return {
      create: (stream, ofRoute) => HeaderToMetadataFilter.of(stream, (ofRoute as Rules | undefined) ?? own, stats),
    };
  },
  /** The most specific configuration applies. */
  compileRouteConfig: (configs, where) => compileRules(configs.at(-1) as HeaderToMetadataConfig, where),
};
