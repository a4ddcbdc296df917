// ctx: the context of one request. What a hook does not use is not created.

import type {
  ConnectionFacts,
  FetchInit,
  FetchResponse,
  HttpContext,
  Log,
  Metadata,
  Reply,
  RouteFacts,
  RuntimeValues,
  Stats,
} from '../../../../api/index.js';
import { ClusterCalls } from '../../../script/cluster-fetch.js';
import { MAX_TIMER_MS, type StreamControl, Timer } from '../../../sdk.js';
import { connectionFacts, routeFacts, StreamMetadata } from './facts.js';
import { ScriptReply } from './reply.js';
import type { SharedByRequests } from './shared.js';

/** Of one request at a time: each needs memory. */
const MAX_TIMERS = 100;

export class ScriptContext implements HttpContext {
  readonly config: unknown;
  /** The request has not gone on: its destination can be changed. */
  isInRequest = false;
  /** The route is selected again when the hook ends. */
  rematches = false;
  readonly #shared: SharedByRequests;
  readonly #stream: StreamControl;
  readonly #failed: (thrown: unknown) => void;
  #state: Record<string, unknown> | undefined;
  #metadata: StreamMetadata | undefined;
  #calls: ClusterCalls | undefined;
  #abort: AbortController | undefined;
  #timers: Set<Timer> | undefined;
  #isEnded = false;
  #hasCluster = false;

  /** `failed`: called when a timer of the module throws. */
  constructor(shared: SharedByRequests, stream: StreamControl, config: unknown, failed: (thrown: unknown) => void) {
    this.#shared = shared;
    this.#stream = stream;
    this.config = config;
    this.#failed = failed;
  }

  get log(): Log {
    return this.#shared.log;
  }

  get stats(): Stats {
    return this.#shared.moduleStats;
  }

  get runtime(): RuntimeValues {
    return this.#shared.runtime;
  }

  get state(): Record<string, unknown> {
    this.#state ??= {};
    return this.#state;
  }

  set state(state: Record<string, unknown>) {
    this.#state = state;
  }

  get metadata(): Metadata {
    this.#metadata ??= new StreamMetadata(this.#stream.info);
    return this.#metadata;
  }

  get route(): RouteFacts | undefined {
    return routeFacts(this.#stream.route());
  }

  get connection(): ConnectionFacts {
    return connectionFacts(this.#stream.info);
  }

  get signal(): AbortSignal {
    this.#abort ??= new AbortController();
    if (this.#isEnded) this.#abort.abort();
    return this.#abort.signal;
  }

  reply(status: number, body: string | Uint8Array = '', headers?: Readonly<Record<string, string>>): Reply {
    return new ScriptReply(status, body, headers);
  }

  setCluster(name: string): void {
    if (!this.isInRequest) throw new Error('setCluster() has an effect in onRequest only');
    if (this.rematches) throw new Error('the route will be selected again: call either setCluster() or rematchRoute()');
    const cluster = this.#shared.clusters.find(name);
    if (cluster?.current === undefined) throw new Error(`setCluster(): there is no cluster '${name}'`);
    if (!this.#stream.setCluster(cluster)) throw new Error('setCluster(): the request has no route to a cluster');
    this.#hasCluster = true;
  }

  rematchRoute(): void {
    if (!this.isInRequest) throw new Error('rematchRoute() has an effect in onRequest only');
    if (this.#hasCluster) throw new Error('setCluster() was called: call either setCluster() or rematchRoute()');
    this.rematches = true;
  }

  fetch(cluster: string, path: string, init: FetchInit = {}): Promise<FetchResponse> {
    if (this.#isEnded) return Promise.reject(new Error('fetch: the request has ended'));
    this.#calls ??= new ClusterCalls(this.#shared.calls, this.#shared.clusters);
    return this.#calls.fetch(cluster, path, init);
  }

  setTimeout(act: () => void, ms: number): () => void {
    if (this.#isEnded) return () => {};
    this.#timers ??= new Set();
    if (this.#timers.size >= MAX_TIMERS) throw new RangeError(`a request has at most ${MAX_TIMERS} timers`);
    const timer: Timer = new Timer(undefined, () => {
      this.#timers!.delete(timer);
      this.#stream.run(() => this.#call(act));
    });
    this.#timers.add(timer);
    this.#shared.timers.reschedule(timer, Math.min(Math.max(0, ms), MAX_TIMER_MS));
    return () => {
      if (this.#timers!.delete(timer)) this.#shared.timers.cancel(timer);
    };
  }

  /** Called when the request has ended. */
  end(): void {
    this.#isEnded = true;
    this.isInRequest = false;
    this.#abort?.abort();
    this.#calls?.cancel();
    if (this.#timers === undefined) return;
    for (const timer of this.#timers) this.#shared.timers.cancel(timer);
    this.#timers.clear();
  }

  #call(act: () => unknown): void {
    try {
      const result = act();
      if (result instanceof Promise) result.catch((error: unknown) => this.#stream.run(() => this.#failed(error)));
    } catch (error) {
      this.#failed(error);
    }
  }
}
