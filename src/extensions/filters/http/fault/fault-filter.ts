// The fault filter of one request: delays it, aborts it, or both.

import {
  type DynamicCounter,
  type HeaderBlock,
  HeadersStatus,
  type HttpFilter,
  ResponseFlag,
  type Scope,
  type StreamControl,
  Timer,
  type WorkerContext,
} from '../../../sdk.js';
import { type Abort, clusterOf, type FaultRules } from './rules.js';
import { FaultStats } from './stats.js';

const { at } = FaultStats;

/** The common context of the faults in a chain. */
export interface FaultContext {
  readonly worker: WorkerContext;
  readonly stats: Scope;
  /** Returns the counter `name` for requests from this downstream cluster. */
  counterOf(cluster: string, name: 'delays_injected' | 'aborts_injected'): DynamicCounter;
}

export class FaultFilter implements HttpFilter {
  readonly #stream: StreamControl;
  readonly #rules: FaultRules;
  readonly #context: FaultContext;
  /** The downstream cluster that the request names, or ''. */
  #cluster = '';
  /** Counted as an active fault: once, even with both a delay and an abort. */
  #isActive = false;
  #timer: Timer<FaultFilter> | undefined;
  /** The head of a delayed request. */
  #held: HeaderBlock | undefined;

  constructor(stream: StreamControl, rules: FaultRules, context: FaultContext) {
    this.#stream = stream;
    this.#rules = rules;
    this.#context = context;
  }

  decodeHeaders(headers: HeaderBlock): HeadersStatus {
    const rules = this.#rules;
    if (!rules.isFor(headers, this.#stream)) return HeadersStatus.Continue;
    this.#cluster = clusterOf(headers);
    const delayMs = rules.delayOf(headers, this.#cluster, this.#context.worker.random);
    if (delayMs > 0 && this.#begin()) {
      this.#wait(headers, delayMs);
      return HeadersStatus.StopIteration;
    }
    return this.#abortIfDue(headers) ? HeadersStatus.StopIteration : HeadersStatus.Continue;
  }

  onDestroy(): void {
    const { stats, worker } = this.#context;
    if (this.#timer !== undefined) worker.timers.cancel(this.#timer);
    if (this.#isActive) stats.decrement(at.active_faults);
  }

  #wait(headers: HeaderBlock, delayMs: number): void {
    this.#count('delays_injected');
    this.#stream.info.responseFlags |= ResponseFlag.DelayInjected;
    this.#stream.pauseRequest();
    this.#held = headers;
    this.#timer = new Timer<FaultFilter>(this, onTimer);
    this.#context.worker.timers.reschedule(this.#timer, delayMs);
  }

  /** Called when the delay is over. */
  onDelayEnd(): void {
    this.#stream.run(() => {
      if (this.#abortIfDue(this.#held!)) return;
      this.#stream.continueDecoding();
      this.#stream.resumeRequest();
    });
  }

  #abortIfDue(headers: HeaderBlock): boolean {
    const abort = this.#rules.abortOf(headers, this.#cluster, this.#context.worker.random);
    if (abort === undefined || !this.#begin()) return false;
    this.#count('aborts_injected');
    this.#answer(abort);
    return true;
  }

  #answer({ body, grpcStatus, status }: Abort): void {
    this.#stream.sendLocalReply({
      status,
      body,
      details: 'fault_filter_abort',
      flags: ResponseFlag.FaultInjected,
      grpcStatus,
    });
  }

  /** Returns whether another fault may become active. As in Envoy, workers that check concurrently may exceed the limit. */
  #begin(): boolean {
    if (this.#isActive) return true;
    const { stats } = this.#context;
    const { maxActive } = this.#rules;
    if (maxActive !== Infinity && stats.total(at.active_faults) >= maxActive) {
      stats.increment(at.faults_overflow);
      return false;
    }
    stats.increment(at.active_faults);
    this.#isActive = true;
    return true;
  }

  #count(name: 'delays_injected' | 'aborts_injected'): void {
    this.#context.stats.increment(at[name]);
    if (this.#cluster !== '' && this.#rules.countsClusters) this.#context.counterOf(this.#cluster, name).increment();
  }
}

function onTimer(filter: FaultFilter): void {
  filter.onDelayEnd();
}
