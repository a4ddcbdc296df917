// A script that runs on this thread.

import type { LuaVm } from '../../../sdk.js';
import type { PublicKeys } from './objects/public-key.js';

export interface LoadedScript {
  readonly vm: LuaVm;
  readonly keys: PublicKeys;
  /** References of envoy_on_request and envoy_on_response, or NO_FUNCTION. */
  readonly onRequest: number;
  readonly onResponse: number;
}
