// A Lua script as a cluster specifier. Its VM is made when the first request needs it.

import { logFailure } from '../../filters/http/lua/objects/logs.js';
import {
  type Clock,
  type ClusterManager,
  type ClusterSpecifier,
  type HeaderBlock,
  LuaOutcome,
  messageOf,
  OUTCOME_BITS,
} from '../../sdk.js';
import { RouteHandle, RouteResult } from './objects.js';
import { loadRouteScript, type RouteScript } from './route-script.js';

/** Between attempts to load a script that a worker could not load, perhaps because memory was short. */
const RETRY_MS = 1000;

export class LuaSpecifier implements ClusterSpecifier {
  readonly #code: string;
  readonly #otherwise: string;
  readonly #clusters: ClusterManager;
  readonly #clock: Clock;
  #script: RouteScript | undefined;
  #retryMs = Number.NEGATIVE_INFINITY;

  /** `code`, and `otherwise`, the cluster of requests for which the script fails: one character per byte. */
  constructor(code: string, otherwise: string, clusters: ClusterManager, clock: Clock) {
    this.#code = code;
    this.#otherwise = otherwise;
    this.#clusters = clusters;
    this.#clock = clock;
  }

  clusterOf(headers: HeaderBlock): string {
    const script = this.#loaded();
    if (script === undefined) return this.#otherwise;
    const { vm, onRoute } = script;
    const handle = new RouteHandle(headers, this.#clusters);
    const result = new RouteResult();
    const started = vm.start(onRoute, handle, result);
    const outcome = started & ((1 << OUTCOME_BITS) - 1);
    const failure = outcome === LuaOutcome.Failed ? vm.message() : 'script performed an unexpected yield';
    handle.end();
    const coroutine = started >> OUTCOME_BITS;
    if (coroutine >= 0) vm.release(coroutine);
    if (outcome !== LuaOutcome.Ended) return this.#failed(failure);
    const { value } = result;
    if (typeof value === 'string') return value;
    return typeof value === 'number' ? String(value) : this.#failed('return value is not string');
  }

  #failed(message: string): string {
    logFailure(`${message}, use default cluster`);
    return this.#otherwise;
  }

  #loaded(): RouteScript | undefined {
    const { monotonicMs } = this.#clock;
    if (this.#script !== undefined || monotonicMs < this.#retryMs) return this.#script;
    try {
      this.#script = loadRouteScript(this.#code);
    } catch (error) {
      this.#retryMs = monotonicMs + RETRY_MS;
      logFailure(`script load error: ${messageOf(error)}`);
    }
    return this.#script;
  }
}
