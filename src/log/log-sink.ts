// The sink of log lines: a standard stream or the file of --log-path. Each line is written before the log call returns.

import { fstatSync, writeSync } from 'node:fs';
import { BatonError, messageOf } from '../common/errors/errors.js';
import { blockThread } from '../common/time/block-thread.js';
import { loadShim, type NativeFile } from '../io/shim.js';

/** Size of the backlog while the descriptor accepts no data (full disk, blocked pipe): later lines are dropped. */
const MAX_BACKLOG_BYTES = 1024 * 1024;
const BUSY_RETRY_MS = 50;
const FAILED_RETRY_MS = 1000;
/** How long the exiting process waits for a slow reader. */
const DRAIN_MS = 1000;

/**
 * Each thread has its own sink. Lines are whole writes and files are opened for appending, so that lines of several threads
 * never mix.
 */
export class LogSink {
  /** Undefined: a standard stream. */
  readonly #path: string | undefined;
  #target: Target;
  /** Bytes that could not be written yet. */
  #backlog: Uint8Array[] = [];
  #backlogBytes = 0;
  /** Set while a retry of the backlog is scheduled. */
  #retry: NodeJS.Timeout | undefined;
  /** The last write failed because the reader is slow. */
  #isBusy = false;

  /**
   * `stream`: the descriptor to write to if there is no path. It is used directly and not reopened: child processes inherit it,
   * and with it the position in the file. Throws `Failed to open log-file '<path>': …` if the file cannot be opened.
   */
  constructor(path: string | undefined, stream: number = STDERR) {
    this.#path = path === '/dev/stderr' ? undefined : path;
    this.#target = this.#path === undefined ? standardTarget(stream) : openTarget(this.#path);
  }

  /** Writes whole lines. Never throws. */
  write(lines: string): void {
    if (this.#backlogBytes > 0) return this.#enqueue(Buffer.from(lines));
    const written = this.#tryToWrite(lines);
    const bytes = Buffer.byteLength(lines);
    if (written < bytes) this.#enqueue(Buffer.from(lines).subarray(written));
  }

  /** Reopens the file after a rotation. On failure it throws, and the old file stays in use. */
  reopen(): void {
    if (this.#path === undefined) return;
    const next = openTarget(this.#path);
    if (next === STDOUT) return;
    const previous = this.#target;
    const stays = isSamePipe(next.fd, previous.fd);
    if (!stays) this.#target = next;
    // An error on closing a file cannot be handled.
    (stays ? next : previous).close().catch(() => {});
  }

  /** Retries the backlog for a short time, before the thread ends. */
  drain(): void {
    const deadline = performance.now() + DRAIN_MS;
    while (this.#isBusy && performance.now() < deadline) {
      this.#flush();
      if (this.#isBusy) blockThread(5);
    }
  }

  #enqueue(bytes: Uint8Array): void {
    if (this.#backlogBytes + bytes.length > MAX_BACKLOG_BYTES) return;
    this.#backlog.push(bytes);
    this.#backlogBytes += bytes.length;
    this.#retry ??= setTimeout(() => this.#flush(), this.#isBusy ? BUSY_RETRY_MS : FAILED_RETRY_MS).unref();
  }

  #flush(): void {
    clearTimeout(this.#retry);
    this.#retry = undefined;
    const bytes = Buffer.concat(this.#backlog);
    this.#backlog = [];
    this.#backlogBytes = 0;
    const written = this.#tryToWrite(bytes);
    if (written < bytes.length) this.#enqueue(bytes.subarray(written));
  }

  /** Writes as much as possible now; returns the number of bytes. */
  #tryToWrite(content: string | Uint8Array): number {
    const { fd } = this.#target;
    let written = 0;
    this.#isBusy = false;
    try {
      if (typeof content === 'string') {
        written = writeSync(fd, content);
        if (written === Buffer.byteLength(content)) return written;
        content = Buffer.from(content);
      }
      // A pipe, or a disk that becomes full, accepts a part. The next attempt reports the error for the rest.
      while (written < content.length) written += writeSync(fd, content, written);
    } catch (error) {
      this.#isBusy = (error as NodeJS.ErrnoException).code === 'EAGAIN';
    }
    return written;
  }
}

/** A file, or a standard stream, which stays open. */
type Target = Pick<NativeFile, 'fd' | 'close'>;

const STDERR = 2;
const STDOUT = standardTarget(1);

function standardTarget(fd: number): Target {
  return { fd, close: async () => {} };
}

/**
 * Opens the file without blocking: neither opening nor writing a pipe waits for a reader. Returns STDOUT if standard output has
 * no name that can be opened, as with a socket from systemd.
 */
function openTarget(path: string): Target {
  try {
    return loadShim().openOutput(path, true);
  } catch (error) {
    if (path === '/dev/stdout' && (error as NodeJS.ErrnoException).code === 'ENXIO') return STDOUT;
    throw new BatonError('OPTION_INVALID', `Failed to open log-file '${path}': ${messageOf(error)}`, {
      where: '--log-path',
      cause: error,
    });
  }
}

/** Returns whether both are the same pipe. Reopening a blocked pipe does not help. */
function isSamePipe(one: number, other: number): boolean {
  const [a, b] = [fstatSync(one), fstatSync(other)];
  return a.isFIFO() && a.dev === b.dev && a.ino === b.ino;
}
