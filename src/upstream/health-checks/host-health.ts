// The active health of one host: when check results make it unhealthy, and healthy again. No I/O.

import { HealthFlag } from '../hosts/health-flags.js';

/** The outcome of one check. */
export const enum Outcome {
  Passed = 0,
  /** It passed, and the host reported that it is degraded. */
  Degraded = 1,
  /** The host answered that it is unhealthy, which takes effect without a threshold. */
  Failed = 2,
  /** The host answered so with a status that counts towards the threshold. */
  FailedRetriably = 3,
  /** The connect failed, or the connection ended early. */
  NetworkFailure = 4,
  Timeout = 5,
  /** Not a check: the response to a request had x-envoy-immediate-health-check-fail. */
  FailedInTraffic = 6,
}

/** Returns whether the check has passed. */
export function hasPassed(outcome: Outcome): boolean {
  return outcome === Outcome.Passed || outcome === Outcome.Degraded;
}

export interface Thresholds {
  /** Consecutive failures that make a host unhealthy, and consecutive passed checks that make it healthy. */
  readonly unhealthy: number;
  readonly healthy: number;
}

/** The HealthFlag bits that active health checks own. */
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

  /** A host is unhealthy before its first check, unless it `isTrusted`. `isPending`: it is not counted at all until then. */
  constructor(thresholds: Thresholds, { isPending = false, isTrusted = false } = {}) {
    this.#thresholds = thresholds;
    const pending = HealthFlag.FailedActiveHealthCheck | (isPending ? HealthFlag.PendingActiveHealthCheck : 0);
    this.#flags = isTrusted ? 0 : pending;
  }

  /** HealthFlag bits among CHECKED_FLAGS. */
  get flags(): number {
    return this.#flags;
  }

  get isHealthy(): boolean {
    return !this.#has(HealthFlag.FailedActiveHealthCheck);
  }

  /** No check has finished yet. */
  get isFirst(): boolean {
    return this.#isFirst;
  }

  /** Applies an outcome. Returns whether it counts towards a threshold that is not yet reached. */
  take(outcome: Outcome): boolean {
    const isAtEdge = hasPassed(outcome) ? this.#pass(outcome === Outcome.Degraded) : this.#fail(outcome);
    this.#clear(HealthFlag.PendingActiveHealthCheck);
    this.#isFirst = false;
    return isAtEdge;
  }

  /** Applies a passed check. The first one decides alone, so that a start need not wait for more. */
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
