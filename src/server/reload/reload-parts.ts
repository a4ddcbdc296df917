// Loads the modules that only reloads need. This happens soon after startup, so that a later lack of descriptors does not prevent
// reloads.

import { onDemand } from '../../common/package/on-demand.js';

export const reloadParts = onDemand(() => import('./on-demand.js'));
