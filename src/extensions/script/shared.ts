// What the streams of an extension share on one worker, whatever kind it is.

import type { Log, RuntimeValues, Stats } from '../../api/index.js';
import { durationMs, type Scope, type Timers, type WorkerContext, type WorkerScript } from '../sdk.js';
import { ClusterCalls, type StreamCalls } from './cluster-fetch.js';
import { type Faults, ScriptFaults } from './faults.js';
import { ModuleLog } from './module-log.js';
import { ModuleStats } from './module-stats.js';
import { ScriptRuntime } from './runtime-values.js';
import { RESERVED_NAMES, ScriptFilterStats } from './stats.js';

const DEFAULT_TIMEOUT_MS = 5000;

export interface SharedByStreams {
  readonly timers: Timers;
  /** ScriptFilterStats. */
  readonly stats: Pick<Scope, 'increment'>;
  readonly faults: Faults;
  readonly log: Log;
  readonly moduleStats: Stats;
  readonly runtime: RuntimeValues;
  /** How long a hook may hold a message or a connection. */
  readonly timeoutMs: number;
  /** A message or a connection goes on when its hook has failed. */
  readonly failsOpen: boolean;
  /** Creates the calls of a stream. */
  newCalls(): StreamCalls;
}

/** The fields that the configurations of all kinds have. */
export interface ScriptSettings {
  readonly timeout?: string | undefined;
  readonly failure_policy?: string | undefined;
}

/** `prefix`: of the stats, which `context` has as a scope of ScriptFilterStats. */
export function sharedByStreams(
  script: WorkerScript,
  prefix: string,
  { failure_policy, timeout }: ScriptSettings,
  context: WorkerContext,
): SharedByStreams {
  const { calls, clusters, runtime, stats, timers } = context;
  return {
    timers,
    stats: context.scope(prefix, ScriptFilterStats),
    faults: new ScriptFaults(script),
    log: new ModuleLog(script.name),
    moduleStats: new ModuleStats(stats, prefix, RESERVED_NAMES),
    runtime: new ScriptRuntime(runtime),
    timeoutMs: timeout === undefined ? DEFAULT_TIMEOUT_MS : durationMs(timeout),
    failsOpen: failure_policy === 'OPEN',
    newCalls: () => new ClusterCalls(calls, clusters),
  };
}
