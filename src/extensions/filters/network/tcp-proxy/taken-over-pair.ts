// The state of a proxied connection that another process hands over.

import type { FilterProgress } from '../../../../listener/hand-over.js';

/** Times are CLOCK_MONOTONIC unless their name says otherwise. */
export interface TakenOverPairFacts {
  readonly cluster: string;
  /** The address, for example `127.0.0.1:80`. */
  readonly host: string;
  readonly upstreamLocal: string;
  readonly upstreamStartMs: number;
  readonly startMs: number;
  readonly startRealtimeMs: number;
  readonly activeMs: number;
  readonly attempts: number;
  readonly bytesReceived: number;
  readonly bytesSent: number;
  readonly clientEnded: boolean;
  readonly serverEnded: boolean;
}

const TYPES: Readonly<Record<keyof TakenOverPairFacts, 'string' | 'number' | 'boolean'>> = {
  cluster: 'string',
  host: 'string',
  upstreamLocal: 'string',
  upstreamStartMs: 'number',
  startMs: 'number',
  startRealtimeMs: 'number',
  activeMs: 'number',
  attempts: 'number',
  bytesReceived: 'number',
  bytesSent: 'number',
  clientEnded: 'boolean',
  serverEnded: 'boolean',
};

export const TakenOverPair = {
  /** Returns undefined if `progress` is not that of a proxied connection. */
  from(progress: FilterProgress): TakenOverPairFacts | undefined {
    for (const [name, type] of Object.entries(TYPES)) if (typeof progress[name] !== type) return undefined;
    return progress as unknown as TakenOverPairFacts;
  },
};
