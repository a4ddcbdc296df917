// What a proxied connection has been in another process.

import type { FilterProgress } from '../../../../listener/travel.js';

/** Times are monotonic where they do not say otherwise. */
export interface FormerPairFacts {
  readonly cluster: string;
  /** Its address, as `127.0.0.1:80`. */
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

const TYPES: Readonly<Record<keyof FormerPairFacts, 'string' | 'number' | 'boolean'>> = {
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

export const FormerPair = {
  /** Undefined when it is not what a proxied connection tells. */
  from(progress: FilterProgress): FormerPairFacts | undefined {
    for (const [name, type] of Object.entries(TYPES)) if (typeof progress[name] !== type) return undefined;
    return progress as unknown as FormerPairFacts;
  },
};
