// Stats of the modules of scripts.

import { defineLayout } from '../layout.js';

/** `script.<module>.`, on the primary. */
export const ScriptStats = defineLayout({
  /** Number of the version that serves new requests, from 1. */
  generation: 'gauge',
  reload_success: 'counter',
  /** Versions that were refused, and workers that could not use one: the previous one serves. */
  reload_failure: 'counter',
  /** Exceptions outside of hooks, such as in a timer of Node. They affect no request. */
  uncaught_errors: 'counter',
});
