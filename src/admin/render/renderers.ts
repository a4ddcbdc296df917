// The kinds of bodies that render threads produce: for each kind, the request and the function.

import type { ProfileSet } from '../../common/profiling/pprof.js';
import type { StatsReaderAttachment } from '../../stats/read/reader.js';
import { renderProfile } from './render-profile.js';
import { renderStats, type StatsRenderRequest } from './render-stats.js';

/** Requests as plain data, by kind. */
export interface RenderRequests {
  readonly stats: StatsRenderRequest;
  readonly profile: ProfileSet;
}

/** Data that a thread may request in addition, because it caches it between bodies. */
export interface RenderSupplies {
  readonly stats: StatsReaderAttachment;
  readonly profile: undefined;
}

/** A body, rendered while its pieces are consumed. */
type RenderedBody = Iterable<Uint8Array> | AsyncIterable<Uint8Array>;

export type RenderKind = keyof RenderRequests;

/**
 * Render functions. A thread runs several at a time: a function yields pieces of some 32 KiB, and an empty piece where the
 * next one takes long. The consumer owns the pieces.
 */
export const RENDERERS: {
  readonly [K in RenderKind]: (request: RenderRequests[K], ask: () => Promise<RenderSupplies[K]>) => RenderedBody;
} = {
  stats: renderStats,
  profile: renderProfile,
};
