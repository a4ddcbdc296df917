import { defineLayout } from '../../../sdk.js';

/** `http.<stat_prefix>.lua.[<filter's stat_prefix>.]` */
export const LuaStats = defineLayout({
  /** Scripts that have failed. */
  errors: 'counter',
  /** Functions of scripts that were called. */
  executions: 'counter',
});
