// Loads what only a reload needs: after the start, so that descriptors which are short when it is asked for are no obstacle.

import { onDemand } from '../../common/package/on-demand.js';

export const reloadParts = onDemand(() => import('./on-demand.js'));
