// What the checks of listeners and routes need to know of the rest of the configuration.

import type { ExtensionCatalog } from '../catalog/extension.js';
import type { Problems } from '../text/problems.js';

export interface Surroundings {
  readonly catalog: ExtensionCatalog;
  readonly problems: Problems;
  /** All that there are; undefined with dynamic resources, whose clusters are looked for where they are applied. */
  readonly clusters: ReadonlySet<string> | undefined;
  /** Whether others may come while the server runs. */
  readonly mayGrow: boolean;
  /** Those that speak HTTP/2: only gRPC calls of Baton's own may name them. */
  readonly http2Clusters: ReadonlySet<string>;
}
