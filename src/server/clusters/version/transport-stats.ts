// Counts how often each transport socket of a cluster was selected for a host.

import type { Cluster } from '../../../config/generated/api.js';
import { ClusterStats, TransportMatchStats } from '../../../stats/layouts/cluster.js';
import type { Scope } from '../../../stats/thread-stats.js';
import { OWN_TRANSPORT } from '../../../upstream/hosts/transport-matches.js';
import type { VersionResources } from './version-resources.js';

export class TransportStats {
  readonly #own: Scope;
  /** In the order of transport_socket_matches. Undefined for one named like the cluster's own. */
  readonly #matches: readonly (Scope | undefined)[];

  constructor({ transport_socket_matches: matches = [] }: Cluster, resources: VersionResources) {
    this.#own = resources.shared.stats;
    this.#matches = matches.map(({ name }) =>
      name === 'default' ? undefined : resources.addScope(`${name}.`, TransportMatchStats),
    );
  }

  /** `transport`: see TransportMatches. */
  count(transport: number): void {
    const match = transport === OWN_TRANSPORT ? undefined : this.#matches[transport - 1];
    if (match === undefined) this.#own.increment(ClusterStats.at['default.total_match_count']);
    else match.increment(TransportMatchStats.at.total_match_count);
  }
}
