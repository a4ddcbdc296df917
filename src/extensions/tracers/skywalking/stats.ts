// Scope `tracing.skywalking.`, which all SkyWalking tracers share.

import { defineLayout } from '../../sdk.js';

export const STATS_PREFIX = 'tracing.skywalking.';

export const SkyWalkingStats = defineLayout({
  /** Flushes of waiting segments, and the segments in them. */
  cache_flushed: 'counter',
  segments_flushed: 'counter',
  segments_sent: 'counter',
  /** Segments that were lost: too many were waiting, or their stream broke. */
  segments_dropped: 'counter',
});
