// Stats of the runtime and its layers.

import { defineLayout } from '../layout.js';

/** Scope `runtime.` */
export const RuntimeStats = defineLayout({
  load_success: 'counter',
  load_error: 'counter',
  override_dir_exists: 'counter',
  override_dir_not_exists: 'counter',
  deprecated_feature_use: 'counter',
  deprecated_feature_seen_since_process_start: 'own_gauge',
  admin_overrides_active: 'own_gauge',
  num_keys: 'own_gauge',
  num_layers: 'own_gauge',
});
