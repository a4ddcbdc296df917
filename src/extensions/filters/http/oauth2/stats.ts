// The stats of the oauth2 filter, with Envoy's names.

import { defineLayout, type Scope, type ThreadStats } from '../../../sdk.js';

export const OAuthLayout = defineLayout({
  oauth_allow_failed_passthrough: 'counter',
  oauth_failure: 'counter',
  oauth_legacy_cbc_decrypt: 'counter',
  oauth_passthrough: 'counter',
  oauth_refreshtoken_failure: 'counter',
  oauth_refreshtoken_success: 'counter',
  oauth_success: 'counter',
  oauth_token_cookie_chunked: 'counter',
  oauth_token_cookie_malformed_chunks: 'counter',
  oauth_token_cookie_oversized: 'counter',
  oauth_token_cookie_reassembled: 'counter',
  oauth_unauthorized_rq: 'counter',
});

type Name = keyof typeof OAuthLayout.at;

/** The counters of one configuration. */
export type OAuthStats = Readonly<Record<Name, { increment(): void }>>;

/** Returns a prefix with the dot at its end; '' without a prefix. */
export function withDot(prefix: string): string {
  return prefix === '' || prefix.endsWith('.') ? prefix : `${prefix}.`;
}

export function scopeStats(scope: Scope): OAuthStats {
  return statsOf((name) => ({ increment: () => scope.increment(OAuthLayout.at[name]) }));
}

/** Returns the counters of a route, which appear with its first request. */
export function routeStats(prefix: string, stats: ThreadStats): OAuthStats {
  return statsOf((name) => stats.dynamicCounter(withDot(prefix), name));
}

function statsOf(counter: (name: Name) => { increment(): void }): OAuthStats {
  const names = Object.keys(OAuthLayout.at) as Name[];
  return Object.fromEntries(names.map((name) => [name, counter(name)])) as unknown as OAuthStats;
}
