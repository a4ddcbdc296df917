// Where process log lines go: standard error or the file of --log-path, each line written before log() returns.

import { closeSync, constants, fstatSync, openSync } from 'node:fs';
import sonicBoom from 'sonic-boom';
import { BatonError, messageOf } from '../common/errors.js';

/** What is kept while the descriptor takes nothing (full disk, blocked pipe): later lines are dropped. */
const MAX_KEPT_BYTES = 1024 * 1024;
const BUSY_RETRY_MS = 50;
const FAILED_RETRY_MS = 1000;
/** How long the end of the process waits for a reader that is behind. */
const DRAIN_MS = 1000;

export interface LogSink {
  /** Writes whole lines. Never throws. */
  write(lines: string): void;
  /** Opens the file anew after a rotation; the old one goes on being used when that fails, which throws. */
  reopen(): void;
  /** Tries to write what is left over for a little while: for the end of the thread. */
  drain(): void;
  /** Lines that were dropped because nothing could be written for too long. */
  readonly dropped: number;
}

/**
 * Opens the sink. Every thread opens its own: lines are whole writes, and files are opened for appending, so that lines of
 * several threads never mix. Throws `Failed to open log-file '<path>': …` when the file cannot be opened.
 */
export function openLogSink(path: string | undefined): LogSink {
  const stderr = path === undefined || path === '/dev/stderr';
  let target = stderr ? 2 : openTarget(path);
  let dropped = 0;
  /** A write failed, and what it left over is tried again later. */
  let retrying = false;
  /** It failed because the reader is behind. */
  let isBusy = false;
  const begin = (dest: string | number) => {
    const boom = new sonicBoom.SonicBoom({
      dest,
      sync: true,
      append: true,
      // With 0, flush() would do nothing, and what a failed write left over could not be retried.
      minLength: 1,
      maxLength: MAX_KEPT_BYTES,
      // A descriptor that is not ready is tried again by the timer below: the default blocks the thread until it is.
      retryEAGAIN: () => false,
    });
    boom.on('drop', () => dropped++);
    boom.on('error', failed);
    return boom;
  };
  const failed = (error: NodeJS.ErrnoException) => {
    isBusy = error.code === 'EAGAIN';
    if (retrying) return;
    retrying = true;
    setTimeout(
      () => {
        retrying = false;
        isBusy = false;
        boom.flush();
      },
      isBusy ? BUSY_RETRY_MS : FAILED_RETRY_MS,
    ).unref();
  };
  let boom = begin(target);
  return {
    write(lines) {
      boom.write(lines);
    },
    reopen() {
      if (stderr) return;
      const next = openTarget(path);
      if (next === STDOUT) return;
      if (typeof next === 'string' && typeof target === 'string') {
        try {
          boom.reopen();
        } catch (error) {
          // Another thread has had the last descriptor since the trial. What waits for this to work would close the old one twice.
          boom.removeAllListeners('ready');
          throw openError(path, error);
        }
      } else if (typeof next === 'number' && typeof target === 'number' && isSamePipe(next, target)) {
        closeSync(next);
      } else {
        boom.destroy();
        target = next;
        boom = begin(next);
      }
    },
    drain() {
      const deadline = performance.now() + DRAIN_MS;
      while (isBusy && performance.now() < deadline) {
        // When it fails, the listener above sets this again.
        isBusy = false;
        boom.flush();
        if (isBusy) Atomics.wait(sleeper, 0, 0, 5);
      }
    },
    get dropped() {
      return dropped;
    },
  };
}

const sleeper = new Int32Array(new SharedArrayBuffer(4));

const STDOUT = 1;

/**
 * The path or, for a pipe, a descriptor that does not block: opening a pipe waits for a reader otherwise, and writing for one
 * that is behind. STDOUT for a standard output that has no name which could be opened: a socket, as systemd gives one.
 */
function openTarget(path: string): string | number {
  try {
    const fd = openSync(path, constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK);
    if (fstatSync(fd).isFIFO()) return fd;
    closeSync(fd);
    return path;
  } catch (error) {
    if (path === '/dev/stdout' && (error as NodeJS.ErrnoException).code === 'ENXIO') return STDOUT;
    throw openError(path, error);
  }
}

function openError(path: string, error: unknown): BatonError {
  return new BatonError('OPTION_INVALID', `Failed to open log-file '${path}': ${messageOf(error)}`, {
    where: '--log-path',
    cause: error,
  });
}

function isSamePipe(one: number, other: number): boolean {
  const [a, b] = [fstatSync(one), fstatSync(other)];
  return a.dev === b.dev && a.ino === b.ino;
}
