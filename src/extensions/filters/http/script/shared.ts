// What the requests of a filter in one chain share, on one worker.

import type { ScriptFaults } from '../../../script/faults.js';
import type { ModuleLog } from '../../../script/module-log.js';
import type { ModuleStats } from '../../../script/module-stats.js';
import type { ScriptRuntime } from '../../../script/runtime-values.js';
import type { CallingThread, ClusterManager, Memory, Scope, Timers } from '../../../sdk.js';

export interface SharedByRequests {
  readonly calls: CallingThread;
  readonly clusters: ClusterManager;
  readonly memory: Memory;
  readonly timers: Timers;
  /** ScriptFilterStats. */
  readonly stats: Scope;
  readonly faults: ScriptFaults;
  readonly log: ModuleLog;
  readonly moduleStats: ModuleStats;
  readonly runtime: ScriptRuntime;
  /** How long a hook may hold a message. */
  readonly timeoutMs: number;
  /** A message goes on when its hook has failed. */
  readonly failsOpen: boolean;
}
