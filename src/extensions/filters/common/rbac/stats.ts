// Names of the stats, as in Envoy.

import { defineLayout } from '../../../sdk.js';

export const RulesStats = defineLayout({ allowed: 'counter', denied: 'counter' });
export const ShadowStats = defineLayout({ shadow_allowed: 'counter', shadow_denied: 'counter' });

/** `base`: of the filter, with or without a dot behind it; `own`: of its rules or shadow rules. */
export function statsPrefix(base: string, own = ''): string {
  return `${dotted(base)}rbac.${dotted(own)}`;
}

function dotted(prefix: string): string {
  return prefix === '' || prefix.endsWith('.') ? prefix : `${prefix}.`;
}
