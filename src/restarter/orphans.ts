// Reaps children that this process has not started: as process 1 it inherits every orphan.

import { readdirSync, readFileSync } from 'node:fs';
import { messageOf } from '../common/errors/errors.js';
import type { NativeShim } from '../io/shim.js';
import { logger } from './log.js';

/**
 * Reaps ended children, now and at each SIGCHLD. `isOwn` returns whether a child belongs to libuv, which waits for it itself and
 * would miss its status. Needed not only as process 1: a shell that execs the wrapper leaves its jobs to it.
 */
export function reapOrphans(shim: NativeShim, isOwn: (pid: number) => boolean): void {
  let isLogged = false;
  const reap = (): void => {
    try {
      for (const pid of childrenOfThisProcess()) if (!isOwn(pid)) shim.reap(pid);
    } catch (error) {
      // There is no /proc or no free descriptor. Zombies do not affect the serving processes.
      if (!isLogged) logger.warning(`the status of ended orphans is not taken: ${messageOf(error)}`);
      isLogged = true;
    }
  };
  process.on('SIGCHLD', reap);
  reap();
}

/** Each thread has a separate list; the kernel assigns orphans to any of them. */
function childrenOfThisProcess(): number[] {
  const pids: number[] = [];
  for (const thread of readdirSync('/proc/self/task')) {
    try {
      const text = readFileSync(`/proc/self/task/${thread}/children`, 'latin1');
      for (const pid of text.split(' ')) if (pid !== '') pids.push(Number(pid));
    } catch (error) {
      // The thread has just ended.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT' && (error as NodeJS.ErrnoException).code !== 'ESRCH')
        throw error;
    }
  }
  return pids;
}
