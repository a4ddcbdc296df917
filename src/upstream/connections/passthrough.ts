// What connections to internal listeners bring with them (InternalUpstreamTransport): metadata of host and cluster, and the filter
// state that a stream shares with connections to hosts.

import type { FilterStateObject } from '../../access-log/stream/filter-state.js';
import type { PassedValues } from '../../access-log/stream/passed-values.js';
import type { Metadata, Struct } from '../../config/generated/api.js';
import { InternalUpstreamStats } from '../../stats/layouts/cluster.js';
import type { Scope, ThreadStats } from '../../stats/thread-stats.js';
import type { PassthroughSpec } from '../cluster-config.js';

/** Objects of filter state, by key. */
export type SharedObjects = readonly (readonly [key: string, object: FilterStateObject])[];

export class Passthrough {
  readonly #spec: PassthroughSpec;
  readonly #stats: Scope;

  constructor(spec: PassthroughSpec, stats: ThreadStats) {
    this.#spec = spec;
    this.#stats = stats.scope(spec.scope);
  }

  /** Returns what a new connection brings; counts structures that host and cluster do not have. */
  values(host: Metadata | undefined, cluster: Metadata | undefined, objects: SharedObjects = []): PassedValues {
    const { fromCluster, fromHost } = this.#spec;
    const metadata: (readonly [string, Struct])[] = [];
    for (const name of fromHost) this.#add(metadata, name, host);
    for (const name of fromCluster) this.#add(metadata, name, cluster);
    return { metadata, objects };
  }

  #add(metadata: (readonly [string, Struct])[], name: string, { filter_metadata: all = {} }: Metadata = {}): void {
    const value = Object.hasOwn(all, name) ? all[name] : undefined;
    if (value === undefined) this.#stats.increment(InternalUpstreamStats.at.no_metadata);
    else metadata.push([name, value]);
  }
}
