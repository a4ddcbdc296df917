// Scopes `http.<stat_prefix>.geoip.`, `http.<stat_prefix>.maxmind.<kind>_db.` of each database, and
// `maxmind.<kind>_db.<path>.` of each file.

import { defineLayout } from '../../../sdk.js';

export const GeoipStats = defineLayout({ total: 'counter', skipped: 'counter' });

export const DatabaseStats = defineLayout({
  total: 'counter',
  hit: 'counter',
  lookup_error: 'counter',
});

export const FileStats = defineLayout({
  db_reload_success: 'counter',
  db_reload_error: 'counter',
  db_build_epoch: 'own_gauge',
});
