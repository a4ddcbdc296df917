// The root context of a plugin as all its contexts use it.

import type { Result } from '../abi.js';
import type { WasmCallRequest } from '../vm/services.js';
import type { HeaderMap } from './header-map.js';

export interface Root {
  /** What get_status() returns. */
  readonly status: { readonly code: number; readonly message: string };
  /** While the module reads it. */
  readonly configuration: Buffer | undefined;
  readonly calls: {
    /** The response of the call whose callback runs; undefined outside of it, and for a call that has failed. */
    readonly answer: CallAnswer | undefined;
    /** Returns the token of a call, or why there is none. */
    start(request: WasmCallRequest): { readonly token: number } | Result;
  };
  setTickPeriod(ms: number): void;
  /** Returns a property that does not depend on a stream. */
  ownProperty(path: readonly string[]): Buffer | undefined;
}

/** The response of a call. */
export interface CallAnswer {
  readonly headers: HeaderMap;
  readonly trailers: HeaderMap;
  readonly body: Buffer;
}
