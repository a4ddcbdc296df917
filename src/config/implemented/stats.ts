// Implemented fields of the configuration of stats.

import { accepted, type ImplementedTable, obeyed, onlyFalse } from './table.js';

export const STATS: ImplementedTable = {
  'envoy.config.metrics.v3.StatsConfig': {
    ...obeyed('stats_tags', 'use_all_default_tags', 'stats_matcher', 'histogram_bucket_settings'),
    allow_default_tag_overrides: onlyFalse('give the tag a name that no default tag has'),
  },
  'envoy.config.metrics.v3.TagSpecifier': obeyed('tag_name', 'regex', 'fixed_value'),
  'envoy.config.metrics.v3.StatsMatcher': obeyed('reject_all', 'exclusion_list', 'inclusion_list'),
  'envoy.config.metrics.v3.HistogramBucketSettings': {
    match: true,
    buckets: true,
    bins: accepted('the size of a histogram depends on its values'),
  },
  'envoy.type.matcher.v3.ListStringMatcher': obeyed('patterns'),
};
