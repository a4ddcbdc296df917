// Outlier detection of one version of a cluster, on the primary. Threads count in shared words and report hosts that fail
// repeatedly. The primary decides once for all threads, and publishes its decision as health flags.

import type { Random } from '../../../common/random.js';
import { shownName } from '../../../common/text/shown.js';
import type { OutlierDetectionEvent } from '../../../config/generated/api.js';
import { Timer, type Timers } from '../../../io/time/timing-wheel.js';
import { getLogger } from '../../../log/logger.js';
import type { Runtime } from '../../../runtime/runtime.js';
import { OutlierDetectionStats } from '../../../stats/layouts/cluster.js';
import type { Scope } from '../../../stats/thread-stats.js';
import type { ClusterSpec } from '../../../upstream/cluster-config.js';
import type { KnownHost } from '../../../upstream/hosts/host-directory.js';
import {
  type Origin,
  type OutlierDecisions,
  OutlierDetector,
  OutlierHost,
} from '../../../upstream/outliers/outlier-detector.js';
import { ejectionEvent, returnEvent } from '../../../upstream/outliers/outlier-event.js';
import { OUTLIER_NAMES, OUTLIER_STATS, OutlierKind } from '../../../upstream/outliers/outlier-kind.js';
import { type OutlierNumber, OutlierSettings, type OutlierSpec } from '../../../upstream/outliers/outlier-spec.js';
import { type ClusterRates, UNKNOWN } from '../../../upstream/outliers/success-rates.js';
import { HostWord, type SharedWordsOwner } from '../../../upstream/shared-words.js';
import type { GaugeShare } from './gauge-share.js';
import type { VersionResources } from './version-resources.js';

const logger = getLogger('upstream');

export interface OutlierDetectionContext {
  readonly words: SharedWordsOwner;
  readonly timers: Timers;
  readonly random: Random;
  readonly runtime: Runtime;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** Undefined when no event log is configured. */
  readonly outlierEvents: OutlierEvents | undefined;
}

/** The receiver of ejections and unejections. */
export interface OutlierEvents {
  write(event: OutlierDetectionEvent): void;
}

/** Consecutive failures by kind. Success rates are evaluated at the end of an interval, and have no entry. */
const STREAKS: readonly { readonly kind: OutlierKind; readonly word: HostWord; readonly limit: OutlierNumber }[] = [
  { kind: OutlierKind.Consecutive5xx, word: HostWord.Consecutive5xx, limit: 'consecutive_5xx' },
  {
    kind: OutlierKind.ConsecutiveGatewayFailure,
    word: HostWord.ConsecutiveGatewayFailures,
    limit: 'consecutive_gateway_failure',
  },
  {
    kind: OutlierKind.ConsecutiveLocalOriginFailure,
    word: HostWord.ConsecutiveLocalOriginFailures,
    limit: 'consecutive_local_origin_failure',
  },
];

const DETECTED = OUTLIER_STATS.map((name) => OutlierDetectionStats.at[`ejections_detected_${name}`]);
const ENFORCED = OUTLIER_STATS.map((name) => OutlierDetectionStats.at[`ejections_enforced_${name}`]);

export class OutlierDetection implements OutlierDecisions<WatchedHost> {
  readonly #context: OutlierDetectionContext;
  readonly #clusterName: string;
  /** Called when the host `key` is ejected or used again. */
  readonly #changed: (key: string, isEjected: boolean) => void;
  readonly #settings: OutlierSettings;
  readonly #detector: OutlierDetector<WatchedHost>;
  readonly #byBlock = new Map<number, WatchedHost>();
  readonly #stats: Scope;
  readonly #gauges: GaugeShare;
  readonly #timer = new Timer<OutlierDetection>(this, onInterval);

  /** Throws a RangeError when memory for its stats is short. */
  constructor(
    { name }: ClusterSpec,
    spec: OutlierSpec,
    resources: VersionResources,
    context: OutlierDetectionContext,
    changed: (key: string, isEjected: boolean) => void,
  ) {
    this.#context = context;
    this.#clusterName = name;
    this.#changed = changed;
    this.#settings = new OutlierSettings(spec, context.runtime);
    this.#detector = new OutlierDetector<WatchedHost>(this.#settings, context.random, this);
    this.#stats = resources.addScope('outlier_detection.', OutlierDetectionStats);
    this.#gauges = resources.share(this.#stats);
  }

  /** Called when the cluster's hosts are put into use. */
  start(hosts: Iterable<KnownHost>): void {
    this.setHosts(hosts);
    this.#schedule();
  }

  stop(): void {
    this.#context.timers.cancel(this.#timer);
  }

  /** Adds new hosts without a history, and drops the history of those that are gone. */
  setHosts(hosts: Iterable<KnownHost>): void {
    const gone = new Map(this.#byBlock);
    for (const { address, block, key } of hosts) {
      const known = this.#byBlock.get(block);
      if (known === undefined) this.#add(new WatchedHost(key, block, address));
      else {
        known.address = address;
        gone.delete(block);
      }
    }
    for (const [block, host] of gone) {
      this.#byBlock.delete(block);
      this.#detector.remove(host);
      if (host.isEjected) this.#changed(host.key, false);
    }
    this.#countEjected();
  }

  /** Called when the host with this block has failed too often in a row. */
  reported(block: number, kind: OutlierKind): void {
    const host = this.#byBlock.get(block);
    const streak = STREAKS.find((each) => each.kind === kind);
    if (host === undefined || streak === undefined) return;
    this.#detector.detect(host, kind, this.#context.now());
    this.#context.words.clear(block + streak.word);
  }

  /** Called when a thread has died whose report may be lost. */
  recheck(): void {
    for (const { kind, limit, word } of STREAKS) {
      const threshold = this.#settings.get(limit);
      if (threshold === 0) continue;
      for (const { block } of this.#byBlock.values()) {
        if (this.#context.words.read(block + word) >= threshold) this.reported(block, kind);
      }
    }
  }

  /** Called when an active health check of the host `key` has passed and the host is not unhealthy. */
  passedHealthCheck(key: string): void {
    if (this.#detector.ejected === 0) return;
    for (const host of this.#byBlock.values()) {
      if (host.key === key) this.#detector.passedHealthCheck(host, this.#context.now());
    }
  }

  /** Called at the end of an interval. */
  sweep(): void {
    for (const host of this.#detector.hosts) host.takeVolumes(this.#context.words);
    this.#detector.sweep(this.#context.now());
    this.#schedule();
  }

  /** Returns the rates of the last interval. */
  rates(origin: Origin): ClusterRates {
    return this.#detector.rates(origin);
  }

  /** Returns the rate of the host with this block in the last interval, in percent; -1 when it is unknown. */
  successRate(block: number, origin: Origin): number {
    return this.#byBlock.get(block)?.volumes[origin].rate ?? UNKNOWN;
  }

  // ── OutlierDecisions ─────────────────────────────────────────────────────────────────────────────────────────────

  detected(kind: OutlierKind): void {
    const { at } = OutlierDetectionStats;
    this.#stats.increment(DETECTED[kind]!);
    if (kind === OutlierKind.Consecutive5xx) this.#stats.increment(at.ejections_consecutive_5xx);
    if (kind === OutlierKind.SuccessRate) this.#stats.increment(at.ejections_success_rate);
  }

  overflowed(): void {
    this.#stats.increment(OutlierDetectionStats.at.ejections_overflow);
  }

  ejected(host: WatchedHost, kind: OutlierKind, isEnforced: boolean): void {
    const what = isEnforced ? 'is ejected' : 'is an outlier, but the ejection is not enforced';
    logger.debug(`cluster '${shownName(this.#clusterName)}': host ${host.address} ${what}: ${OUTLIER_NAMES[kind]}`);
    const rates = (origin: Origin) => this.rates(origin);
    this.#write(host, ejectionEvent(host, kind, isEnforced, rates, this.#context.now()));
    // As in Envoy, the old counter knows two kinds, and does not ask whether the ejection is enforced.
    const isInOldTotal = kind === OutlierKind.Consecutive5xx || kind === OutlierKind.SuccessRate;
    if (isInOldTotal) this.#stats.increment(OutlierDetectionStats.at.ejections_total);
    if (!isEnforced) return;
    this.#stats.increment(ENFORCED[kind]!);
    this.#stats.increment(OutlierDetectionStats.at.ejections_enforced_total);
    this.#countEjected();
    this.#changed(host.key, true);
  }

  returned(host: WatchedHost): void {
    logger.debug(`cluster '${shownName(this.#clusterName)}': host ${host.address} is no longer ejected`);
    this.#write(host, returnEvent(host, this.#context.now()));
    host.clearStreaks(this.#context.words);
    this.#countEjected();
    this.#changed(host.key, false);
  }

  #write({ address }: WatchedHost, event: OutlierDetectionEvent): void {
    this.#context.outlierEvents?.write({
      timestamp: new Date().toISOString(),
      cluster_name: this.#clusterName,
      upstream_url: address,
      ...event,
    });
  }

  #add(host: WatchedHost): void {
    this.#byBlock.set(host.block, host);
    host.clearStreaks(this.#context.words);
    host.takeVolumes(this.#context.words);
    this.#detector.add(host);
  }

  #countEjected(): void {
    this.#gauges.set(OutlierDetectionStats.at.ejections_active, this.#detector.ejected);
  }

  #schedule(): void {
    this.#context.timers.reschedule(this.#timer, Math.max(1, this.#settings.get('interval_ms')));
  }
}

class WatchedHost extends OutlierHost {
  readonly key: string;
  readonly block: number;
  address: string;
  /** The sums at the end of the last interval. */
  readonly #sums: [number, number, number, number] = [0, 0, 0, 0];

  constructor(key: string, block: number, address: string) {
    super();
    this.key = key;
    this.block = block;
    this.address = address;
  }

  /** Resets the counts of consecutive failures. */
  clearStreaks(words: SharedWordsOwner): void {
    for (const { word } of STREAKS) words.clear(this.block + word);
  }

  /** Sets the volumes to what was counted since the last call. */
  takeVolumes(words: SharedWordsOwner): void {
    const [external, local] = this.volumes;
    external.total = this.#take(words, HostWord.Requests, 0);
    external.successes = this.#take(words, HostWord.Successes, 1);
    local.total = this.#take(words, HostWord.LocalOriginRequests, 2);
    local.successes = this.#take(words, HostWord.LocalOriginSuccesses, 3);
  }

  #take(words: SharedWordsOwner, word: HostWord, index: 0 | 1 | 2 | 3): number {
    const sum = words.read(this.block + word);
    const grown = (sum - this.#sums[index]) | 0;
    this.#sums[index] = sum;
    return grown;
  }
}

function onInterval(detection: OutlierDetection): void {
  detection.sweep();
}
