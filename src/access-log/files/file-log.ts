// Files of access logs: one of each path a thread, shared by all loggers that name the path.
//
// Lines gather in a buffer that is handed to the file when it is full enough or old enough. Each write holds whole
// lines, so that several threads, and several processes, append to one file.

import { resolve } from 'node:path';
import { standardStream } from '../../common/files/standard-streams.js';
import { workingDirectory } from '../../common/files/working-directory.js';
import { getLogger } from '../../log/logger.js';
import { LogBuffer } from '../log-buffer.js';
import { type FileCounters, FileWriter } from './file-writer.js';

export interface FileLogOptions {
  /** Bytes after which a buffer is written (--file-flush-min-size-kb). */
  flushMinBytes?: number;
  /** Milliseconds after which it is written anyway (--file-flush-interval-msec). */
  flushIntervalMs?: number;
  /** Bytes a file may have waiting when it takes nothing; further lines are dropped and counted. */
  maxPendingBytes?: number;
  /** Where relative paths begin, whatever becomes of the working directory. */
  directory?: string;
}

const DEFAULT_FLUSH_MIN_BYTES = 64 * 1024;
const DEFAULT_FLUSH_INTERVAL_MS = 10_000;
/**
 * Standard output and error are flushed at least this often: who reads them watches, or collects line by line, and a
 * write a second costs nothing.
 */
const STANDARD_STREAM_INTERVAL_MS = 1000;
const DEFAULT_MAX_PENDING_BYTES = 8 * 1024 * 1024;

/** The files of one thread. */
export class AccessLogFiles {
  /** Of all files together, for the filesystem.* stats. */
  readonly counters: FileCounters = {
    writeBuffered: 0,
    writeCompleted: 0,
    writeFailed: 0,
    flushedByTimer: 0,
    reopenFailed: 0,
    dropped: 0,
  };
  readonly #options: Required<FileLogOptions>;
  readonly #files = new Map<string, AccessLogFile>();
  /** Files without users that still have lines to write. */
  readonly #closing = new Set<AccessLogFile>();

  constructor(options: FileLogOptions = {}) {
    const { flushMinBytes = DEFAULT_FLUSH_MIN_BYTES, flushIntervalMs = DEFAULT_FLUSH_INTERVAL_MS } = options;
    // One full buffer may be written while the next one comes, however large they are.
    const { maxPendingBytes = Math.max(DEFAULT_MAX_PENDING_BYTES, 3 * flushMinBytes) } = options;
    const { directory = workingDirectory() } = options;
    this.#options = { flushMinBytes, flushIntervalMs, maxPendingBytes, directory };
  }

  /** The file of that path; each open() wants one release(). Throws a BatonError when it cannot be opened. */
  open(configured: string): AccessLogFile {
    const path = resolve(this.#options.directory, configured);
    let file = this.#files.get(path);
    if (file === undefined) {
      const interval = this.#options.flushIntervalMs;
      const flushIntervalMs =
        standardStream(path) !== undefined ? Math.min(interval, STANDARD_STREAM_INTERVAL_MS) : interval;
      file = new AccessLogFile(path, { ...this.#options, flushIntervalMs }, this.counters, (unused) =>
        this.#end(unused),
      );
      this.#files.set(path, file);
    }
    file.users++;
    return file;
  }

  /** Bytes in buffers and waiting to be written (filesystem.write_total_buffered). */
  get bufferedBytes(): number {
    let sum = 0;
    for (const file of this.#all()) sum += file.bufferedBytes;
    return sum;
  }

  /** After a rotation (SIGUSR1, POST /reopen_logs): when it resolves, the files that have the paths now are written to. */
  async reopenAll(): Promise<void> {
    await Promise.all([...this.#files.values()].map((file) => file.reopen()));
  }

  /** Writes all that is buffered; resolves when it is written, or cannot be. The caller sets the time limit. */
  async flush(): Promise<void> {
    await Promise.all(this.#all().map((file) => file.flush()));
  }

  /**
   * The same before it returns, for an end that cannot wait: flush() is surer, for it also knows of the write that is under
   * way. A pipe that nobody reads delays it by `timeoutMs` at most.
   */
  flushSync(timeoutMs = 1000): void {
    for (const file of this.#all()) file.flushSync(timeoutMs);
  }

  #all(): AccessLogFile[] {
    return [...this.#files.values(), ...this.#closing];
  }

  #end(file: AccessLogFile): void {
    this.#files.delete(file.path);
    this.#closing.add(file);
    void file.close().then(() => this.#closing.delete(file));
  }
}

/** One file: write a line into `buffer`, then call endLine(). */
export class AccessLogFile {
  readonly path: string;
  /** What the next line is appended to. */
  readonly buffer: LogBuffer;
  /** Loggers that have opened it. */
  users = 0;
  readonly #writer: FileWriter;
  readonly #flushMinBytes: number;
  readonly #flushIntervalMs: number;
  readonly #counters: FileCounters;
  readonly #onUnused: (file: AccessLogFile) => void;
  /** With room for the line that goes over the mark. */
  readonly #capacity: number;
  /** Lines in the buffer. */
  #lines = 0;
  /** Bytes that were written, for the next buffer. */
  #spare: Uint8Array | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isTimerSet = false;

  constructor(
    path: string,
    options: Required<FileLogOptions>,
    counters: FileCounters,
    onUnused: (file: AccessLogFile) => void,
  ) {
    this.path = path;
    this.#flushMinBytes = options.flushMinBytes;
    this.#flushIntervalMs = options.flushIntervalMs;
    this.#counters = counters;
    this.#onUnused = onUnused;
    this.#capacity = options.flushMinBytes + 4096;
    this.buffer = new LogBuffer(this.#capacity);
    this.#writer = new FileWriter({
      path,
      counters,
      onWritten: (bytes) => {
        if (bytes.length === this.#capacity) this.#spare = bytes;
      },
      maxPendingBytes: options.maxPendingBytes,
      onProblem: (message) => getLogger('file').error(message),
      onMended: (message) => getLogger('file').info(message),
    });
  }

  get bufferedBytes(): number {
    return this.buffer.length + this.#writer.pendingBytes;
  }

  /** A line was appended to the buffer. */
  endLine(): void {
    this.#lines++;
    this.#counters.writeBuffered++;
    if (this.buffer.length >= this.#flushMinBytes) this.#handOver();
    else if (!this.#isTimerSet) this.#setTimer();
  }

  reopen(): Promise<void> {
    // What was logged before the rotation belongs to the old file.
    this.#handOver();
    return this.#writer.reopen();
  }

  flush(): Promise<void> {
    this.#handOver();
    return this.#writer.drained();
  }

  flushSync(timeoutMs: number): void {
    this.#handOver(true);
    this.#writer.flushSync(timeoutMs);
  }

  /** One user less; without any the file is closed. */
  release(): void {
    if (--this.users === 0) this.#onUnused(this);
  }

  /** Closes the file once all is written or cannot be, which resolves the promise. */
  async close(): Promise<void> {
    clearTimeout(this.#timer);
    await this.flush();
    this.#writer.close();
  }

  #handOver(isLast = false): void {
    if (this.#lines === 0) return;
    const { bytes, length } = this.buffer;
    const lines = this.#lines;
    this.buffer.renew(this.#spare ?? new Uint8Array(this.#capacity));
    this.#spare = undefined;
    this.#lines = 0;
    this.#writer.write(bytes, length, lines, isLast);
  }

  #setTimer(): void {
    this.#isTimerSet = true;
    if (this.#timer === undefined) this.#timer = setTimeout(() => this.#onTimer(), this.#flushIntervalMs).unref();
    else this.#timer.refresh();
  }

  #onTimer(): void {
    this.#isTimerSet = false;
    if (this.#lines === 0) return;
    this.#counters.flushedByTimer++;
    this.#handOver();
  }
}
