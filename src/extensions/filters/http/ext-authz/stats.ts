// Scope `http.<stat_prefix>.ext_authz.`, followed by the filter's stat_prefix if it has one.

import { defineLayout } from '../../../sdk.js';

export const ExtAuthzStats = defineLayout({
  ok: 'counter',
  denied: 'counter',
  error: 'counter',
  failure_mode_allowed: 'counter',
  /** Requests that cannot be changed as the answer demands. */
  invalid: 'counter',
  /** Requests that filter_enabled exempts. */
  disabled: 'counter',
  /** Denials and errors that shadow_mode does not enforce. */
  shadow_denied: 'counter',
  shadow_error: 'counter',
});
