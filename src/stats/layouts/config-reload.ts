// Stats of configuration reloads.

import { defineLayout } from '../layout.js';

/** Scope `config_reload.`, from the first reload, or from the start with --watch-config. */
export const ConfigReloadStats = defineLayout({
  /** Reloads that had to apply changes; each ends in one of the following three. */
  update_attempt: 'counter',
  update_success: 'counter',
  /** The changes could not be applied; everything is unchanged. */
  update_failure: 'counter',
  /** The configuration was refused, or a part of it requires a restart. */
  update_rejected: 'counter',
  dry_run: 'counter',
  /** Time of the last success, in milliseconds since 1970. */
  update_time: 'own_gauge',
});
