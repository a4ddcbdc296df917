// Stats of the extensions that modules define.

import { defineLayout } from '../sdk.js';

/** `http.<stat_prefix>.script.<module>.` and the like. */
export const ScriptFilterStats = defineLayout({
  /** Replies of hooks; connections that hooks have closed. */
  replies: 'counter',
  /** Hooks that have thrown, or whose promises were rejected. */
  errors: 'counter',
  /** Hooks that have held a message or a connection for too long. */
  timeouts: 'counter',
});

export const RESERVED_NAMES = Object.keys(ScriptFilterStats.at);
