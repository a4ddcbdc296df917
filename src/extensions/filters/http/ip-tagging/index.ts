// envoy.filters.http.ip_tagging: tags requests by the address of their client.

import type { IPTagging } from '../../../../config/generated/api.js';
import {
  byValue,
  type HttpChain,
  type HttpFilterExtension,
  headerKey,
  obeyed,
  RangeTable,
  refused,
  reportMistakes,
  settableKey,
} from '../../../sdk.js';
import { IpTaggingFilter, TaggingStats } from './ip-tagging-filter.js';
import { tagsOf } from './tags.js';

const FILTER = 'envoy.extensions.filters.http.ip_tagging.v3.IPTagging';
const ALWAYS = { numerator: 100 } as const;

export const ipTagging: HttpFilterExtension<IPTagging> = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.ip_tagging',
  typeUrls: [`type.googleapis.com/${FILTER}`],
  implemented: {
    [FILTER]: {
      request_type: byValue({ BOTH: true, INTERNAL: true, EXTERNAL: true }),
      ...obeyed('ip_tags', 'ip_tag_header'),
      ip_tags_datasource: refused('put the tags into ip_tags'),
    },
    [`${FILTER}.IPTag`]: obeyed('ip_tag_name', 'ip_list'),
    [`${FILTER}.IpTagHeader`]: {
      header: true,
      action: byValue({ SANITIZE: true, APPEND_IF_EXISTS_OR_ADD: true }),
    },
  },
  validate(message, report) {
    const config = message as IPTagging;
    const { header } = config.ip_tag_header ?? {};
    if ((config.ip_tags ?? []).length === 0) report('ip_tags', 'it needs at least one tag');
    if (header !== undefined) reportMistakes(report, 'ip_tag_header.header', () => settableKey(header));
    reportMistakes(report, '', () => tagsOf(config));
  },
  scopes: (_config, chain) => [{ prefix: prefixOf(chain), layout: TaggingStats }],
  createOnWorker(config, { random, runtime, scope, stats }, chain) {
    const enabled = runtime.fraction('ip_tagging.http_filter_enabled', ALWAYS);
    const prefix = prefixOf(chain);
    const { ranges, names } = tagsOf(config);
    const rules = {
      table: new RangeTable(ranges),
      hits: new Map(names.map((name) => [name, stats.dynamicCounter(prefix, `${name}.hit`)])),
      stats: scope(prefix, TaggingStats),
      type: config.request_type ?? 'BOTH',
      header: config.ip_tag_header && headerKey(config.ip_tag_header.header!),
      appends: config.ip_tag_header?.action === 'APPEND_IF_EXISTS_OR_ADD',
    };
    return { create: (stream) => (enabled.isHit(random) ? new IpTaggingFilter(stream, rules) : undefined) };
  },
};

function prefixOf({ statPrefix }: HttpChain): string {
  return `${statPrefix}ip_tagging.`;
}
