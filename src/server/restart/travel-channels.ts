// The channels between the workers of two processes on which established connections travel.

import type { NativeShim } from '../../io/shim.js';

export interface TravelChannels {
  /** Ends of this process's workers, by worker. */
  readonly byWorker: readonly (readonly number[])[];
  readonly childEnds: number[];
  /** How many descriptors may be under way on each of them. */
  readonly descriptors: number;
}

/** Under way at a time, on all channels together: the kernel counts them against what a user may open. */
const MOST_UNDER_WAY = 64;
/** A proxied connection has two. */
const ONE_CONNECTION = 2;
/** Of one message. */
const MOST_CHANNELS = 64;

/** As many as the process with more workers has workers, so that all of them take part. Throws, with none left, for want of descriptors. */
export function openTravelChannels(shim: NativeShim, workers: number, childWorkers: number): TravelChannels {
  const count = Math.min(MOST_CHANNELS, Math.max(workers, childWorkers));
  const own: number[] = [];
  const childEnds: number[] = [];
  try {
    for (let index = 0; index < count; index++) {
      const [here, there] = shim.socketPair();
      own.push(here);
      childEnds.push(there);
    }
  } catch (error) {
    for (const fd of [...own, ...childEnds]) shim.closeDescriptor(fd);
    throw error;
  }
  const share = Math.floor(MOST_UNDER_WAY / ONE_CONNECTION / count) * ONE_CONNECTION;
  return { byWorker: dealOut(own, workers), childEnds, descriptors: Math.max(ONE_CONNECTION, share) };
}

/** Channels for each worker, one after the other. */
export function dealOut(channels: readonly number[], workers: number): number[][] {
  const dealt: number[][] = Array.from({ length: workers }, () => []);
  for (const [index, fd] of channels.entries()) dealt[index % workers]!.push(fd);
  return dealt;
}
