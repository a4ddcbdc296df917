// The context of the checks of listeners and routes.

import type { ExtensionCatalog } from '../catalog/extension.js';
import type { Problems } from '../text/problems.js';

export interface CheckContext {
  readonly catalog: ExtensionCatalog;
  readonly problems: Problems;
  /** Names of all clusters; undefined for dynamic resources, whose clusters are looked up when they are applied. */
  readonly clusters: ReadonlySet<string> | undefined;
  /** Names of the generic secrets of the bootstrap; undefined for dynamic resources, whose secrets are looked up when they are applied. */
  readonly secrets: ReadonlySet<string> | undefined;
  /** The bootstrap has the extension for internal listeners. */
  readonly permitsInternal: boolean;
  /** Whether clusters may be added at run time. */
  readonly mayGrow: boolean;
  /** Clusters with HTTP/2, which only Baton's own gRPC calls may use. */
  readonly http2Clusters: ReadonlySet<string>;
}
