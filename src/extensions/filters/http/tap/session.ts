// The messages between the primary and the workers about an attached tap, as plain data.

import type { TapConfig } from '../../../../config/generated/api.js';

/** The name of the port. */
export const TAP = 'envoy.filters.http.tap';

/** An attached tap; there is at most one. */
export interface TapSession {
  /** Distinguishes it from earlier sessions. */
  readonly id: number;
  /** The filters with this config_id are tapped. */
  readonly configId: string;
  readonly config: TapConfig;
  /** The buffer of the TraceBudget. */
  readonly budget: SharedArrayBuffer;
}

/** An encoded trace. */
export interface SentTrace {
  readonly session: number;
  readonly bytes: Uint8Array;
}
