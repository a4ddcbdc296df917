// Decides which hosts of a cluster are ejected, and when they come back. Without I/O: time, chance and what was counted of the hosts
// come in, and decisions go out.

import type { Random } from '../../common/random.js';
import { OUTLIER_NAMES, OutlierKind } from './outlier-kind.js';
import type { OutlierSettings } from './outlier-spec.js';
import { type ClusterRates, clusterRates, NO_RATES, UNKNOWN } from './success-rates.js';

/** What the last interval has brought. */
export class Volume {
  total = 0;
  successes = 0;
  /** In percent, if the requests were enough to tell; -1: they were not. */
  rate = UNKNOWN;
}

/** One host; whoever runs the detector adds what it needs. */
export class OutlierHost {
  isEjected = false;
  /** How often it has been ejected. */
  ejections = 0;
  /** How many times the base ejection time it stays away: one more with each ejection, one less with each good interval. */
  multiplier = 0;
  jitterMs = 0;
  ejectedMs = 0;
  /** When it was ejected or came back last; undefined: never. */
  changedMs: number | undefined = undefined;
  /** By Origin; to be filled before each sweep. */
  readonly volumes: readonly [Volume, Volume] = [new Volume(), new Volume()];
}

/** Whose errors are counted. */
export const enum Origin {
  /** Those that hosts answer; all of them where they are not told apart. */
  External = 0,
  /** What keeps Baton from getting an answer. */
  Local = 1,
}

/** Who is told of what is decided. */
export interface OutlierDecisions<H> {
  /** It is an outlier, whatever is done about it. */
  detected(kind: OutlierKind): void;
  /** As many are away as may be. */
  overflowed(): void;
  /** `isEnforced`: it is ejected; otherwise it would be if outliers of this kind were. Called before `changedMs` is that of now. */
  ejected(host: H, kind: OutlierKind, isEnforced: boolean): void;
  /** It is used again. Called before `changedMs` is that of now. */
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

  /** How many hosts are ejected now. */
  get ejected(): number {
    return this.#ejected;
  }

  /** As the last sweep has found them. */
  rates(origin: Origin): ClusterRates {
    return this.#rates[origin];
  }

  add(host: H): void {
    this.#hosts.add(host);
  }

  /** It has left the cluster. */
  remove(host: H): void {
    if (this.#hosts.delete(host) && host.isEjected) this.#ejected--;
  }

  /** It is an outlier of this kind. One that is ejected already is left as it is. */
  detect(host: H, kind: OutlierKind, nowMs: number): void {
    if (host.isEjected || !this.#hosts.has(host)) return;
    this.#decisions.detected(kind);
    if (!this.#mayEject) return this.#decisions.overflowed();
    const isEnforced = this.#isHit(this.#settings.get(`enforcing_${OUTLIER_NAMES[kind]}`));
    if (isEnforced) this.#eject(host, nowMs);
    this.#decisions.ejected(host, kind, isEnforced);
    if (isEnforced) host.changedMs = nowMs;
  }

  /** An active health check of the host has passed. */
  passedHealthCheck(host: H, nowMs: number): void {
    if (host.isEjected && this.#settings.spec.returnsWhenChecked) this.#return(host, nowMs);
  }

  /** An interval is over: hosts whose time is over come back, and shares of failures are compared. */
  sweep(nowMs: number): void {
    for (const host of this.#hosts) {
      if (host.isEjected) this.#returnIfOver(host, nowMs);
      else if (host.multiplier > 0) host.multiplier--;
    }
    this.#compare(Origin.External, OutlierKind.SuccessRate, OutlierKind.FailurePercentage, nowMs);
    this.#compare(Origin.Local, OutlierKind.LocalOriginSuccessRate, OutlierKind.LocalOriginFailurePercentage, nowMs);
  }

  /** With this one ejected there would be no more than may be. */
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
    // Beyond that it would take needlessly many good intervals to come down again.
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

  #compare(origin: Origin, ofRate: OutlierKind, ofFailures: OutlierKind, nowMs: number): void {
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
      for (const host of forRate) if (rateOf(host) < rates.threshold) this.detect(host, ofRate, nowMs);
    }
    if (forFailures.length > 0 && forFailures.length >= failureHosts) {
      const threshold = settings.get('failure_percentage_threshold');
      for (const host of forFailures) if (100 - rateOf(host) >= threshold) this.detect(host, ofFailures, nowMs);
    }
  }
}
