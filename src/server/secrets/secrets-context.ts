// The parts of the server that discovered secrets use.

import type { NativeShim } from '../../io/shim.js';
import type { StatsStore } from '../../stats/store.js';
import type { ConfigSources } from '../../xds/subscription.js';

export interface SecretsContext {
  readonly sources: ConfigSources;
  readonly store: StatsStore;
  readonly shim: NativeShim;
  /** Reports an unexpected exception that was caught. */
  readonly failed: (what: string, error: unknown) => void;
}
