// Stats of routes with a stat_prefix, and of virtual clusters.
//
// Scopes `vhost.<virtual host>.route.<stat_prefix>.` and `vhost.<virtual host>.vcluster.<name>.`. Traffic creates upstream_rq_<code>,
// upstream_rq_<class>, upstream_rq_completed and upstream_rq_time.

import { defineLayout } from '../layout.js';

export const RouteStats = defineLayout({
  upstream_rq_retry: 'counter',
  upstream_rq_retry_limit_exceeded: 'counter',
  upstream_rq_retry_overflow: 'counter',
  upstream_rq_retry_success: 'counter',
  upstream_rq_timeout: 'counter',
  upstream_rq_total: 'counter',
});
