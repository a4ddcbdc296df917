// Counts a cluster's responses by status code. These stats exist from their first response.
//
// Each response counts under cluster.<name>. and again under cluster.<name>.internal. or .external., by the origin of the
// request. Responses of canaries also count under .canary., and when the zones of this server and of the host are known,
// responses also count under .zone.<this server's>.<the host's>.

import { headerKey } from '../common/text/header-names.js';
import type { HeaderBlock } from '../http/headers/header-block.js';
import { CodeCounters } from '../stats/code-counters.js';
import { ClusterStats } from '../stats/layouts/cluster.js';
import { scopePrefix } from '../stats/scope-prefix.js';
import type { Scope, ThreadStats } from '../stats/thread-stats.js';
import type { Host } from './hosts/host.js';

const CANARY = headerKey('x-envoy-upstream-canary');

/** Returns whether the response counts as a canary's: its host is a canary, or the response has x-envoy-upstream-canary. */
export function isCanaryResponse(headers: HeaderBlock, host: Host): boolean {
  return host.isCanary || headers.get(CANARY) === 'true';
}

export class ResponseStats {
  readonly #all: CodeCounters;
  readonly #internal: CodeCounters;
  readonly #external: CodeCounters;
  #canary: CodeCounters | undefined;
  #retried: CodeCounters | undefined;
  /** The zone of this server, or ''. */
  readonly #zone: string;
  /** Counters by the zone of the host. */
  readonly #zones = new Map<string, CodeCounters>();

  /** `cluster`: the scope `prefix`, which is `cluster.<name>.`; `zone`: see UpstreamThread. */
  constructor(stats: ThreadStats, cluster: Scope, prefix: string, zone: string) {
    this.#zone = zone;
    this.#all = new CodeCounters(stats, prefix, '', new CompletedCounter(cluster));
    this.#internal = new CodeCounters(stats, prefix, 'internal.');
    this.#external = new CodeCounters(stats, prefix, 'external.');
  }

  /**
   * Counts one response. `host` sent it or was chosen for it; undefined: no host was chosen. `isWithoutStatus`: as in Envoy, only the cluster's
   * own counters of statuses leave it out.
   */
  countResponse(
    status: number,
    isInternal: boolean,
    host: Host | undefined,
    isCanary: boolean,
    isWithoutStatus = false,
  ): void {
    this.#all.count(status, isWithoutStatus);
    (isInternal ? this.#internal : this.#external).count(status);
    if (isCanary) this.#canaryCounters.count(status);
    this.#zoneCounters(host)?.count(status);
  }

  /** Records the time from the end of the request to the response. */
  recordTime(milliseconds: number, isInternal: boolean, host: Host, isCanary: boolean): void {
    this.#all.record(milliseconds);
    (isInternal ? this.#internal : this.#external).record(milliseconds);
    if (isCanary) this.#canaryCounters.record(milliseconds);
    this.#zoneCounters(host)?.record(milliseconds);
  }

  /** Counts the status of a response that is dropped because the request is retried. */
  countRetried(status: number): void {
    (this.#retried ??= this.#group('retry.')).count(status);
  }

  get #canaryCounters(): CodeCounters {
    return (this.#canary ??= this.#group('canary.'));
  }

  #zoneCounters(host: Host | undefined): CodeCounters | undefined {
    if (this.#zone === '' || host === undefined || host.locality.zone === '') return undefined;
    const { zone } = host.locality;
    let counters = this.#zones.get(zone);
    if (counters === undefined) {
      counters = this.#group(`zone.${scopePrefix(this.#zone)}.${scopePrefix(zone)}.`);
      this.#zones.set(zone, counters);
    }
    return counters;
  }

  #group(name: string): CodeCounters {
    return new CodeCounters(this.#all.stats, this.#all.prefix, name);
  }
}

/** The one that exists before the first response. */
class CompletedCounter {
  readonly #cluster: Scope;

  constructor(cluster: Scope) {
    this.#cluster = cluster;
  }

  increment(): void {
    this.#cluster.increment(ClusterStats.at.upstream_rq_completed);
  }
}
