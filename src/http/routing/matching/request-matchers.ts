// Matchers of requests (xds.type.matcher.v3.Matcher), which a higher room compiles.

import type { StreamInfo } from '../../../access-log/stream/stream-info.js';
import type { Any, MatcherMatcher } from '../../../config/generated/api.js';
import type { HeaderBlock } from '../../headers/header-block.js';

/** Finds an action; undefined: nothing matches. */
export interface RequestMatcher<A> {
  /** `info`: of the request; undefined: only its head is known. */
  find(headers: HeaderBlock, info: StreamInfo | undefined): A | undefined;
}

export interface RequestMatchers {
  /** Compiles a matcher. `action` builds its actions. `where`: its path. Throws a BatonError. */
  compile<A>(config: MatcherMatcher, where: string, action: (config: Any, where: string) => A): RequestMatcher<A>;
}
