// Appends chunks of whole lines to one descriptor, one write at a time, and queues what cannot be written yet.
//
// sonic-boom was tried and rejected: its flushSync() never returns on a full disk or a closed pipe, it retries a busy pipe only
// after 100 ms, and a reopen() after a failed one closes the old descriptor twice (which may be a socket by then).

import { closeSync, constants, fstatSync, openSync, readSync, write, writeSync } from 'node:fs';
import { BatonError, messageOf } from '../../common/errors/errors.js';
import { standardStream } from '../../common/files/standard-streams.js';
import { blockThread } from '../../common/time/block-thread.js';
import { loadShim, type NativeFile } from '../../io/shim.js';

/** Delays before a retry: a busy pipe is emptied soon, a full disk is not. */
const BUSY_RETRY_MS = 5;
const FAILED_RETRY_MS = 1000;
/** How long flushSync() waits for a write in flight on another thread. */
const IN_FLIGHT_WAIT_MS = 20;
/** Writes to a pipe up to this length are atomic (PIPE_BUF). */
const PIPE_WRITE_BYTES = 4096;
const PIPE_WRITES_PER_TURN = 16;
const NEWLINE = 10;

/** Counters of a thread's files, for the filesystem.* stats. */
export interface FileCounters {
  /** Lines appended to a buffer. */
  writeBuffered: number;
  /** Successful and failed writes. */
  writeCompleted: number;
  writeFailed: number;
  /** Buffers that the timer has flushed. */
  flushedByTimer: number;
  /** Failed reopens on request; automatic retries are not counted. */
  reopenFailed: number;
  /** Lines dropped because the queue was full or the pipe has no reader any more. */
  dropped: number;
}

export interface FileWriterOptions {
  path: string;
  counters: FileCounters;
  /** Maximum queued bytes. A chunk beyond it is dropped. */
  maxPendingBytes: number;
  /** Called when the buffer passed to write() is no longer used. */
  onWritten(bytes: Uint8Array): void;
  /** Called when something fails. For writes only once until they succeed again. */
  onProblem(message: string): void;
  /** Called when a failed operation has succeeded and nothing was lost. */
  onRecovered(message: string): void;
}

interface Chunk {
  bytes: Uint8Array;
  /** Start of its first line: 1 after an inserted line break, otherwise 0. */
  first: number;
  start: number;
  end: number;
  lines: number;
}

export class FileWriter {
  readonly #options: FileWriterOptions;
  #target: Target;
  /** The first chunk is being written. */
  readonly #queue: Chunk[] = [];
  #pendingBytes = 0;
  /** Length of the write in flight on another thread; 0: none. */
  #writing = 0;
  #retry: NodeJS.Timeout | undefined;
  /** The last write failed. */
  #isFailing = false;
  /** The failure was reported. Reset when everything queued has been written. */
  #isFailureReported = false;
  /**
   * Lines dropped since the file accepted no more. The first drop is reported. Their number is reported with the first chunk that is
   * accepted after a write has succeeded: on a full disk a small chunk may still fit into the queue.
   */
  #dropped = 0;
  /** A write has succeeded since the last drop. */
  #hasWritten = false;
  #isClosed = false;
  /** Replaces the target at the next end of a line. */
  #nextFile: NativeFile | undefined;
  /** Set while a failed reopen is retried. */
  #reopening: NodeJS.Timeout | undefined;
  readonly #drainWaiters: (() => void)[] = [];
  readonly #onWritten = (error: NodeJS.ErrnoException | null, count: number): void => this.#written(error, count);

  /** Opens the file. Throws a BatonError with path and reason if that fails. */
  constructor(options: FileWriterOptions) {
    this.#options = options;
    this.#target = openTarget(options.path);
  }

  /** Queued bytes. */
  get pendingBytes(): number {
    return this.#pendingBytes;
  }

  /**
   * Takes ownership of bytes[0, length), which contain `lines` whole lines. With `isLast` they are left to flushSync(): a write
   * that is passed to another thread would be lost when this thread ends.
   */
  write(bytes: Uint8Array, length: number, lines: number, isLast: boolean): void {
    if (this.#isClosed || this.#pendingBytes + length > this.#options.maxPendingBytes) {
      this.#options.counters.dropped += lines;
      if (this.#dropped === 0)
        this.#options.onProblem(`'${this.#options.path}' accepts no more lines: they are dropped`);
      this.#dropped += lines;
      this.#hasWritten = false;
      return;
    }
    if (this.#dropped > 0 && this.#hasWritten) {
      this.#options.onProblem(`'${this.#options.path}' accepts lines again: ${this.#dropped} were dropped`);
      this.#dropped = 0;
    }
    this.#queue.push({ bytes, first: 0, start: 0, end: length, lines });
    this.#pendingBytes += length;
    if (!isLast) this.#next();
  }

  /**
   * Reopens the file after a rotation. The old one is used until then. Resolves when the file is open, or when that fails; it is
   * then retried until it succeeds.
   */
  async reopen(): Promise<void> {
    if (this.#target.isStandard || this.#isClosed) return;
    const error = await this.#tryToReopen();
    if (error === null) return;
    this.#options.counters.reopenFailed++;
    this.#options.onProblem(`cannot reopen '${this.#options.path}': ${error.message}; retrying`);
  }

  /** Resolves when everything queued is written, or when a write fails. A failed write is retried once at once. */
  drained(): Promise<void> {
    if (this.#isClosed || (this.#writing === 0 && this.#queue.length === 0)) return Promise.resolve();
    const drained = new Promise<void>((resolve) => this.#drainWaiters.push(resolve));
    if (this.#isFailing && this.#writing === 0) {
      clearTimeout(this.#retry);
      this.#retry = undefined;
      this.#next();
    }
    if (this.#drainWaiters.length > 0) this.#retry?.ref();
    return drained;
  }

  /**
   * Writes everything queued, synchronously. Gives up at the first error, and after `timeoutMs` with a busy pipe. Waits briefly
   * for a write in flight on another thread, which is lost if that thread has not started it.
   */
  flushSync(timeoutMs: number): void {
    const deadline = performance.now() + timeoutMs;
    const first = this.#writing > 0 ? 1 : 0;
    if (first > 0) {
      blockThread(IN_FLIGHT_WAIT_MS);
      this.#splitFirst();
    }
    while (this.#queue.length > first) {
      const code = this.#writeNow(first);
      if (code === '') continue;
      if (code !== 'EAGAIN' || performance.now() > deadline) return;
      blockThread(BUSY_RETRY_MS);
    }
  }

  /** Closes the file. Queued bytes are lost: flush before. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearTimeout(this.#retry);
    clearTimeout(this.#reopening);
    this.#dropAll();
    if (this.#writing === 0) this.#closeFiles();
  }

  /** Resolves with the error, or null. */
  async #tryToReopen(): Promise<Error | null> {
    let file: NativeFile;
    try {
      file = await loadShim().openOutputLater(this.#options.path, true);
    } catch (error) {
      this.#scheduleReopen();
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

  /** Schedules a retry: descriptors may become free, and a directory may return. */
  #scheduleReopen(): void {
    if (this.#isClosed) return;
    clearTimeout(this.#reopening);
    this.#reopening = setTimeout(() => {
      void this.#tryToReopen().then((error) => {
        if (error === null) this.#options.onRecovered(`'${this.#options.path}' is reopened`);
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
      this.#resolveDrained();
    } else if (this.#retry === undefined) {
      if (this.#isFailing) this.#repairLine(chunk);
      this.#writing = this.#writeLength(chunk);
      write(this.#target.fd, chunk.bytes, chunk.start, this.#writing, null, this.#onWritten);
    }
  }

  /** Writes to a non-blocking pipe synchronously, which costs less than using another thread. */
  #fillPipe(): void {
    for (let writes = 0; this.#queue.length > 0; writes++) {
      const code = writes < PIPE_WRITES_PER_TURN ? this.#writeNow(0) : 'EAGAIN';
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
      this.#reportFailure(error);
      this.#failed(error.code ?? '');
    }
    this.#next();
  }

  /** Writes from queue[index]. Returns the error code, or ''. */
  #writeNow(index: number): string {
    const chunk = this.#queue[index]!;
    if (this.#isFailing) this.#repairLine(chunk);
    try {
      this.#succeeded(index, writeSync(this.#target.fd, chunk.bytes, chunk.start, this.#writeLength(chunk), null));
      return '';
    } catch (error) {
      this.#reportFailure(error as NodeJS.ErrnoException);
      return (error as NodeJS.ErrnoException).code ?? 'EIO';
    }
  }

  /** Removes written bytes from queue[index]. */
  #succeeded(index: number, count: number): void {
    this.#options.counters.writeCompleted++;
    this.#isFailing = false;
    this.#hasWritten = true;
    const chunk = this.#queue[index]!;
    chunk.start += count;
    this.#pendingBytes -= count;
    if (chunk.start < chunk.end) return;
    this.#queue.splice(index, 1);
    this.#options.onWritten(chunk.bytes);
    if (!this.#isFailureReported || this.#queue.length > 0) return;
    this.#isFailureReported = false;
    this.#options.onRecovered(`'${this.#options.path}' is writable again`);
  }

  #reportFailure(error: NodeJS.ErrnoException): void {
    if (error.code === 'EAGAIN') return;
    this.#options.counters.writeFailed++;
    if (!this.#isFailureReported) this.#options.onProblem(`cannot write to '${this.#options.path}': ${error.message}`);
    this.#isFailureReported = true;
    this.#isFailing = true;
  }

  /** Retries later, since a disk may get free space. A pipe without reader never gets one: everything queued is dropped. */
  #failed(code: string): void {
    // Before the timer is set: with waiters it would keep the thread alive.
    if (code !== 'EAGAIN') this.#resolveDrained();
    if (code === 'EPIPE') this.#dropAll();
    else this.#retryIn(code === 'EAGAIN' ? BUSY_RETRY_MS : FAILED_RETRY_MS);
  }

  #retryIn(delayMs: number): void {
    this.#retry = setTimeout(() => {
      this.#retry = undefined;
      this.#next();
    }, delayMs);
    // A retry keeps the process alive only if a caller of drained() waits.
    if (this.#drainWaiters.length === 0) this.#retry.unref();
  }

  /**
   * Called after a failed write. A full disk may have accepted a part of a line, and another process may append first. So the
   * torn line is ended by the next writer, and the line is written again as a whole.
   */
  #repairLine(chunk: Chunk): void {
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
    // Every line but the first follows a line break. If only the last line break is left, it is written in any case.
    chunk.start = isTorn || line === chunk.end ? line - 1 : line;
    this.#pendingBytes += chunk.end - chunk.start - before;
  }

  /** Splits the first chunk after the bytes in flight. */
  #splitFirst(): void {
    const chunk = this.#queue[0]!;
    const middle = chunk.start + this.#writing;
    if (middle === chunk.end) return;
    const bytes = chunk.bytes.slice(middle, chunk.end);
    const rest: Chunk = { bytes, first: 0, start: 0, end: bytes.length, lines: chunk.lines };
    rest.lines = linesLeft(rest);
    chunk.lines -= rest.lines;
    chunk.end = middle;
    this.#queue.splice(1, 0, rest);
  }

  #dropAll(): void {
    for (const chunk of this.#queue) this.#options.counters.dropped += linesLeft(chunk);
    this.#queue.length = 0;
    this.#pendingBytes = 0;
  }

  /** Limits a write to a pipe to whole lines of at most PIPE_BUF bytes, unless a single line is longer. */
  #writeLength({ bytes, start, end }: Chunk): number {
    if (!this.#target.isPipe || end - start <= PIPE_WRITE_BYTES) return end - start;
    const last = bytes.lastIndexOf(NEWLINE, start + PIPE_WRITE_BYTES - 1);
    if (last >= start) return last + 1 - start;
    const first = bytes.indexOf(NEWLINE, start);
    return (first < 0 || first >= end ? end : first + 1) - start;
  }

  /** Switches to the reopened file. The rest of a line is first written to the old one, unless that is failing. */
  #switchFile(next: NativeFile): void {
    const chunk = this.#queue[0];
    const isInsideLine = chunk !== undefined && chunk.start > 0 && chunk.bytes[chunk.start - 1] !== NEWLINE;
    if (isInsideLine && !this.#isFailing) return;
    this.#close(this.#target.file);
    this.#target = openedTarget(next);
    this.#nextFile = undefined;
    clearTimeout(this.#retry);
    this.#retry = undefined;
  }

  #resolveDrained(): void {
    for (const resolve of this.#drainWaiters.splice(0)) resolve();
  }

  #closeFiles(): void {
    this.#close(this.#target.file);
    if (this.#nextFile !== undefined) this.#close(this.#nextFile);
    this.#resolveDrained();
  }

  /** Network file systems report some failed writes only on close. */
  #close(file: NativeFile | undefined): void {
    file?.close().catch((error: Error) => {
      this.#options.onProblem(`cannot close '${this.#options.path}': ${error.message}`);
    });
  }
}

/** Returns the number of lines whose end is not written yet. */
function linesLeft({ bytes, first, start, end, lines }: Chunk): number {
  // Without line breaks no line can be told from the next.
  if (start <= first || bytes[end - 1] !== NEWLINE) return lines;
  let left = 0;
  // A line break at `start` ends a line whose text is written, or the torn part of one.
  for (let at = bytes.indexOf(NEWLINE, start + 1); at >= 0 && at < end; at = bytes.indexOf(NEWLINE, at + 1)) left++;
  return Math.min(left, lines);
}

/**
 * Returns the start of the line that is being written. A line break at `start` ends a torn line, of this or another process, and
 * may have been tried before: the line after it counts.
 */
function lineStart({ bytes, first, start }: Chunk): number {
  if (start <= first) return first;
  return bytes[start] === NEWLINE ? start + 1 : bytes.lastIndexOf(NEWLINE, start - 1) + 1;
}

/** Returns whether a file ends inside a line; undefined if that cannot be read. */
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
  /** Undefined: the descriptor was inherited and must not be closed. */
  file: NativeFile | undefined;
  /** Standard output or error, which are never reopened. */
  isStandard: boolean;
  isPipe: boolean;
  isFile: boolean;
  /** A pipe with its own file description, which is non-blocking: EAGAIN when it is full. */
  isBusyPipe: boolean;
}

function openTarget(path: string): Target {
  const standard = standardStream(path);
  try {
    if (standard === undefined) return openedTarget(loadShim().openOutput(path, true));
    // A pipe is opened again to make it non-blocking for this process only. Files are not: bytes appended through another
    // description would be overwritten through the inherited one. Sockets cannot be.
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

/** Returns the target of an opened path, whose file type may change with each open. */
function openedTarget(file: NativeFile): Target {
  const stat = fstatSync(file.fd);
  const isPipe = stat.isFIFO();
  return { fd: file.fd, file, isStandard: false, isPipe, isFile: stat.isFile(), isBusyPipe: isPipe };
}

/** Returns undefined for another user's pipe, which cannot be opened: the inherited descriptor is then used. */
function openPipe(path: string): NativeFile | undefined {
  try {
    return loadShim().openOutput(path, true);
  } catch {
    return undefined;
  }
}
