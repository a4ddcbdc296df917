// What no single message can tell: names given twice, references to nothing, filters in an order that cannot work.

import type { ExtensionCatalog } from '../extension.js';
import type { Bootstrap } from '../generated/api.js';
import type { Problems } from '../problems.js';
import { checkClusters } from './clusters.js';
import { checkListeners } from './listeners.js';

/** Checks a bootstrap whose messages are right each by itself. */
export function checkBootstrap(bootstrap: Bootstrap, catalog: ExtensionCatalog, problems: Problems): void {
  const clusters = bootstrap.static_resources?.clusters ?? [];
  checkClusters(clusters, problems);
  const known = new Set(clusters.map((cluster) => cluster?.name ?? ''));
  checkListeners(bootstrap.static_resources?.listeners ?? [], { catalog, problems, clusters: known });
}
