// Decides where an answer about stats is rendered: a few stats on the primary, many in a render thread.

import type { Pieces } from '../admin-handler.js';
import type { AdminServices } from '../admin-services.js';
import { renderFrom, type StatsRendering } from './render-stats.js';

/** Some 30 ms of the primary's time, in turns of about a millisecond: starting a thread would take longer. */
const MAX_ON_PRIMARY = 20_000;

/** Returns the body. Flushes first if that is configured. Rejects if the body cannot be rendered. */
export async function statsBody(services: AdminServices, rendering: StatsRendering): Promise<Pieces> {
  const { stats } = services;
  if (services.flushesStatsOnAdmin) await services.flushStats();
  else await services.updateStats();
  if (stats.size <= MAX_ON_PRIMARY) return renderFrom(stats.reader(), rendering);
  return services.renders.render('stats', { extent: stats.extent, rendering }, () => stats.readerAttachment());
}
