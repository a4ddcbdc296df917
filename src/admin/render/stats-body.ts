// Where an answer about stats is made: few of them on the primary, many in a render thread.

import type { Pieces } from '../admin-handler.js';
import type { AdminServices } from '../admin-services.js';
import { renderFrom, type StatsRendering } from './render-stats.js';

/** Some 30 ms of the primary's time, in turns of about a millisecond: a thread would take longer to begin. */
const MAX_ON_PRIMARY = 20_000;

/** Flushes first where that is configured. Rejects when the body cannot be made. */
export async function statsBody(services: AdminServices, rendering: StatsRendering): Promise<Pieces> {
  const { stats } = services;
  if (services.flushesStatsOnAdmin) await services.flushStats();
  else await services.updateStats();
  if (stats.size <= MAX_ON_PRIMARY) return renderFrom(stats.reader(), rendering);
  return services.renders.render('stats', { extent: stats.extent, rendering }, () => stats.readerAttachment());
}
