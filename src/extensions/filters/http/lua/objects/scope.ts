// How long objects of scripts are usable: a script may keep them, while streams are reused.

import type { StreamInfo } from '../../../../sdk.js';

/** What a script gets that uses an object whose message has gone. */
export const OUT_OF_SCOPE = 'object used outside of proper scope';

/** A stream while a script has it. */
export interface InfoScope {
  /** Throws a LuaError afterwards. */
  readonly info: StreamInfo;
}
