// The interface of access log filters (AccessLog.filter): a compiled condition on a stream.

import { noHeaderNeeds } from '../../access-log/formats/format.js';
import type { HeaderNeeds } from '../../access-log/operators/operator.js';
import type { StreamInfo } from '../../access-log/stream/stream-info.js';
import type { Random } from '../../common/random.js';
import type { AccessLogType } from '../../config/generated/api.js';
import type { Runtime } from '../../runtime/runtime.js';

export interface LogFilter {
  /** Header names that the filter reads: their heads must be kept. */
  readonly needs: HeaderNeeds;
  /** Returns whether the stream, in its current state, matches. */
  matches(info: StreamInfo): boolean;
}

export interface LogFilterContext {
  readonly runtime: Runtime;
  readonly random: Random;
  /** The type of all records that the filter is used for. */
  readonly recordType: AccessLogType;
}

/** For filters that read no headers. */
export const NO_NEEDS: HeaderNeeds = noHeaderNeeds();

/** Returns the union of the needs. */
export function needsOfAll(all: readonly { readonly needs: HeaderNeeds }[]): HeaderNeeds {
  const sum = noHeaderNeeds();
  for (const { needs } of all) {
    for (const head of ['request', 'response', 'trailers'] as const)
      for (const name of needs[head]) sum[head].add(name);
    if (needs.wireBytes === true) sum.wireBytes = true;
  }
  return sum;
}
