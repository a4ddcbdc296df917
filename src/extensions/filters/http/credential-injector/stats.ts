// The stats of the credential_injector filter.

import { defineLayout } from '../../../sdk.js';

export const InjectorStats = defineLayout({ already_exists: 'counter', failed: 'counter', injected: 'counter' });

/** Stats of the tokens that the filter fetches. */
export const TokenStats = defineLayout({
  token_fetch_failed_on_bad_response_code: 'counter',
  token_fetch_failed_on_bad_token: 'counter',
  token_fetch_failed_on_client_secret: 'counter',
  token_fetch_failed_on_cluster_not_found: 'counter',
  // A request without a response counts as one with a bad code, as in Envoy.
  token_fetch_failed_on_stream_reset: 'counter',
  token_fetched: 'counter',
  token_requested: 'counter',
});
