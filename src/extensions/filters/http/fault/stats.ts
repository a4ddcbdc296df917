// `http.<stat_prefix>.fault.`: what was injected. Names with the cluster that a request says it comes from appear with it.

import { defineLayout } from '../../../sdk.js';

export const FaultStats = defineLayout({
  delays_injected: 'counter',
  aborts_injected: 'counter',
  response_rl_injected: 'counter',
  faults_overflow: 'counter',
  active_faults: 'gauge',
});
