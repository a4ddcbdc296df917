// What the checks of listeners and routes need to know of the rest of the configuration.

import type { ExtensionCatalog } from '../extension.js';
import type { Problems } from '../problems.js';

export interface Surroundings {
  readonly catalog: ExtensionCatalog;
  readonly problems: Problems;
  readonly clusters: ReadonlySet<string>;
}
