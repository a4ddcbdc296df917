// The body of a profile. The encoder is loaded on first use.

import { onDemand } from '../../common/package/on-demand.js';
import type { ProfileSet } from '../../common/profiling/pprof.js';

const loadPprof = onDemand(() => import('../../common/profiling/pprof.js'));

/** Renders one piece: some hundred kilobytes at most. */
export async function* renderProfile(set: ProfileSet): AsyncGenerator<Uint8Array, void> {
  const { encodePprof } = await loadPprof();
  yield await encodePprof(set);
}
