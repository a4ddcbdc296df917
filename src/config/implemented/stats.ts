// Implemented fields of the configuration of stats.

import { ALL, type ImplementedTable } from './table.js';

export const STATS: ImplementedTable = {
  'envoy.config.metrics.v3.StatsConfig': ALL,
  'envoy.config.metrics.v3.TagSpecifier': ALL,
  'envoy.config.metrics.v3.StatsMatcher': ALL,
  'envoy.config.metrics.v3.HistogramBucketSettings': ALL,
  'envoy.type.matcher.v3.ListStringMatcher': ALL,
};
