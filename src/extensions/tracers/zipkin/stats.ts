// Scope `tracing.zipkin.`, which all Zipkin tracers share.

import { defineLayout } from '../../sdk.js';

export const STATS_PREFIX = 'tracing.zipkin.';

export const ZipkinStats = defineLayout({
  /** Spans that were passed to a report. */
  spans_sent: 'counter',
  timer_flushed: 'counter',
  /** Reports for which there was no cluster. */
  reports_skipped_no_cluster: 'counter',
  /** Reports that the collector has accepted. */
  reports_sent: 'counter',
  /** Reports that the collector has refused, and spans that were lost because too many were collected. */
  reports_dropped: 'counter',
  /** Reports without an answer. */
  reports_failed: 'counter',
});
