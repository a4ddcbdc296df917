// The stats of both RBAC filters, named as in Envoy.

import { defineLayout } from '../../../sdk.js';

export const RulesStats = defineLayout({ allowed: 'counter', denied: 'counter' });
export const ShadowStats = defineLayout({ shadow_allowed: 'counter', shadow_denied: 'counter' });

/** `base`: prefix of the filter, with or without a trailing dot; `own`: rules_stat_prefix or shadow_rules_stat_prefix. */
export function statsPrefix(base: string, own = ''): string {
  return `${dotted(base)}rbac.${dotted(own)}`;
}

function dotted(prefix: string): string {
  return prefix === '' || prefix.endsWith('.') ? prefix : `${prefix}.`;
}
