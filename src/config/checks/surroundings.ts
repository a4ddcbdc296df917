// What the checks of listeners and routes need to know of the rest of the configuration.

import type { ExtensionCatalog } from '../extension.js';
import type { Problems } from '../text/problems.js';

export interface Surroundings {
  readonly catalog: ExtensionCatalog;
  readonly problems: Problems;
  readonly clusters: ReadonlySet<string>;
  /** Those that speak HTTP/2: only gRPC calls of Baton's own may name them. */
  readonly http2Clusters: ReadonlySet<string>;
}
