// The logger in one access_log, on one worker: calls the hook of the module's current version.

import type { FetchInit, FetchResponse, Log, LoggerContext, RuntimeValues, Stats } from '../../../api/index.js';
import type { Script } from '../../../config/generated/api.js';
import type { StreamCalls } from '../../script/cluster-fetch.js';
import { CurrentVersion, type Version } from '../../script/current-version.js';
import { requestIdOf } from '../../script/faults.js';
import { type SharedByStreams, sharedByStreams } from '../../script/shared.js';
import { ScriptFilterStats } from '../../script/stats.js';
import { type AccessLogger, noHeaderNeeds, type StreamInfo, type WorkerContext } from '../../sdk.js';
import { ScriptLogEntry } from './log-entry.js';

const { at } = ScriptFilterStats;

/** Heads are kept for a logger that reads at least one header. */
const ANY: Set<string> = new Set(['*']);

/** Calls at a time: a service that does not answer must not fill the memory. */
const MAX_CALLS = 1000;

export class ScriptLogger implements AccessLogger {
  /** A hook may read any header, and format() has any operator. */
  readonly needs = { ...noHeaderNeeds(), request: ANY, response: ANY, trailers: ANY, wireBytes: true };
  readonly #shared: SharedByStreams;
  readonly #current: CurrentVersion<'access logger'>;
  readonly #calls: StreamCalls;
  readonly #state: Record<string, unknown> = {};
  #version: Version<'access logger'> | undefined;
  #context: LoggerContext | undefined;

  constructor({ config, module }: Script, prefix: string, context: WorkerContext) {
    const script = context.scripts.module(module!);
    this.#shared = sharedByStreams(script, prefix, {}, context);
    this.#current = new CurrentVersion(script, 'access logger', config, this.#shared.faults);
    this.#calls = this.#shared.newCalls();
  }

  log(info: StreamInfo): void {
    const version = this.#current.get();
    if (version === undefined) return this.#shared.stats.increment(at.errors);
    const entry = new ScriptLogEntry(info);
    try {
      const result: unknown = version.definition.onLog(entry, this.#contextOf(version));
      if (result instanceof Promise) {
        const requestId = requestIdOf(info.requestHeaders);
        result.catch((error: unknown) => this.#failed(version, error, requestId));
      }
    } catch (error) {
      this.#failed(version, error, requestIdOf(info.requestHeaders));
    } finally {
      entry.close();
    }
  }

  close(): void {
    this.#calls.cancel();
  }

  #contextOf(version: Version<'access logger'>): LoggerContext {
    if (this.#context === undefined || this.#version !== version) {
      this.#version = version;
      this.#context = new Context(this.#shared, this.#calls, this.#state, version.config);
    }
    return this.#context;
  }

  #failed({ definition }: Version<'access logger'>, thrown: unknown, requestId: string | undefined): void {
    this.#shared.stats.increment(at.errors);
    this.#shared.faults.report('onLog', thrown, 'this entry is not logged', { hook: definition.onLog, requestId });
  }
}

class Context implements LoggerContext {
  readonly log: Log;
  readonly stats: Stats;
  readonly runtime: RuntimeValues;
  readonly config: unknown;
  readonly state: Record<string, unknown>;
  readonly #calls: StreamCalls;
  #running = 0;

  constructor(shared: SharedByStreams, calls: StreamCalls, state: Record<string, unknown>, config: unknown) {
    this.log = shared.log;
    this.stats = shared.moduleStats;
    this.runtime = shared.runtime;
    this.config = config;
    this.state = state;
    this.#calls = calls;
  }

  async fetch(cluster: string, path: string, init: FetchInit = {}): Promise<FetchResponse> {
    if (this.#running >= MAX_CALLS) throw new Error(`fetch: ${MAX_CALLS} calls of this logger are in flight`);
    this.#running++;
    try {
      return await this.#calls.fetch(cluster, path, init);
    } finally {
      this.#running--;
    }
  }
}
