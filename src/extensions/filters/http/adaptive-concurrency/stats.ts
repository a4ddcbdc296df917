// Scope `http.<stat_prefix>.adaptive_concurrency.gradient_controller.`

import { defineLayout } from '../../../sdk.js';

export const GradientStats = defineLayout({
  rq_blocked: 'counter',
  burst_queue_size: 'own_gauge',
  concurrency_limit: 'own_gauge',
  gradient: 'own_gauge',
  min_rtt_calculation_active: 'own_gauge',
  min_rtt_msecs: 'own_gauge',
  sample_rtt_msecs: 'own_gauge',
  /** Requests in flight, of all workers. Not in Envoy. */
  rq_outstanding: 'own_gauge',
});
