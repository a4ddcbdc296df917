// The TLS of a filter chain on one worker.

import type { Timers } from '../io/time/timing-wheel.js';
import type { HandshakeStats } from '../tls/handshake-stats.js';
import type { KeyLog } from '../tls/key-log.js';

export interface ServerTls {
  /** Number of the context in the native engine. */
  readonly context: number;
  /** How long a handshake may take. */
  readonly timeoutMs: number;
  readonly stats: HandshakeStats;
  readonly timers: Timers;
  /** Undefined: keys are not written. */
  readonly keyLog: KeyLog | undefined;
}
