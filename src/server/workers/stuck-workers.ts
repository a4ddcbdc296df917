// Workers whose event loop is blocked for so long that they are replaced (kill_timeout).

import { fileURLToPath } from 'node:url';
import { messageOf } from '../../common/errors/errors.js';
import { sourceName, sourcePlace } from '../../common/package/source-places.js';
import type { ThreadFrame } from '../../common/process/thread-place.js';
import { getLogger } from '../../log/logger.js';
import type { StuckWorkers } from '../stats/watchdog.js';

const logger = getLogger('main');

/** The thread of a worker, as it is replaced. */
export interface StuckThread {
  readonly index: number;
  /** Undefined: it has ended. */
  readonly threadId: number | undefined;
  terminate(): void;
}

/** Returns how the watchdog replaces workers that are silent for `killMs`, or take too much memory meanwhile. */
export function stuckWorkers(killMs: number, threadOf: (worker: number) => StuckThread): StuckWorkers {
  return {
    killMs,
    replace: (worker) => void replaceStuck(threadOf(worker), `is blocked since ${killMs / 1000} s`),
    replaceGrowing: (worker) => void replaceStuck(threadOf(worker), 'is blocked and takes more and more memory'),
  };
}

/** Logs where the worker is, and terminates its thread, which another one replaces. */
async function replaceStuck(thread: StuckThread, why: string): Promise<void> {
  const { index, threadId } = thread;
  const where = threadId === undefined ? '' : await placeOf(threadId);
  logger.critical(`worker ${index} ${why}${where}; it is terminated`);
  if (thread.threadId === threadId) thread.terminate();
}

async function placeOf(threadId: number): Promise<string> {
  try {
    const { framesOf } = await import('../../common/process/thread-place.js');
    const frames = await framesOf(threadId);
    const shown = frames.filter(({ url }) => url !== '' && !url.startsWith('node:')).slice(0, MAX_FRAMES);
    return shown.length === 0 ? '' : `: ${shown.map(frameText).join(', called at ')}`;
  } catch (error) {
    return ` (where is unknown: ${messageOf(error)})`;
  }
}

const MAX_FRAMES = 3;

/** Returns a frame of a user's module with its own line, and one of Baton with that of its source. */
function frameText({ column, line, name, url }: ThreadFrame): string {
  const place = sourcePlace(url, line);
  const path = place.file === '' && url.startsWith('file:') ? fileURLToPath(url) : place.file || url;
  const exact = place.line === line ? `${line}:${column}` : `${place.line}`;
  return `${name === '' ? '' : `${sourceName(name)} `}${path}:${exact}`;
}
