// What the checks of listeners and routes need to know of the rest of the configuration.

import type { ExtensionCatalog } from '../extension.js';
import type { Problems } from '../text/problems.js';

/** A cluster that has to exist where a dynamic resource is applied. */
export interface NeededCluster {
  readonly name: string;
  /** Where the resource names it. */
  readonly path: string;
}

export interface Surroundings {
  readonly catalog: ExtensionCatalog;
  readonly problems: Problems;
  readonly clusters: ReadonlySet<string>;
  /** Whether others may come while the server runs. */
  readonly mayGrow: boolean;
  /** Those that speak HTTP/2: only gRPC calls of Baton's own may name them. */
  readonly http2Clusters: ReadonlySet<string>;
  /**
   * With dynamic resources: others may bring the cluster that one names. What has to be there when it is applied is put here,
   * and not looked for in `clusters`.
   */
  readonly needed?: NeededCluster[];
}
