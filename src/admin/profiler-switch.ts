// The parameter that starts and stops a profiler, shared by the three profiler endpoints.

import { type AdminParameter, Refusal } from './admin-handler.js';
import type { QueryParameters } from './http/messages/query-parameters.js';

export const ENABLE: AdminParameter = { name: 'enable', help: 'Starts the profiler, or ends it', choices: ['y', 'n'] };

/** Gzipped pprof protobuf, which clients must not decompress in transit. */
export const PROFILE_TYPE = 'application/octet-stream';

/**
 * Returns whether to start the profiler. Throws a Refusal unless `enable` with y or n is the only parameter (FACTS §2.17).
 */
export function isEnabling(query: QueryParameters): boolean {
  const value = query.get('enable');
  const isOnly = [...query.entries()].length === 1;
  if (!isOnly || (value !== 'y' && value !== 'n')) throw new Refusal(400, '?enable=<y|n>\n');
  return value === 'y';
}
