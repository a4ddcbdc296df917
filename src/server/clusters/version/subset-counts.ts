// The stats about the subsets of a cluster: the primary finds them once for all threads.

import { shownName } from '../../../common/text/shown.js';
import { inTurns } from '../../../common/time/next-turn.js';
import { internalError } from '../../../log/internal-errors.js';
import { getLogger } from '../../../log/logger.js';
import { ClusterStats, SubsetStats } from '../../../stats/layouts/cluster.js';
import type { Scope } from '../../../stats/thread-stats.js';
import type { HostSetData } from '../../../upstream/hosts/host-set.js';
import { indexSubsets, type SubsetIndex, subsetLimits } from '../../../upstream/load-balancer/subsets/subset-index.js';
import type { SubsetSpec } from '../../../upstream/load-balancer/subsets/subset-spec.js';
import type { GaugeShare } from './gauge-share.js';
import type { VersionResources } from './version-resources.js';

const logger = getLogger('upstream');

export class SubsetCounts {
  readonly #name: string;
  readonly #spec: SubsetSpec;
  readonly #picksByHash: boolean;
  readonly #stats: Scope;
  readonly #own: Scope;
  readonly #active: GaugeShare;
  readonly #threads: number;
  /** The keys of the current subsets. */
  #keys: ReadonlySet<string> = new Set();
  /** The hosts in which they were found. */
  #metadata: HostSetData['metadata'];
  #overflow = 0;

  /**
   * Throws a RangeError when memory for the stats is short.
   * @param threads as in Envoy, the subsets of each thread are counted
   */
  constructor(name: string, spec: SubsetSpec, picksByHash: boolean, resources: VersionResources, threads: number) {
    this.#name = name;
    this.#spec = spec;
    this.#picksByHash = picksByHash;
    this.#threads = threads;
    this.#stats = resources.shared.stats;
    this.#active = resources.share(this.#stats);
    this.#own = resources.addScope('', SubsetStats);
  }

  /** Called when the hosts or their health have changed. */
  update(hosts: HostSetData): void {
    if (hosts.metadata === this.#metadata) return;
    this.#metadata = hosts.metadata;
    const steps = indexSubsets(hosts, this.#spec, subsetLimits(this.#picksByHash));
    const first = steps.next();
    if (first.done === true) this.#found(first.value);
    else void this.#continue(steps, hosts);
  }

  async #continue(steps: Iterator<void, SubsetIndex>, { metadata }: HostSetData): Promise<void> {
    try {
      const index = await inTurns(steps);
      if (metadata === this.#metadata) this.#found(index);
    } catch (error) {
      internalError(`the subsets of cluster '${shownName(this.#name)}' cannot be counted`, error);
    }
  }

  #found({ duplicates, overflow, subsets }: SubsetIndex): void {
    this.#count(new Set(subsets.keys()));
    const { at } = SubsetStats;
    this.#own.set(at.lb_subsets_single_host_per_subset_duplicate, duplicates);
    this.#own.set(at.lb_subsets_overflow, overflow);
    const before = this.#overflow;
    this.#overflow = overflow;
    // Updates may come many times a second.
    if (overflow <= before) return;
    logger.warning(
      `cluster '${shownName(this.#name)}': hosts are not in all of their subsets (${overflow} places): there are too many subsets, or values are too long`,
    );
  }

  /** Called when the version is not used any more. */
  end(): void {
    this.#metadata = undefined;
    this.#count(new Set());
  }

  #count(keys: ReadonlySet<string>): void {
    const before = this.#keys;
    this.#keys = keys;
    let created = 0;
    let kept = 0;
    for (const key of keys) before.has(key) ? kept++ : created++;
    const { at } = ClusterStats;
    this.#stats.add(at.lb_subsets_created, created * this.#threads);
    this.#stats.add(at.lb_subsets_removed, (before.size - kept) * this.#threads);
    this.#active.set(at.lb_subsets_active, keys.size * this.#threads);
  }
}
