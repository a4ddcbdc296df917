// Scope `http.<stat_prefix>.health_check.`

import { defineLayout } from '../../../sdk.js';

export const HealthCheckFilterStats = defineLayout({
  request_total: 'counter',
  failed: 'counter',
  ok: 'counter',
  cached_response: 'counter',
  failed_cluster_not_found: 'counter',
  failed_cluster_empty: 'counter',
  failed_cluster_unhealthy: 'counter',
  degraded: 'counter',
});
