// Where process log lines go: a standard stream or the file of --log-path, each line written before its logger returns.

import { fstatSync, writeSync } from 'node:fs';
import { BatonError, messageOf } from '../common/errors/errors.js';
import { blockThread } from '../common/time/block-thread.js';
import { loadShim, type NativeFile } from '../io/shim.js';

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
  #target: Target;
  /** What could not be written yet. */
  #kept: Uint8Array[] = [];
  #keptBytes = 0;
  /** Set while what is kept waits for being tried again. */
  #retry: NodeJS.Timeout | undefined;
  /** The last write failed because the reader is behind. */
  #isBusy = false;

  /**
   * `stream`: the descriptor that is written to without a path. It is used as it is, not opened once more: children inherit it,
   * and with it the place in the file. Throws `Failed to open log-file '<path>': …` when the file cannot be opened.
   */
  constructor(path: string | undefined, stream: number = STDERR) {
    this.#path = path === '/dev/stderr' ? undefined : path;
    this.#target = this.#path === undefined ? standardTarget(stream) : openTarget(this.#path);
  }

  /** Writes whole lines. Never throws. */
  write(lines: string): void {
    if (this.#keptBytes > 0) return this.#keep(Buffer.from(lines));
    const written = this.#tryToWrite(lines);
    const bytes = Buffer.byteLength(lines);
    if (written < bytes) this.#keep(Buffer.from(lines).subarray(written));
  }

  /** Opens the file anew after a rotation; the old one goes on being used when that fails, which throws. */
  reopen(): void {
    if (this.#path === undefined) return;
    const next = openTarget(this.#path);
    if (next === STDOUT) return;
    const former = this.#target;
    const stays = isSamePipe(next.fd, former.fd);
    if (!stays) this.#target = next;
    // Nothing can be done about what the end of a file reports.
    (stays ? next : former).close().catch(() => {});
  }

  /** Tries to write what is left over for a little while: for the end of the thread. */
  drain(): void {
    const deadline = performance.now() + DRAIN_MS;
    while (this.#isBusy && performance.now() < deadline) {
      this.#flush();
      if (this.#isBusy) blockThread(5);
    }
  }

  #keep(bytes: Uint8Array): void {
    if (this.#keptBytes + bytes.length > MAX_KEPT_BYTES) return;
    this.#kept.push(bytes);
    this.#keptBytes += bytes.length;
    this.#retry ??= setTimeout(() => this.#flush(), this.#isBusy ? BUSY_RETRY_MS : FAILED_RETRY_MS).unref();
  }

  #flush(): void {
    clearTimeout(this.#retry);
    this.#retry = undefined;
    const bytes = Buffer.concat(this.#kept);
    this.#kept = [];
    this.#keptBytes = 0;
    const written = this.#tryToWrite(bytes);
    if (written < bytes.length) this.#keep(bytes.subarray(written));
  }

  /** Writes as much as can be written now; returns the bytes. */
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
      // A pipe takes a part, a disk that gets full too: what stands against the rest is found by trying.
      while (written < content.length) written += writeSync(fd, content, written);
    } catch (error) {
      this.#isBusy = (error as NodeJS.ErrnoException).code === 'EAGAIN';
    }
    return written;
  }
}

/** A file, or a stream of the process, which stays open. */
type Target = Pick<NativeFile, 'fd' | 'close'>;

const STDERR = 2;
const STDOUT = standardTarget(1);

function standardTarget(fd: number): Target {
  return { fd, close: async () => {} };
}

/**
 * The file, which does not block when it is a pipe: its opening waits for no reader, nor its writing for one that is behind. STDOUT for
 * a standard output that has no name which could be opened: a socket, as systemd gives one.
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

/** Other descriptions of a pipe take nothing that this one does not take. */
function isSamePipe(one: number, other: number): boolean {
  const [a, b] = [fstatSync(one), fstatSync(other)];
  return a.isFIFO() && a.dev === b.dev && a.ino === b.ino;
}
