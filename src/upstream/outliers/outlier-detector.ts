// Decides which hosts of a cluster are ejected, and when they return. No I/O: time, randomness and counts are inputs, decisions
// are outputs.

import type { Random } from '../../common/random.js';
import { OUTLIER_NAMES, OutlierKind } from './outlier-kind.js';
import type { OutlierSettings } from './outlier-spec.js';
import { type ClusterRates, clusterRates, NO_RATES, UNKNOWN } from './success-rates.js';

/** The counts of the last interval. */
export class Volume {
  total = 0;
  successes = 0;
  /** In percent; -1: too few requests. */
  rate = UNKNOWN;
}

/** One host. The owner of the detector may extend it. */
export class OutlierHost {
  isEjected = false;
  /** Number of ejections. */
  ejections = 0;
  /** Ejection time in multiples of the base ejection time: one more with each ejection, one less with each good interval. */
  multiplier = 0;
  jitterMs = 0;
  ejectedMs = 0;
  /** Time of the last ejection or return; undefined: never. */
  changedMs: number | undefined = undefined;
  /** By Origin. The owner fills them before each sweep. */
  readonly volumes: readonly [Volume, Volume] = [new Volume(), new Volume()];
}

/** The origin of errors. */
export const enum Origin {
  /** Errors that hosts return; all errors without split_external_local_origin_errors. */
  External = 0,
  /** Failures to get a response. */
  Local = 1,
}

/** The callbacks with decisions. */
export interface OutlierDecisions<H> {
  /** Called when an outlier is detected, enforced or not. */
  detected(kind: OutlierKind): void;
  /** Called when no more hosts may be ejected. */
  overflowed(): void;
  /**
   * Called for an ejection, before `changedMs` is updated. `isEnforced` false: outliers of this kind are not enforced, so the
   * host stays.
   */
  ejected(host: H, kind: OutlierKind, isEnforced: boolean): void;
  /** Called when a host returns, before `changedMs` is updated. */
  returned(host: H): void;
}

export class OutlierDetector<H extends OutlierHost> {
  readonly #settings: OutlierSettings;
  readonly #random: Random;
  readonly #decisions: OutlierDecisions<H>;
  readonly #hosts = new Set<H>();
  readonly #rates: [ClusterRates, ClusterRates] = [NO_RATES, NO_RATES];
  #ejected = 0;

  constructor(settings: OutlierSettings, random: Random, decisions: OutlierDecisions<H>) {
    this.#settings = settings;
    this.#random = random;
    this.#decisions = decisions;
  }

  get hosts(): Iterable<H> {
    return this.#hosts;
  }

  /** The number of ejected hosts. */
  get ejected(): number {
    return this.#ejected;
  }

  /** Returns the rates of the last sweep. */
  rates(origin: Origin): ClusterRates {
    return this.#rates[origin];
  }

  add(host: H): void {
    this.#hosts.add(host);
  }

  /** Called when the host leaves the cluster. */
  remove(host: H): void {
    if (this.#hosts.delete(host) && host.isEjected) this.#ejected--;
  }

  /** Handles an outlier of this kind. A no-op for an ejected host. */
  detect(host: H, kind: OutlierKind, nowMs: number): void {
    if (host.isEjected || !this.#hosts.has(host)) return;
    this.#decisions.detected(kind);
    if (!this.#mayEject) return this.#decisions.overflowed();
    const isEnforced = this.#isHit(this.#settings.get(`enforcing_${OUTLIER_NAMES[kind]}`));
    if (isEnforced) this.#eject(host, nowMs);
    this.#decisions.ejected(host, kind, isEnforced);
    if (isEnforced) host.changedMs = nowMs;
  }

  /** Called when an active health check of the host has passed. */
  passedHealthCheck(host: H, nowMs: number): void {
    if (host.isEjected && this.#settings.spec.returnsWhenChecked) this.#return(host, nowMs);
  }

  /** Ends an interval: hosts whose ejection time is over return, and failure rates are compared. */
  sweep(nowMs: number): void {
    for (const host of this.#hosts) {
      if (host.isEjected) this.#returnIfOver(host, nowMs);
      else if (host.multiplier > 0) host.multiplier--;
    }
    this.#compare(Origin.External, OutlierKind.SuccessRate, OutlierKind.FailurePercentage, nowMs);
    this.#compare(Origin.Local, OutlierKind.LocalOriginSuccessRate, OutlierKind.LocalOriginFailurePercentage, nowMs);
  }

  /** One more ejection would not exceed the maximum. */
  get #mayEject(): boolean {
    if (this.#ejected === 0 && this.#settings.spec.alwaysEjectsOne) return true;
    const percent = Math.min(100, this.#settings.get('max_ejection_percent'));
    return (100 * (this.#ejected + 1)) / this.#hosts.size <= percent;
  }

  #isHit(percent: number): boolean {
    return percent >= 100 || (percent > 0 && this.#random.below(100) < percent);
  }

  #eject(host: H, nowMs: number): void {
    const baseMs = this.#settings.get('base_ejection_time_ms');
    const maxMs = this.#settings.get('max_ejection_time_ms');
    this.#ejected++;
    host.isEjected = true;
    host.ejections++;
    host.ejectedMs = nowMs;
    host.jitterMs = this.#random.fraction() * this.#settings.get('max_ejection_time_jitter_ms');
    // A higher multiplier would need more good intervals to decrease again without a longer ejection.
    if (host.multiplier * baseMs < maxMs + baseMs) host.multiplier++;
  }

  #returnIfOver(host: H, nowMs: number): void {
    const baseMs = this.#settings.get('base_ejection_time_ms');
    const maxMs = this.#settings.get('max_ejection_time_ms');
    if (Math.min(baseMs * host.multiplier, maxMs) + host.jitterMs <= nowMs - host.ejectedMs) this.#return(host, nowMs);
  }

  #return(host: H, nowMs: number): void {
    this.#ejected--;
    host.isEjected = false;
    this.#decisions.returned(host);
    host.changedMs = nowMs;
  }

  #compare(origin: Origin, rateKind: OutlierKind, failureKind: OutlierKind, nowMs: number): void {
    const settings = this.#settings;
    const rateVolume = settings.get('success_rate_request_volume');
    const failureVolume = settings.get('failure_percentage_request_volume');
    const rateHosts = settings.get('success_rate_minimum_hosts');
    const failureHosts = settings.get('failure_percentage_minimum_hosts');
    this.#rates[origin] = NO_RATES;
    for (const { volumes } of this.#hosts) volumes[origin].rate = UNKNOWN;
    if (this.#hosts.size < Math.min(rateHosts, failureHosts)) return;

    const forRate: H[] = [];
    const forFailures: H[] = [];
    for (const host of this.#hosts) {
      const volume = host.volumes[origin];
      if (host.isEjected || volume.total === 0 || volume.total < Math.min(rateVolume, failureVolume)) continue;
      volume.rate = (100 * volume.successes) / volume.total;
      if (volume.total >= rateVolume) forRate.push(host);
      if (volume.total >= failureVolume) forFailures.push(host);
    }
    const rateOf = (host: H) => host.volumes[origin].rate;
    if (forRate.length > 0 && forRate.length >= rateHosts) {
      const rates = clusterRates(forRate.map(rateOf), settings.get('success_rate_stdev_factor') / 1000);
      this.#rates[origin] = rates;
      for (const host of forRate) if (rateOf(host) < rates.threshold) this.detect(host, rateKind, nowMs);
    }
    if (forFailures.length > 0 && forFailures.length >= failureHosts) {
      const threshold = settings.get('failure_percentage_threshold');
      for (const host of forFailures) if (100 - rateOf(host) >= threshold) this.detect(host, failureKind, nowMs);
    }
  }
}
