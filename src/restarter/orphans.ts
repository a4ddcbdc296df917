// Children that this process has not started: as process 1 it inherits every orphan, and nobody else takes their status.

import { readdirSync, readFileSync } from 'node:fs';
import { messageOf } from '../common/errors/errors.js';
import type { NativeShim } from '../io/shim.js';
import { logger } from './log.js';

/**
 * Takes the status of ended children, now and whenever a child ends. `isOwn` tells which belong to libuv: those it waits
 * for itself, and would miss their status. Not only as process 1: a shell that executes the wrapper leaves its jobs to it.
 */
export function reapOrphans(shim: NativeShim, isOwn: (pid: number) => boolean): void {
  let isTold = false;
  const reap = (): void => {
    try {
      for (const pid of childrenOfThisProcess()) if (!isOwn(pid)) shim.reap(pid);
    } catch (error) {
      // Without /proc or a free descriptor. Zombies do no harm to those that serve.
      if (!isTold) logger.warning(`the status of ended orphans is not taken: ${messageOf(error)}`);
      isTold = true;
    }
  };
  process.on('SIGCHLD', reap);
  reap();
}

/** Each thread has a list of its own; the kernel gives orphans to any of them. */
function childrenOfThisProcess(): number[] {
  const pids: number[] = [];
  for (const thread of readdirSync('/proc/self/task')) {
    try {
      const text = readFileSync(`/proc/self/task/${thread}/children`, 'latin1');
      for (const pid of text.split(' ')) if (pid !== '') pids.push(Number(pid));
    } catch (error) {
      // A thread that has just ended.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT' && (error as NodeJS.ErrnoException).code !== 'ESRCH')
        throw error;
    }
  }
  return pids;
}
