// Stats of reloads of the configuration.

import { defineLayout } from '../layout.js';

/** Scope `config_reload.`, from the first reload on, or from the start with --watch-config. */
export const ConfigReloadStats = defineLayout({
  /** Reloads that were to apply what differs; each ends as one of the following three. */
  update_attempt: 'counter',
  update_success: 'counter',
  /** It could not be applied, and everything is as it was. */
  update_failure: 'counter',
  /** The configuration was refused, or a part of it needs a restart. */
  update_rejected: 'counter',
  dry_run: 'counter',
  /** Of the last success, in milliseconds since the epoch. */
  update_time: 'own_gauge',
});
