// Scope `tracing.opentelemetry.`, which all OpenTelemetry tracers share.

import { defineLayout } from '../../sdk.js';

export const STATS_PREFIX = 'tracing.opentelemetry.';

export const OpenTelemetryStats = defineLayout({
  /** Spans that were passed to an export. */
  spans_sent: 'counter',
  /** Spans that were lost: too many were collected, or the collector did not accept them. */
  spans_dropped: 'counter',
  timer_flushed: 'counter',
});
