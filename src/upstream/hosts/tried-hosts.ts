// The hosts that a request has tried (retry_host_predicate with envoy.retry_host_predicates.previous_hosts): its retries prefer others.

import type { Word64 } from '../../common/xxh64.js';
import type { MetadataMatch } from '../../http/routing/actions/metadata-match.js';
import type { Cluster, ClusterHost } from '../cluster.js';

export class TriedHosts {
  private readonly addresses: string[] = [];

  clear(): void {
    if (this.addresses.length > 0) this.addresses.length = 0;
  }

  add({ address }: ClusterHost): void {
    if (!this.addresses.includes(address)) this.addresses.push(address);
  }

  /**
   * Picks a host, if possible one that was not tried.
   * @param furtherPicks how many more picks may be made to find one
   * @param hash of the request, if the cluster picks by hash
   * @param match metadata of the request, if the cluster has subsets
   */
  pick(cluster: Cluster, furtherPicks: number, hash?: Word64, match?: MetadataMatch): ClusterHost | undefined {
    const { addresses } = this;
    let host = cluster.pickHost(hash, 0, match);
    // If no host or all hosts were tried, further picks are useless.
    const maxPicks = addresses.length > 0 && addresses.length < cluster.hostCount ? furtherPicks : 0;
    for (let attempt = 1; attempt <= maxPicks && host !== undefined && addresses.includes(host.address); attempt++) {
      host = cluster.pickHost(hash, attempt, match);
    }
    return host;
  }
}
