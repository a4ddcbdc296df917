// Checks of a whole bootstrap by higher rooms, which the loader runs after its own checks.

import type { Report } from '../catalog/extension.js';
import type { Bootstrap } from '../generated/api.js';
import type { LoadOptions } from './load-options.js';

/**
 * Reports mistakes that only higher rooms can detect, by path from the top. Called only if `bootstrap` obeys the schema and
 * passes the loader's checks.
 */
export type BootstrapCheck = (bootstrap: Bootstrap, report: Report, options: LoadOptions) => void;
