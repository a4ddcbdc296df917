// The channels between the workers of two processes over which established connections are handed over.

import type { NativeShim } from '../../io/shim.js';

export interface HandOverChannels {
  /** The ends for this process's workers, by worker. */
  readonly byWorker: readonly (readonly number[])[];
  readonly childEnds: number[];
  /** Limit for descriptors in flight on each channel. */
  readonly descriptors: number;
}

/** Limit for descriptors in flight on all channels together: the kernel counts them against the user's limit of open files. */
const MAX_IN_FLIGHT = 64;
/** A proxied connection has two descriptors. */
const PER_CONNECTION = 2;
/** Limit of one message. */
const MAX_CHANNELS = 64;

/**
 * Opens a channel for each worker of the process with more workers. Throws, with nothing left open, when descriptors are short.
 */
export function openHandOverChannels(shim: NativeShim, workers: number, childWorkers: number): HandOverChannels {
  const count = Math.min(MAX_CHANNELS, Math.max(workers, childWorkers));
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
  const share = Math.floor(MAX_IN_FLIGHT / PER_CONNECTION / count) * PER_CONNECTION;
  return { byWorker: distribute(own, workers), childEnds, descriptors: Math.max(PER_CONNECTION, share) };
}

/** Distributes channels among the workers in turn. */
export function distribute(channels: readonly number[], workers: number): number[][] {
  const shares: number[][] = Array.from({ length: workers }, () => []);
  for (const [index, fd] of channels.entries()) shares[index % workers]!.push(fd);
  return shares;
}
