// Scope `http.<stat_prefix>.jwt_authn.`, followed by the filter's stat_prefix if it has one.

import { defineLayout } from '../../../sdk.js';

export const JwtStats = defineLayout({
  allowed: 'counter',
  denied: 'counter',
  cors_preflight_bypassed: 'counter',
  jwks_fetch_success: 'counter',
  jwks_fetch_failed: 'counter',
  jwt_cache_hit: 'counter',
  jwt_cache_miss: 'counter',
});
