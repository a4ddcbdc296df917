// The filter in one chain, on one worker: the version of the module that new requests use, with its configuration, and what the
// requests share.

import type { HttpFilter as Definition } from '../../../../api/index.js';
import type { Script } from '../../../../config/generated/api.js';
import { ScriptFaults } from '../../../script/faults.js';
import { ModuleLog } from '../../../script/module-log.js';
import { ModuleStats } from '../../../script/module-stats.js';
import { ScriptRuntime } from '../../../script/runtime-values.js';
import {
  type CallingThread,
  type ClusterManager,
  configValue,
  durationMs,
  type HttpChain,
  type HttpFilter,
  type HttpFilterFactory,
  type Memory,
  type Scope,
  type StreamControl,
  type Timers,
  type WorkerContext,
  type WorkerScript,
} from '../../../sdk.js';
import { ScriptFilter } from './script-filter.js';
import type { SharedByRequests } from './shared.js';
import { RESERVED_NAMES, ScriptFilterStats } from './stats.js';
import { UnusableFilter } from './unusable-filter.js';

const DEFAULT_TIMEOUT_MS = 5000;

/** A route's configuration. The object is the same for all requests of the route. */
export interface RouteScript {
  readonly config: unknown;
}

export class ScriptChain implements HttpFilterFactory, SharedByRequests {
  readonly calls: CallingThread;
  readonly clusters: ClusterManager;
  readonly memory: Memory;
  readonly timers: Timers;
  readonly stats: Scope;
  readonly faults: ScriptFaults;
  readonly log: ModuleLog;
  readonly moduleStats: ModuleStats;
  readonly runtime: ScriptRuntime;
  readonly timeoutMs: number;
  readonly failsOpen: boolean;
  readonly #script: WorkerScript;
  readonly #config: unknown;
  #generation = -1;
  #definition: Definition | undefined;
  /** Configurations as the version's validator returns them, by RouteScript; that of the filter by itself. */
  #configs = new WeakMap<object, { readonly value: unknown } | undefined>();
  readonly #own: RouteScript;

  constructor({ config, failure_policy, module, timeout }: Script, context: WorkerContext, chain: HttpChain) {
    const { calls, clusters, memory, runtime, scripts, stats, timers } = context;
    const prefix = statsPrefix(module!, chain);
    this.calls = calls;
    this.clusters = clusters;
    this.memory = memory;
    this.timers = timers;
    this.timeoutMs = timeout === undefined ? DEFAULT_TIMEOUT_MS : durationMs(timeout);
    this.failsOpen = failure_policy === 'OPEN';
    this.#script = scripts.module(module!);
    this.#config = config;
    this.#own = { config };
    this.stats = context.scope(prefix, ScriptFilterStats);
    this.faults = new ScriptFaults(this.#script);
    this.log = new ModuleLog(module!);
    this.moduleStats = new ModuleStats(stats, prefix, RESERVED_NAMES);
    this.runtime = new ScriptRuntime(runtime);
  }

  create(stream: StreamControl, routeConfig: unknown): HttpFilter | undefined {
    if (this.#generation !== this.#script.generation) this.#update();
    const config = this.#configOf((routeConfig as RouteScript | undefined) ?? this.#own);
    if (this.#definition !== undefined && config !== undefined)
      return new ScriptFilter(this, this.#definition, stream, config.value);
    this.stats.increment(ScriptFilterStats.at.errors);
    return this.failsOpen ? undefined : new UnusableFilter(stream);
  }

  #update(): void {
    this.#generation = this.#script.generation;
    this.#configs = new WeakMap();
    try {
      this.#definition = this.#script.definition('http filter');
    } catch (error) {
      this.#definition = undefined;
      this.faults.report('loading', error, 'requests that need it fail');
    }
  }

  /** Returns the validated configuration; undefined if the module refuses it. */
  #configOf(route: RouteScript): { readonly value: unknown } | undefined {
    if (this.#configs.has(route)) return this.#configs.get(route);
    let config: { readonly value: unknown } | undefined;
    try {
      config = { value: configValue(this.#definition?.config, route.config ?? this.#config) };
    } catch (error) {
      this.faults.report('its config', error, 'requests that need it fail');
    }
    this.#configs.set(route, config);
    return config;
  }
}

/** The prefix of the stats of a module in a chain. */
export function statsPrefix(module: string, { statPrefix }: HttpChain): string {
  return `${statPrefix}script.${module}.`;
}
