// The version that determines which processes can restart into each other.

import { SCHEMA } from './schema.js';

/** Version of the protocol; raised by changes that do not show in the schema. */
const PROTOCOL = 2;

/**
 * The output of --hot-restart-version and GET /hot_restart_version: `<protocol>.<size of the schema>` (FACTS §2.10). Processes
 * with equal values are compatible.
 */
export const HOT_RESTART_VERSION: string = `${PROTOCOL}.${JSON.stringify(SCHEMA).length}`;

/** The version with --disable-hot-restart. */
const HOT_RESTART_DISABLED = 'disabled';

/** Returns the version of this process. */
export function hotRestartVersion(isDisabled: boolean): string {
  return isDisabled ? HOT_RESTART_DISABLED : HOT_RESTART_VERSION;
}
