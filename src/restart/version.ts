// Which processes can restart into each other.

import { SCHEMA } from './schema.js';

/** How the processes speak with each other; a change that the schema does not show raises it. */
const PROTOCOL = 2;

/**
 * What --hot-restart-version prints and GET /hot_restart_version answers: `<protocol>.<size of the schema>` (FACTS §2.10).
 * Processes with equal values are compatible.
 */
export const HOT_RESTART_VERSION: string = `${PROTOCOL}.${JSON.stringify(SCHEMA).length}`;

/** What is shown with --disable-hot-restart. */
const HOT_RESTART_DISABLED = 'disabled';

/** What this process shows. */
export function hotRestartVersion(isDisabled: boolean): string {
  return isDisabled ? HOT_RESTART_DISABLED : HOT_RESTART_VERSION;
}
