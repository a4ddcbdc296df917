// Scope `tracing.datadog.`, which all Datadog tracers share.

import { defineLayout } from '../../sdk.js';

export const STATS_PREFIX = 'tracing.datadog.';

export const DatadogStats = defineLayout({
  /** Reports for which there was no cluster. */
  reports_skipped_no_cluster: 'counter',
  /** Reports that the agent has accepted. */
  reports_sent: 'counter',
  /** Reports that the agent has refused, and traces that were lost because too many were collected. */
  reports_dropped: 'counter',
  /** Reports without an answer. */
  reports_failed: 'counter',
});
