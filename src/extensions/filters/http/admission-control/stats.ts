// Scope `http.<stat_prefix>.admission_control.`

import { defineLayout } from '../../../sdk.js';

export const AdmissionStats = defineLayout({
  rq_rejected: 'counter',
  rq_success: 'counter',
  rq_failure: 'counter',
});
