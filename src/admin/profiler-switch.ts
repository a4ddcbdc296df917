// What the three profilers' endpoints have in common: the parameter that switches them.

import { type AdminParameter, Refusal } from './admin-handler.js';
import type { QueryParameters } from './http/messages/query-parameters.js';

export const ENABLE: AdminParameter = { name: 'enable', help: 'Starts the profiler, or ends it', choices: ['y', 'n'] };

/** pprof's protobuf, gzipped: not to be unpacked on the way. */
export const PROFILE_TYPE = 'application/octet-stream';

/** Throws a Refusal unless `enable` with y or n is the only parameter (FACTS §2.17). */
export function isEnabling(query: QueryParameters): boolean {
  const value = query.get('enable');
  const isOnly = [...query.entries()].length === 1;
  if (!isOnly || (value !== 'y' && value !== 'n')) throw new Refusal(400, '?enable=<y|n>\n');
  return value === 'y';
}
