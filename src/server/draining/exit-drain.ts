// The drain before exit (--drain-on-sigterm): gives clients time to move to another server.

import { setTimeout as setTimeoutPromise } from 'node:timers/promises';
import { getLogger } from '../../log/logger.js';
import { isQuiet } from '../workers/open-connections.js';
import type { ListenerDrains } from './listener-drains.js';

const logger = getLogger('main');

/** Connections are accepted for at least this long: load balancers detect the exit by failing health checks. */
const MIN_ACCEPT_MS = 5000;
/** … or for this part of the drain time, if that is shorter. */
const MIN_ACCEPT_PART = 1 / 4;
/** Interval at which open connections are counted. */
const POLL_MS = 100;
/** … and those of a parent process, which flushes its stats for each count. */
const PARENT_POLL_MS = 500;
/** Time for requests that arrived at the last moment, and for the last bytes of closed connections. */
const LAST_MS = 1000;

export interface ExitingServer {
  /** False when another process accepts in its place: then no client depends on this one's health checks. */
  readonly isAccepting: boolean;
  /** Resolves with whether a parent process, which ends with this one, has no connections left or is gone. */
  isParentIdle(): Promise<boolean>;
}

/**
 * Resolves when the process may end: the last connection has ended, including a parent's; the drain's time is over; or `signal`
 * is aborted. Never rejects.
 */
export async function drainBeforeExit(
  drains: ListenerDrains,
  timeMs: number,
  signal: AbortSignal,
  { isAccepting, isParentIdle }: ExitingServer,
): Promise<void> {
  const drain = drains.start({ reach: 'all', reason: 'sigterm', stopsAccepting: 'at-end' });
  const over = new AbortController();
  const ended = AbortSignal.any([over.signal, signal]);
  void drain.done.then(() => over.abort());
  if (isAccepting) {
    const acceptMs = Math.min(MIN_ACCEPT_MS, timeMs * MIN_ACCEPT_PART);
    logger.info(`new connections are accepted for at least ${acceptMs / 1000} s`);
    await pause(acceptMs, ended);
  }
  let hasStopped = false;
  while (!ended.aborted) {
    const open = await drains.openConnections();
    if (!isQuiet(open) || (hasStopped && open.accepting > 0)) await pause(POLL_MS, ended);
    else if (!hasStopped) {
      hasStopped = true;
      // The backlog is accepted and counts.
      await Promise.race([drains.stopListeners('all', { acceptRest: true }), aborted(ended)]);
    } else if (await isParentIdle()) {
      logger.info('the last connection has ended');
      return;
    } else await pause(PARENT_POLL_MS, ended);
  }
  const lastMs = performance.now() + LAST_MS;
  while (!signal.aborted && performance.now() < lastMs && !isQuiet(await drains.openConnections())) {
    await pause(POLL_MS, signal);
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return setTimeoutPromise(ms, undefined, { signal }).catch(() => undefined);
}
