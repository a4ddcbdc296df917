// The interface of a proxy that is restarted under load: starting, replacing and ending it.

import { readdirSync, readFileSync } from 'node:fs';
import { waitFor } from '../../../test/e2e/harness/index.js';
import type { Ports } from '../../../test/e2e/restart/clients.js';

export interface RestartablePeer {
  name: string;
  /** The number of workers after each restart. */
  start(place: Place, workers: number): Promise<RunningPeer>;
}

/** The environment of a peer. */
export interface Place {
  /** Private to the peer, and empty at the start. */
  directory: string;
  /** Where it listens. */
  ports: Ports;
  /** The ports of its upstream. */
  origin: Ports;
}

export interface RunningPeer {
  /** Starts a new process beside the running one. Returns the milliseconds until it has taken over. */
  replace(workers: number): Promise<number>;
  /** Waits until the replaced process has exited. */
  oldHasGone(): Promise<void>;
  stop(): Promise<void>;
}

/** How long old processes serve their connections before they are ended. */
export const OLD_LIVES_SECONDS = 2;

export const DEADLINE_MS = 60_000;

/** Waits until a process has the requested number of children, none of them among `others`. */
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

/** Returns whether the process is running, and not a zombie. */
function isRunning(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return stat[stat.lastIndexOf(')') + 2] !== 'Z';
  } catch {
    return false;
  }
}
