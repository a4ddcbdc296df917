// Where process log lines go: a standard stream or the file of --log-path, each line written before its logger returns.

import { closeSync, constants, fstatSync, openSync } from 'node:fs';
import sonicBoom, { type SonicBoom } from 'sonic-boom';
import { BatonError, messageOf } from '../common/errors/errors.js';
import { blockThread } from '../common/time/block-thread.js';

/** What is kept while the descriptor takes nothing (full disk, blocked pipe): later lines are dropped. */
const MAX_KEPT_BYTES = 1024 * 1024;
const BUSY_RETRY_MS = 50;
const FAILED_RETRY_MS = 1000;
/** How long the end of the process waits for a reader that is behind. */
const DRAIN_MS = 1000;

/**
 * Every thread has one of its own: lines are whole writes, and files are opened for appending, so that lines of several threads
 * never mix.
 */
export class LogSink {
  /** Undefined: a standard stream. */
  readonly #path: string | undefined;
  #target: string | number;
  #boom: SonicBoom;
  /** A write failed, and what it left over is tried again later. */
  #isRetrying = false;
  /** It failed because the reader is behind. */
  #isBusy = false;

  /**
   * `stream`: the descriptor that is written to without a path. It is used as it is, not opened once more: children inherit it,
   * and with it the place in the file. Throws `Failed to open log-file '<path>': …` when the file cannot be opened.
   */
  constructor(path: string | undefined, stream: number = STDERR) {
    this.#path = path === '/dev/stderr' ? undefined : path;
    this.#target = this.#path === undefined ? stream : openTarget(this.#path);
    this.#boom = this.#begin();
  }

  /** Writes whole lines. Never throws. */
  write(lines: string): void {
    this.#boom.write(lines);
  }

  /** Opens the file anew after a rotation; the old one goes on being used when that fails, which throws. */
  reopen(): void {
    if (this.#path === undefined) return;
    const next = openTarget(this.#path);
    if (next === STDOUT) return;
    if (typeof next === 'string' && typeof this.#target === 'string') {
      try {
        this.#boom.reopen();
      } catch (error) {
        // Another thread has had the last descriptor since the trial. What waits for this to work would close the old one twice.
        this.#boom.removeAllListeners('ready');
        throw openError(this.#path, error);
      }
    } else if (typeof next === 'number' && typeof this.#target === 'number' && isSamePipe(next, this.#target)) {
      closeSync(next);
    } else {
      this.#boom.destroy();
      this.#target = next;
      this.#boom = this.#begin();
    }
  }

  /** Tries to write what is left over for a little while: for the end of the thread. */
  drain(): void {
    const deadline = performance.now() + DRAIN_MS;
    while (this.#isBusy && performance.now() < deadline) {
      // When it fails, #failed() sets this again.
      this.#isBusy = false;
      this.#boom.flush();
      if (this.#isBusy) blockThread(5);
    }
  }

  #begin(): SonicBoom {
    const boom = new sonicBoom.SonicBoom({
      dest: this.#target,
      sync: true,
      append: true,
      // With 0, flush() would do nothing, and what a failed write left over could not be retried.
      minLength: 1,
      maxLength: MAX_KEPT_BYTES,
      // A descriptor that is not ready is tried again by a timer: the default blocks the thread until it is.
      retryEAGAIN: () => false,
    });
    boom.on('error', (error: NodeJS.ErrnoException) => this.#failed(error));
    return boom;
  }

  #failed({ code }: NodeJS.ErrnoException): void {
    this.#isBusy = code === 'EAGAIN';
    if (this.#isRetrying) return;
    this.#isRetrying = true;
    const retry = () => {
      this.#isRetrying = false;
      this.#isBusy = false;
      this.#boom.flush();
    };
    setTimeout(retry, this.#isBusy ? BUSY_RETRY_MS : FAILED_RETRY_MS).unref();
  }
}

const STDOUT = 1;
const STDERR = 2;

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
