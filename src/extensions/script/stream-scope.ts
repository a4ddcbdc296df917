// The part of a context that lasts as long as a stream: calls, timers and the signal. What a hook does not use is not created.

import type { FetchInit, FetchResponse, Log, RuntimeValues, Stats, StreamContext } from '../../api/index.js';
import { MAX_TIMER_MS, Timer } from '../sdk.js';
import type { StreamCalls } from './cluster-fetch.js';
import type { SharedByStreams } from './shared.js';

/** Maximum number of pending timers of a stream: each needs memory. */
const MAX_TIMERS = 100;

/** The filter of a stream, as its context uses it. */
export interface ScopeOwner {
  /** Runs code of the module like a hook, unless the stream has ended. */
  run(act: () => void): void;
  /** Called when code of the module may run after its hook has ended. */
  outlivesHook(): void;
  /** Called with what a timer of the module has thrown; `act`: its function. */
  timerFailed(thrown: unknown, act: unknown): void;
}

export abstract class StreamScope implements Omit<StreamContext, 'connection'> {
  readonly #shared: SharedByStreams;
  readonly #owner: ScopeOwner;
  #calls: StreamCalls | undefined;
  #abort: AbortController | undefined;
  #timers: Set<Timer> | undefined;
  #state: Record<string, unknown> | undefined;
  #isEnded = false;

  constructor(shared: SharedByStreams, owner: ScopeOwner) {
    this.#shared = shared;
    this.#owner = owner;
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

  get signal(): AbortSignal {
    this.#abort ??= new AbortController();
    if (this.#isEnded) this.#abort.abort();
    return this.#abort.signal;
  }

  fetch(cluster: string, path: string, init: FetchInit = {}): Promise<FetchResponse> {
    if (this.#isEnded) return Promise.reject(new Error('fetch: the request has ended'));
    this.#calls ??= this.#shared.newCalls();
    return this.#calls.fetch(cluster, path, init);
  }

  setTimeout(act: () => void, ms: number): () => void {
    if (this.#isEnded) return () => {};
    this.#owner.outlivesHook();
    this.#timers ??= new Set();
    if (this.#timers.size >= MAX_TIMERS) throw new RangeError(`a request has at most ${MAX_TIMERS} timers`);
    const timer: Timer = new Timer(undefined, () => {
      this.#timers!.delete(timer);
      this.#owner.run(() => this.#call(act));
    });
    this.#timers.add(timer);
    this.#shared.timers.reschedule(timer, Math.min(Math.max(0, ms), MAX_TIMER_MS));
    return () => {
      if (this.#timers!.delete(timer)) this.#shared.timers.cancel(timer);
    };
  }

  /** Called when the stream has ended. */
  end(): void {
    this.#isEnded = true;
    this.#abort?.abort();
    this.#calls?.cancel();
    if (this.#timers === undefined) return;
    for (const timer of this.#timers) this.#shared.timers.cancel(timer);
    this.#timers.clear();
  }

  #call(act: () => unknown): void {
    const owner = this.#owner;
    try {
      const result = act();
      if (result instanceof Promise) result.catch((error: unknown) => owner.run(() => owner.timerFailed(error, act)));
    } catch (error) {
      owner.timerFailed(error, act);
    }
  }
}
