// What render threads can make: for each kind of body, what is asked for and the function that makes it.

import type { ProfileSet } from '../../common/profiling/pprof.js';
import type { StatsReaderAttachment } from '../../stats/read/reader.js';
import { renderProfile } from './render-profile.js';
import { renderStats, type StatsRenderRequest } from './render-stats.js';

/** Plain data that says what is to be rendered, by kind. */
export interface RenderRequests {
  readonly stats: StatsRenderRequest;
  readonly profile: ProfileSet;
}

/** Plain data that a thread may ask for besides, because it keeps it from one body to the next. */
export interface RenderSupplies {
  readonly stats: StatsReaderAttachment;
  readonly profile: undefined;
}

/** A body, made as its pieces are taken. */
type Made = Iterable<Uint8Array> | AsyncIterable<Uint8Array>;

export type RenderKind = keyof RenderRequests;

/**
 * Run in a thread that several of them share: a piece of some 32 KiB at a time, and an empty one where the next takes long.
 * A piece belongs to whoever gets it.
 */
export const RENDERERS: {
  readonly [K in RenderKind]: (request: RenderRequests[K], ask: () => Promise<RenderSupplies[K]>) => Made;
} = {
  stats: renderStats,
  profile: renderProfile,
};
