// Bodies of answers about stats in every form, rendered by the same function on the primary and in a render thread.

import { type MonitoringOptions, renderMonitoring } from '../../stats/monitoring/render-monitoring.js';
import { namePattern } from '../../stats/read/name-pattern.js';
import { type StatsExtent, StatsReader, type StatsReaderAttachment } from '../../stats/read/reader.js';
import type { StatsQuery } from '../../stats/read/selection.js';
import { renderJson } from '../../stats/render/render-json.js';
import { type HistogramBuckets, renderText } from '../../stats/render/render-text.js';

/** The requested stats as plain data: a StatsQuery with the filter's pattern instead of its function. */
export type PlainQuery = Omit<StatsQuery, 'filter'> & { readonly pattern?: string | undefined };

export type StatsRendering = PlainQuery &
  (
    | { readonly form: 'text' | 'json'; readonly histogramBuckets: HistogramBuckets }
    | ({ readonly form: 'monitoring' } & Omit<MonitoringOptions, keyof StatsQuery>)
  );

export interface StatsRenderRequest {
  /** The current extent of the store. */
  readonly extent: StatsExtent;
  readonly rendering: StatsRendering;
}

/** Renders stats in a thread. Requests an attachment with `ask` if the thread's reader does not cover the store. */
export async function* renderStats(
  { extent, rendering }: StatsRenderRequest,
  ask: () => Promise<StatsReaderAttachment>,
): AsyncGenerator<Uint8Array, void> {
  if (!isKnown(extent)) {
    const attachment = await ask();
    // Another body may have requested it as well.
    if (!isKnown(extent)) known = { extent: extentOf(attachment), reader: new StatsReader(attachment) };
  }
  const { reader } = known!;
  reader.refresh();
  yield* renderFrom(reader, rendering);
}

/** Renders the pieces of an answer. Throws a BatonError for an invalid pattern. */
export function renderFrom(reader: StatsReader, rendering: StatsRendering): Iterable<Uint8Array> {
  const filter = rendering.pattern === undefined ? undefined : namePattern(rendering.pattern);
  switch (rendering.form) {
    case 'text':
      return renderText(reader, { ...rendering, filter });
    case 'json':
      return renderJson(reader, { ...rendering, filter });
    case 'monitoring':
      return renderMonitoring(reader, { ...rendering, filter });
  }
}

/** The thread's reader, until the store exceeds its attachment. */
let known: { readonly extent: StatsExtent; readonly reader: StatsReader } | undefined;

function isKnown({ version, layoutCount }: StatsExtent): boolean {
  return known !== undefined && known.extent.version >= version && known.extent.layoutCount >= layoutCount;
}

function extentOf({ version, layouts }: StatsReaderAttachment): StatsExtent {
  return { version, layoutCount: layouts.length };
}
