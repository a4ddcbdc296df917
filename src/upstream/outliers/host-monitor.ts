// One thread's observations of a host for outlier detection, counted in words that all threads share. The thread whose count
// reaches a limit reports the host; the primary decides, and resets the count to 0.

import { isServerError } from '../../http/headers/status-class.js';
import type { Runtime, RuntimeInteger } from '../../runtime/runtime.js';
import { HostWord } from '../shared-words.js';
import { OutlierKind } from './outlier-kind.js';
import { type OutlierSpec, runtimeKey } from './outlier-spec.js';

/** The settings for all hosts of a cluster. */
export class OutlierCounting {
  readonly words: Int32Array;
  readonly splitsLocalOrigin: boolean;
  readonly consecutive5xx: RuntimeInteger;
  readonly consecutiveGatewayFailure: RuntimeInteger;
  readonly consecutiveLocalOriginFailure: RuntimeInteger;
  /** Called when the host with this block has reached the limit of this kind. */
  readonly report: (block: number, kind: OutlierKind) => void;

  constructor(
    spec: OutlierSpec,
    runtime: Runtime,
    words: Int32Array,
    report: (block: number, kind: OutlierKind) => void,
  ) {
    const limit = (name: Parameters<typeof runtimeKey>[0]) => runtime.integer(runtimeKey(name), spec.numbers[name]);
    this.words = words;
    this.splitsLocalOrigin = spec.splitsLocalOrigin;
    this.consecutive5xx = limit('consecutive_5xx');
    this.consecutiveGatewayFailure = limit('consecutive_gateway_failure');
    this.consecutiveLocalOriginFailure = limit('consecutive_local_origin_failure');
    this.report = report;
  }
}

export class HostMonitor {
  readonly #counting: OutlierCounting;
  readonly #block: number;

  /** `block`: index of the host's first HostWord word. */
  constructor(counting: OutlierCounting, block: number) {
    this.#counting = counting;
    this.#block = block;
  }

  /** Called when the host has answered with this status. */
  answered(status: number): void {
    const { words } = this.#counting;
    const block = this.#block;
    Atomics.add(words, block + HostWord.Requests, 1);
    if (!isServerError(status)) {
      Atomics.add(words, block + HostWord.Successes, 1);
      this.#clear(HostWord.Consecutive5xx);
      this.#clear(HostWord.ConsecutiveGatewayFailures);
      return;
    }
    if (status >= 502 && status <= 504) {
      const limit = this.#counting.consecutiveGatewayFailure;
      this.#count(HostWord.ConsecutiveGatewayFailures, limit, OutlierKind.ConsecutiveGatewayFailure);
    } else this.#clear(HostWord.ConsecutiveGatewayFailures);
    this.#count(HostWord.Consecutive5xx, this.#counting.consecutive5xx, OutlierKind.Consecutive5xx);
  }

  /** Called when a request has a connection, before its response. */
  connected(): void {
    if (this.#counting.splitsLocalOrigin) this.#localOriginSuccess();
  }

  /** Called when a TCP connection is established, which is its only outcome. */
  tcpConnected(): void {
    if (this.#counting.splitsLocalOrigin) this.#localOriginSuccess();
    else this.answered(200);
  }

  /** Called when a connect failed or a connection ended early. */
  failed(): void {
    if (this.#counting.splitsLocalOrigin) this.#localOriginFailure();
    else this.answered(503);
  }

  /** Called when the host timed out. */
  timedOut(): void {
    if (this.#counting.splitsLocalOrigin) this.#localOriginFailure();
    else this.answered(504);
  }

  #localOriginSuccess(): void {
    const { words } = this.#counting;
    Atomics.add(words, this.#block + HostWord.LocalOriginRequests, 1);
    Atomics.add(words, this.#block + HostWord.LocalOriginSuccesses, 1);
    this.#clear(HostWord.ConsecutiveLocalOriginFailures);
  }

  #localOriginFailure(): void {
    Atomics.add(this.#counting.words, this.#block + HostWord.LocalOriginRequests, 1);
    const limit = this.#counting.consecutiveLocalOriginFailure;
    this.#count(HostWord.ConsecutiveLocalOriginFailures, limit, OutlierKind.ConsecutiveLocalOriginFailure);
  }

  #count(word: HostWord, limit: RuntimeInteger, kind: OutlierKind): void {
    const count = Atomics.add(this.#counting.words, this.#block + word, 1) + 1;
    // Reported at every multiple: the limit may have been higher before, and a report may have been lost. 0 is no limit.
    if (count % limit.value === 0) this.#counting.report(this.#block, kind);
  }

  #clear(word: HostWord): void {
    const { words } = this.#counting;
    // Most words are 0: a plain read costs a tenth of a store.
    if (words[this.#block + word] !== 0) Atomics.store(words, this.#block + word, 0);
  }
}
