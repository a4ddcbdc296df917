// Scope `http.<stat_prefix>.ext_authz.`, with the filter's own stat_prefix behind that if it has one.

import { defineLayout } from '../../../sdk.js';

export const ExtAuthzStats = defineLayout({
  ok: 'counter',
  denied: 'counter',
  error: 'counter',
  failure_mode_allowed: 'counter',
  /** Requests that filter_enabled leaves out. */
  disabled: 'counter',
});
