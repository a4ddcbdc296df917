// Stats of load reports.

import { defineLayout } from '../layout.js';

/** Scope `load_reporter.`. As in Envoy, `requests` are those of the service, which `responses` of this server answer. */
export const LoadReporterStats = defineLayout({
  errors: 'counter',
  requests: 'counter',
  responses: 'counter',
  retries: 'counter',
});
