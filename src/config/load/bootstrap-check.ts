// Checks of a whole bootstrap by rooms above this one, which the loader runs after its own.

import type { Report } from '../catalog/extension.js';
import type { Bootstrap } from '../generated/api.js';
import type { LoadOptions } from './load-options.js';

/**
 * Finds what only the rooms above can know, and reports it by its path from the top. It runs when nothing else is wrong:
 * `bootstrap` obeys the schema and the loader's checks.
 */
export type BootstrapCheck = (bootstrap: Bootstrap, report: Report, options: LoadOptions) => void;
