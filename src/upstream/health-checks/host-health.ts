// What active health checks know of one host: when its answers make it unhealthy, and healthy again. No I/O.

import { HealthFlag } from '../hosts/health-flags.js';

/** What came of one check. */
export const enum Outcome {
  Passed = 0,
  /** It passed, and the host says that others are to be preferred. */
  Degraded = 1,
  /** The host has answered that it is not well: no threshold is waited for. */
  Failed = 2,
  /** It has answered so with a status that counts towards the threshold. */
  FailedRetriably = 3,
  /** No connection, or none for long enough. */
  NetworkFailure = 4,
  Timeout = 5,
  /** No check: a response to a request has said that the host's checks fail. */
  FailedInTraffic = 6,
}

/** The host is well, as far as the check tells. */
export function hasPassed(outcome: Outcome): boolean {
  return outcome === Outcome.Passed || outcome === Outcome.Degraded;
}

export interface Thresholds {
  /** Failures in a row that make a host unhealthy, and passed checks in a row that make it healthy. */
  readonly unhealthy: number;
  readonly healthy: number;
}

/** The HealthFlag bits that are those of active health checks. */
export const CHECKED_FLAGS =
  HealthFlag.FailedActiveHealthCheck |
  HealthFlag.DegradedActiveHealthCheck |
  HealthFlag.PendingActiveHealthCheck |
  HealthFlag.ExcludedViaImmediateFail |
  HealthFlag.ActiveHealthCheckTimeout;

export class HostHealth {
  readonly #thresholds: Thresholds;
  #flags: number;
  #isFirst = true;
  #passed = 0;
  #failed = 0;

  /** A host is unhealthy before its first check; `isPending`: until then it does not count at all. */
  constructor(thresholds: Thresholds, isPending: boolean) {
    this.#thresholds = thresholds;
    this.#flags = HealthFlag.FailedActiveHealthCheck | (isPending ? HealthFlag.PendingActiveHealthCheck : 0);
  }

  /** HealthFlag bits among CHECKED_FLAGS. */
  get flags(): number {
    return this.#flags;
  }

  get isHealthy(): boolean {
    return !this.#has(HealthFlag.FailedActiveHealthCheck);
  }

  /** Nothing is known of it yet. */
  get isFirst(): boolean {
    return this.#isFirst;
  }

  /** Returns whether it counts towards a threshold that is not reached: more like it are needed. */
  take(outcome: Outcome): boolean {
    const isAtEdge = hasPassed(outcome) ? this.#pass(outcome === Outcome.Degraded) : this.#fail(outcome);
    this.#clear(HealthFlag.PendingActiveHealthCheck);
    this.#isFirst = false;
    return isAtEdge;
  }

  /** The first check decides by itself, so that a start need not wait for more. */
  #pass(isDegraded: boolean): boolean {
    this.#failed = 0;
    let isAtEdge = false;
    if (!this.isHealthy) {
      if (this.#isFirst || ++this.#passed >= this.#thresholds.healthy) {
        this.#clear(
          HealthFlag.FailedActiveHealthCheck |
            HealthFlag.ExcludedViaImmediateFail |
            HealthFlag.ActiveHealthCheckTimeout,
        );
      } else isAtEdge = true;
    }
    if (isDegraded) this.#flags |= HealthFlag.DegradedActiveHealthCheck;
    else this.#clear(HealthFlag.DegradedActiveHealthCheck);
    return isAtEdge;
  }

  #fail(outcome: Outcome): boolean {
    this.#passed = 0;
    let isAtEdge = false;
    if (this.isHealthy) {
      if (!countsTowardsThreshold(outcome) || ++this.#failed >= this.#thresholds.unhealthy) {
        this.#flags |= HealthFlag.FailedActiveHealthCheck;
      } else isAtEdge = true;
    }
    if (outcome === Outcome.FailedInTraffic) this.#flags |= HealthFlag.ExcludedViaImmediateFail;
    if (outcome === Outcome.Timeout && !this.isHealthy) this.#flags |= HealthFlag.ActiveHealthCheckTimeout;
    else this.#clear(HealthFlag.ActiveHealthCheckTimeout);
    return isAtEdge;
  }

  #has(flag: number): boolean {
    return (this.#flags & flag) !== 0;
  }

  #clear(flags: number): void {
    this.#flags &= ~flags;
  }
}

function countsTowardsThreshold(outcome: Outcome): boolean {
  return outcome === Outcome.FailedRetriably || outcome === Outcome.NetworkFailure || outcome === Outcome.Timeout;
}
