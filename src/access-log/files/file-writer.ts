// Appends chunks of whole lines to one descriptor, one write at a time, and keeps what could not be written yet.
//
// sonic-boom was tried and lost here: its flushSync() never returns on a full disk or a closed pipe, it tries a busy pipe
// again only after 100 ms, and a reopen() after one that failed closes the old descriptor twice (by then maybe a socket).

import { closeSync, constants, fstatSync, openSync, readSync, write, writeSync } from 'node:fs';
import { BatonError, messageOf } from '../../common/errors/errors.js';
import { standardStream } from '../../common/files/standard-streams.js';
import { blockThread } from '../../common/time/block-thread.js';
import { loadShim, type NativeFile } from '../../io/shim.js';

/** Waits before the next try: a busy pipe empties soon, a full disk does not. */
const BUSY_RETRY_MS = 5;
const FAILED_RETRY_MS = 1000;
/** How long flushSync() waits for what another thread writes. */
const UNDER_WAY_MS = 20;
/** Writes to a pipe up to this length are never mixed with those of other threads (PIPE_BUF). */
const PIPE_WRITE_BYTES = 4096;
const PIPE_WRITES_A_TURN = 16;
const NEWLINE = 10;

/** What happened to the files of a thread, for the filesystem.* stats. */
export interface FileCounters {
  /** Lines that were put into a buffer. */
  writeBuffered: number;
  /** Writes that were done, and that failed. */
  writeCompleted: number;
  writeFailed: number;
  /** Buffers handed over because time had passed. */
  flushedByTimer: number;
  /** Files that could not be opened anew when that was asked for; what is tried again by itself is not counted. */
  reopenFailed: number;
  /** Lines given up because too many were waiting, or nobody reads them any more. */
  dropped: number;
}

export interface FileWriterOptions {
  path: string;
  counters: FileCounters;
  /** Bytes that may wait; a chunk that would go beyond is dropped. */
  maxPendingBytes: number;
  /** Bytes that write() took are the caller's again. */
  onWritten(bytes: Uint8Array): void;
  /** Called when something fails; for writing once until it works again. */
  onProblem(message: string): void;
  /** Called when what has failed works again, and nothing is lost. */
  onMended(message: string): void;
}

interface Chunk {
  bytes: Uint8Array;
  /** Where its first line begins: 1 behind a line break that was put there. */
  first: number;
  start: number;
  end: number;
  lines: number;
}

export class FileWriter {
  readonly #options: FileWriterOptions;
  #target: Target;
  /** The first chunk is the one being written. */
  readonly #queue: Chunk[] = [];
  #pendingBytes = 0;
  /** Length of the write that another thread does now; 0 when there is none. */
  #writing = 0;
  #retry: NodeJS.Timeout | undefined;
  /** The last write failed. */
  #isFailing = false;
  /** That is told once, until nothing is left of what could not be written. */
  #isFailureTold = false;
  /** Lines given up since a chunk was taken last: that they are is told once, and how many when it is over. */
  #dropped = 0;
  #isClosed = false;
  /** Takes the place of the target at the next end of a line. */
  #nextFile: NativeFile | undefined;
  /** Set while it could not be opened anew. */
  #reopening: NodeJS.Timeout | undefined;
  readonly #waiting: (() => void)[] = [];
  readonly #onWritten = (error: NodeJS.ErrnoException | null, count: number): void => this.#written(error, count);

  /** Opens the file. Throws a BatonError with the path and the reason when that is not possible. */
  constructor(options: FileWriterOptions) {
    this.#options = options;
    this.#target = openTarget(options.path);
  }

  /** Bytes that wait for being written. */
  get pendingBytes(): number {
    return this.#pendingBytes;
  }

  /**
   * Takes bytes[0, length), which the caller no longer touches: so many whole lines. With `isLast` they are left to flushSync():
   * a thread that ends takes along what waits for another one to write it.
   */
  write(bytes: Uint8Array, length: number, lines: number, isLast: boolean): void {
    if (this.#isClosed || this.#pendingBytes + length > this.#options.maxPendingBytes) {
      this.#options.counters.dropped += lines;
      if (this.#dropped === 0) this.#options.onProblem(`'${this.#options.path}' takes no more lines: they are dropped`);
      this.#dropped += lines;
      return;
    }
    if (this.#dropped > 0)
      this.#options.onProblem(`'${this.#options.path}' takes lines again: ${this.#dropped} were dropped`);
    this.#dropped = 0;
    this.#queue.push({ bytes, first: 0, start: 0, end: length, lines });
    this.#pendingBytes += length;
    if (!isLast) this.#next();
  }

  /**
   * Opens the file anew after a rotation. The old one goes on being used until that is done, which resolves the promise,
   * or when it fails, which resolves it too: then it is tried again by itself until it works.
   */
  async reopen(): Promise<void> {
    if (this.#target.isStandard || this.#isClosed) return;
    const error = await this.#tryToReopen();
    if (error === null) return;
    this.#options.counters.reopenFailed++;
    this.#options.onProblem(`cannot reopen '${this.#options.path}': ${error.message}; it is tried again`);
  }

  /** Resolves when nothing waits any more, or when writing fails: what has failed before is tried once more. */
  drained(): Promise<void> {
    if (this.#isClosed || (this.#writing === 0 && this.#queue.length === 0)) return Promise.resolve();
    const drained = new Promise<void>((resolve) => this.#waiting.push(resolve));
    if (this.#isFailing && this.#writing === 0) {
      clearTimeout(this.#retry);
      this.#retry = undefined;
      this.#next();
    }
    if (this.#waiting.length > 0) this.#retry?.ref();
    return drained;
  }

  /**
   * Writes all that waits before it returns, but gives up at the first error and after `timeoutMs` of a busy pipe. A write
   * that is under way in another thread is given a moment, and is lost if that thread has not begun it by the end.
   */
  flushSync(timeoutMs: number): void {
    const deadline = performance.now() + timeoutMs;
    const first = this.#writing > 0 ? 1 : 0;
    if (first > 0) {
      blockThread(UNDER_WAY_MS);
      this.#splitFirst();
    }
    while (this.#queue.length > first) {
      const code = this.#writeNow(first);
      if (code === '') continue;
      if (code !== 'EAGAIN' || performance.now() > deadline) return;
      blockThread(BUSY_RETRY_MS);
    }
  }

  /** Closes the file. What waits is lost: flush before. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearTimeout(this.#retry);
    clearTimeout(this.#reopening);
    this.#dropAll();
    if (this.#writing === 0) this.#closeFiles();
  }

  /** Resolves with what stands against it. */
  async #tryToReopen(): Promise<Error | null> {
    let file: NativeFile;
    try {
      file = await loadShim().openOutputLater(this.#options.path, true);
    } catch (error) {
      this.#reopenLater();
      return error as Error;
    }
    this.#reopened(file);
    return null;
  }

  #reopened(file: NativeFile): void {
    if (this.#isClosed) return this.#close(file);
    clearTimeout(this.#reopening);
    if (this.#nextFile !== undefined) this.#close(this.#nextFile);
    this.#nextFile = file;
    this.#next();
  }

  /** Descriptors become free, and directories come back. */
  #reopenLater(): void {
    if (this.#isClosed) return;
    clearTimeout(this.#reopening);
    this.#reopening = setTimeout(() => {
      void this.#tryToReopen().then((error) => {
        if (error === null) this.#options.onMended(`'${this.#options.path}' is open anew`);
      });
    }, FAILED_RETRY_MS).unref();
  }

  #next(): void {
    if (this.#writing > 0 || this.#isClosed) return;
    if (this.#nextFile !== undefined) this.#switchFile(this.#nextFile);
    if (this.#retry !== undefined) return;
    if (this.#target.isBusyPipe) this.#fillPipe();
    const chunk = this.#queue[0];
    if (chunk === undefined) {
      this.#signal();
    } else if (this.#retry === undefined) {
      if (this.#isFailing) this.#mend(chunk);
      this.#writing = this.#writeLength(chunk);
      write(this.#target.fd, chunk.bytes, chunk.start, this.#writing, null, this.#onWritten);
    }
  }

  /** A pipe that does not block is written to right here: that costs less than the way to another thread. */
  #fillPipe(): void {
    for (let writes = 0; this.#queue.length > 0; writes++) {
      const code = writes < PIPE_WRITES_A_TURN ? this.#writeNow(0) : 'EAGAIN';
      if (code !== '') {
        this.#failed(code);
        return;
      }
    }
  }

  #written(error: NodeJS.ErrnoException | null, count: number): void {
    this.#writing = 0;
    if (this.#isClosed) {
      this.#closeFiles();
      return;
    }
    if (error === null) {
      this.#succeeded(0, count);
    } else {
      this.#tell(error);
      this.#failed(error.code ?? '');
    }
    this.#next();
  }

  /** Writes from the chunk at this place of the queue; returns the code of the error, or nothing. */
  #writeNow(index: number): string {
    const chunk = this.#queue[index]!;
    if (this.#isFailing) this.#mend(chunk);
    try {
      this.#succeeded(index, writeSync(this.#target.fd, chunk.bytes, chunk.start, this.#writeLength(chunk), null));
      return '';
    } catch (error) {
      this.#tell(error as NodeJS.ErrnoException);
      return (error as NodeJS.ErrnoException).code ?? 'EIO';
    }
  }

  /** Takes written bytes off the chunk at this place of the queue. */
  #succeeded(index: number, count: number): void {
    this.#options.counters.writeCompleted++;
    this.#isFailing = false;
    const chunk = this.#queue[index]!;
    chunk.start += count;
    this.#pendingBytes -= count;
    if (chunk.start < chunk.end) return;
    this.#queue.splice(index, 1);
    this.#options.onWritten(chunk.bytes);
    if (!this.#isFailureTold || this.#queue.length > 0) return;
    this.#isFailureTold = false;
    this.#options.onMended(`'${this.#options.path}' is written to again`);
  }

  #tell(error: NodeJS.ErrnoException): void {
    if (error.code === 'EAGAIN') return;
    this.#options.counters.writeFailed++;
    if (!this.#isFailureTold) this.#options.onProblem(`cannot write to '${this.#options.path}': ${error.message}`);
    this.#isFailureTold = true;
    this.#isFailing = true;
  }

  /** A disk may get space again; a pipe without a reader never gets one. */
  #failed(code: string): void {
    // First: the timer keeps the thread for those who still wait.
    if (code !== 'EAGAIN') this.#signal();
    if (code === 'EPIPE') this.#dropAll();
    else this.#retryIn(code === 'EAGAIN' ? BUSY_RETRY_MS : FAILED_RETRY_MS);
  }

  #retryIn(delayMs: number): void {
    this.#retry = setTimeout(() => {
      this.#retry = undefined;
      this.#next();
    }, delayMs);
    // Waiting for a reader keeps no process alive, unless somebody waits for that.
    if (this.#waiting.length === 0) this.#retry.unref();
  }

  /**
   * After a failure. What a full disk has taken of a line stays there, and others may write behind it first: whoever comes next
   * ends it, and the line is written once more as a whole.
   */
  #mend(chunk: Chunk): void {
    // Without line breaks there are no lines.
    if (!this.#target.isFile || chunk.bytes[chunk.end - 1] !== NEWLINE) return;
    const before = chunk.end - chunk.start;
    let line = lineStart(chunk);
    const isTorn = endsInsideLine(this.#target.fd) ?? line !== chunk.start;
    if (isTorn && line === 0) {
      const bytes = new Uint8Array(chunk.end + 1);
      bytes[0] = NEWLINE;
      bytes.set(chunk.bytes.subarray(0, chunk.end), 1);
      Object.assign(chunk, { bytes, first: 1, end: bytes.length });
      line = 1;
    }
    // In front of every line but the first stands the end of another. Where only the last line break is left, it is written in any case.
    chunk.start = isTorn || line === chunk.end ? line - 1 : line;
    this.#pendingBytes += chunk.end - chunk.start - before;
  }

  /** Makes what is not under way of the first chunk a chunk of its own. */
  #splitFirst(): void {
    const chunk = this.#queue[0]!;
    const middle = chunk.start + this.#writing;
    if (middle === chunk.end) return;
    this.#queue.splice(1, 0, {
      bytes: chunk.bytes.slice(middle, chunk.end),
      first: 0,
      start: 0,
      end: chunk.end - middle,
      lines: 0,
    });
    chunk.end = middle;
  }

  #dropAll(): void {
    for (const chunk of this.#queue) this.#options.counters.dropped += chunk.lines;
    this.#queue.length = 0;
    this.#pendingBytes = 0;
  }

  /** A write to a pipe ends with a line and is short enough to stay in one piece, unless a line alone is longer. */
  #writeLength({ bytes, start, end }: Chunk): number {
    if (!this.#target.isPipe || end - start <= PIPE_WRITE_BYTES) return end - start;
    const last = bytes.lastIndexOf(NEWLINE, start + PIPE_WRITE_BYTES - 1);
    if (last >= start) return last + 1 - start;
    const first = bytes.indexOf(NEWLINE, start);
    return (first < 0 || first >= end ? end : first + 1) - start;
  }

  /** The rest of a line goes to the descriptor that got its beginning, unless that takes nothing any more. */
  #switchFile(next: NativeFile): void {
    const chunk = this.#queue[0];
    const isInsideLine = chunk !== undefined && chunk.start > 0 && chunk.bytes[chunk.start - 1] !== NEWLINE;
    if (isInsideLine && !this.#isFailing) return;
    this.#close(this.#target.file);
    this.#target = ownTarget(next);
    this.#nextFile = undefined;
    clearTimeout(this.#retry);
    this.#retry = undefined;
  }

  #signal(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  #closeFiles(): void {
    this.#close(this.#target.file);
    if (this.#nextFile !== undefined) this.#close(this.#nextFile);
    this.#signal();
  }

  /** Network file systems tell some failed writes only here. */
  #close(file: NativeFile | undefined): void {
    file?.close().catch((error: Error) => {
      this.#options.onProblem(`cannot close '${this.#options.path}': ${error.message}`);
    });
  }
}

/**
 * Of the line that is written next, or of which the rest is. Where a line break comes next it is the line behind that: the break
 * ends a torn line, this one or another's, and has perhaps been tried before.
 */
function lineStart({ bytes, first, start }: Chunk): number {
  if (start <= first) return first;
  return bytes[start] === NEWLINE ? start + 1 : bytes.lastIndexOf(NEWLINE, start - 1) + 1;
}

/** Whether a file ends with a part of a line; undefined when that cannot be read. */
function endsInsideLine(fd: number): boolean | undefined {
  let own: number | undefined;
  try {
    own = openSync(`/proc/self/fd/${fd}`, constants.O_RDONLY);
    const { size } = fstatSync(own);
    const last = new Uint8Array(1);
    return size > 0 && readSync(own, last, 0, 1, size - 1) === 1 && last[0] !== NEWLINE;
  } catch {
    return undefined;
  } finally {
    if (own !== undefined) closeSync(own);
  }
}

interface Target {
  fd: number;
  /** Undefined: the descriptor is the process's own, and not ours to close. */
  file: NativeFile | undefined;
  /** Standard output or error: never opened anew. */
  isStandard: boolean;
  isPipe: boolean;
  isFile: boolean;
  /** A pipe through a description of our own: a full one says EAGAIN. */
  isBusyPipe: boolean;
}

function openTarget(path: string): Target {
  const standard = standardStream(path);
  try {
    if (standard === undefined) return ownTarget(loadShim().openOutput(path, true));
    // A pipe is opened anew to have it not blocking without changing it for others. Files are not: what is appended through
    // another description would be overwritten through the inherited one. Sockets cannot be.
    const stat = fstatSync(standard);
    const isPipe = stat.isFIFO();
    const isFile = stat.isFile();
    const file = isPipe ? openPipe(path) : undefined;
    const fd = file?.fd ?? standard;
    return { fd, file, isStandard: true, isPipe, isFile, isBusyPipe: file !== undefined };
  } catch (error) {
    throw new BatonError('CONFIG_INVALID', `unable to open file '${path}': ${messageOf(error)}`, { cause: error });
  }
}

/** What was opened by its path, which may lead to something else each time. */
function ownTarget(file: NativeFile): Target {
  const stat = fstatSync(file.fd);
  const isPipe = stat.isFIFO();
  return { fd: file.fd, file, isStandard: false, isPipe, isFile: stat.isFile(), isBusyPipe: isPipe };
}

/** Another user's pipe can be written to but not opened: then the inherited descriptor must do. */
function openPipe(path: string): NativeFile | undefined {
  try {
    return loadShim().openOutput(path, true);
  } catch {
    return undefined;
  }
}
