// Scope `http.<stat_prefix>.fault.`: injected faults. Names that contain a request's downstream cluster are created on first use.

import { defineLayout } from '../../../sdk.js';

export const FaultStats = defineLayout({
  delays_injected: 'counter',
  aborts_injected: 'counter',
  response_rl_injected: 'counter',
  faults_overflow: 'counter',
  active_faults: 'gauge',
});
