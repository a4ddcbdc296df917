// The matchers of requests that routes have.

import { StreamInfo } from '../access-log/stream/stream-info.js';
import type { RequestMatchers } from '../http/routing/matching/request-matchers.js';
import type { ThreadStats } from '../stats/thread-stats.js';
import { compileMatcher } from './filters/common/matching/matcher.js';

/** Of a request of which only the head is known. */
const UNKNOWN = new StreamInfo();

/** `stats`: for counters of matchers; undefined: they count nothing. */
export function requestMatchers(stats: ThreadStats | undefined): RequestMatchers {
  return {
    compile(config, where, action) {
      const tree = compileMatcher(config, where, { isHttp: true, action });
      return { find: (headers, info = UNKNOWN) => tree.find({ headers, info, stats }) };
    },
  };
}
