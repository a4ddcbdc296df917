// What the primary tells the workers of an attached tap, and what they answer: plain data.

import type { TapConfig } from '../../../../config/generated/api.js';

/** The name under which both sides talk. */
export const TAP = 'envoy.filters.http.tap';

/** An attached tap; there is at most one. */
export interface TapSession {
  /** Tells it from those before it. */
  readonly id: number;
  /** Filters with this config_id trace. */
  readonly configId: string;
  readonly config: TapConfig;
  /** Of TraceBudget. */
  readonly budget: SharedArrayBuffer;
}

/** A trace in its format. */
export interface SentTrace {
  readonly session: number;
  readonly bytes: Uint8Array;
}
