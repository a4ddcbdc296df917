import { defineLayout } from '../../../sdk.js';

/** `http.<stat_prefix>.script.<module>.` */
export const ScriptFilterStats = defineLayout({
  /** Replies of hooks. */
  replies: 'counter',
  /** Hooks that have thrown, or whose promises were rejected. */
  errors: 'counter',
  /** Hooks that have held a message for too long. */
  timeouts: 'counter',
});

export const RESERVED_NAMES = Object.keys(ScriptFilterStats.at);
