// A proxy that is restarted under load: how it is started, replaced by a new one, and ended.

import { readdirSync, readFileSync } from 'node:fs';
import { waitFor } from '../../../test/e2e/harness/index.js';
import type { Ports } from '../../../test/e2e/restart/clients.js';

export interface RestartablePeer {
  name: string;
  /** Where each restart leads, in workers. */
  start(place: Place, workers: number): Promise<RunningPeer>;
}

/** Where a peer runs. */
export interface Place {
  /** Its own, and empty at the start. */
  directory: string;
  /** Where it listens. */
  ports: Ports;
  /** Where it sends requests and connections. */
  origin: Ports;
}

export interface RunningPeer {
  /** Starts a new process beside the running one; gives the milliseconds until it had taken over. */
  replace(workers: number): Promise<number>;
  /** Waits until the process that was replaced has gone. */
  oldHasGone(): Promise<void>;
  stop(): Promise<void>;
}

/** How long old processes serve their connections before they are ended. */
export const OLD_LIVES_SECONDS = 2;

export const DEADLINE_MS = 60_000;

/** Waits for as many children of a process as were asked for, none of them among `others`. */
export async function newChildren(
  pid: number,
  count: number,
  others: ReadonlySet<number> = new Set(),
): Promise<number[]> {
  return waitFor(
    () => {
      const found = childrenOf(pid).filter((child) => !others.has(child));
      return found.length >= count && found;
    },
    { what: `${count} new children of ${pid}`, deadlineMs: DEADLINE_MS },
  );
}

export async function processHasGone(pid: number): Promise<void> {
  await waitFor(() => !isRunning(pid), { what: `the end of process ${pid}`, deadlineMs: DEADLINE_MS });
}

export function childrenOf(pid: number): number[] {
  return readdirSync(`/proc/${pid}/task`).flatMap((thread) => {
    const text = readFileSync(`/proc/${pid}/task/${thread}/children`, 'latin1').trim();
    return text === '' ? [] : text.split(' ').map(Number);
  });
}

/** Whether there is such a process, and not only its exit status. */
function isRunning(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return stat[stat.lastIndexOf(')') + 2] !== 'Z';
  } catch {
    return false;
  }
}
