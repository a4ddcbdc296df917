// What a filter of an access log is (AccessLog.filter): a condition on a stream, made once from its configuration.

import { noNeeds } from '../../access-log/formats/format.js';
import type { HeaderNeeds } from '../../access-log/operators/operator.js';
import type { StreamInfo } from '../../access-log/stream/stream-info.js';
import type { Random } from '../../common/random.js';
import type { AccessLogType } from '../../config/generated/api.js';
import type { Runtime } from '../../runtime/runtime.js';

export interface LogFilter {
  /** Header names that it reads: their heads must still be there. */
  readonly needs: HeaderNeeds;
  /** Whether the stream, as far as it is known, is one that is asked for. */
  matches(info: StreamInfo): boolean;
}

export interface LogFilterContext {
  readonly runtime: Runtime;
  readonly random: Random;
  /** Of all records that the filter is asked about. */
  readonly recordType: AccessLogType;
}

/** For filters that read no headers. */
export const NO_NEEDS: HeaderNeeds = noNeeds();

/** What several filters read together. */
export function needsOfAll(all: readonly { readonly needs: HeaderNeeds }[]): HeaderNeeds {
  const sum = noNeeds();
  for (const { needs } of all) {
    for (const head of ['request', 'response', 'trailers'] as const)
      for (const name of needs[head]) sum[head].add(name);
  }
  return sum;
}
