// Scope `tracing.skywalking.`, which all SkyWalking tracers share.

import { defineLayout } from '../../sdk.js';

export const STATS_PREFIX = 'tracing.skywalking.';

export const SkyWalkingStats = defineLayout({
  /** Flushes of segments that have waited, and those segments. */
  cache_flushed: 'counter',
  segments_flushed: 'counter',
  segments_sent: 'counter',
  /** Segments that were lost: too many were waiting, or their stream broke. */
  segments_dropped: 'counter',
});
