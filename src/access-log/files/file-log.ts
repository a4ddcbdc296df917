// Access log files: one per path and thread, shared by all loggers with that path.
//
// Lines are collected in a buffer, which is passed on when it is large enough or old enough. Each write contains whole lines, so
// that several threads and processes can append to one file.

import { resolve } from 'node:path';
import { standardStream } from '../../common/files/standard-streams.js';
import { workingDirectory } from '../../common/files/working-directory.js';
import { getLogger } from '../../log/logger.js';
import { LogBuffer } from '../log-buffer.js';
import { type FileCounters, FileWriter } from './file-writer.js';
import { SharedLines, type SharedLinesReceiver } from './shared-lines.js';

export interface FileLogOptions {
  /** Buffer size at which it is written (--file-flush-min-size-kb). */
  flushMinBytes?: number;
  /** Time after which it is written in any case (--file-flush-interval-msec). */
  flushIntervalMs?: number;
  /** Maximum queued bytes of a file that cannot be written; further lines are dropped and counted. */
  maxPendingBytes?: number;
  /** Base of relative paths, independent of later changes of the working directory. */
  directory?: string;
}

const DEFAULT_FLUSH_MIN_BYTES = 64 * 1024;
const DEFAULT_FLUSH_INTERVAL_MS = 10_000;
/**
 * Standard output and error are flushed at least this often: they are watched or collected live, and a write per second costs
 * nothing.
 */
const STANDARD_STREAM_INTERVAL_MS = 1000;
const DEFAULT_MAX_PENDING_BYTES = 8 * 1024 * 1024;

/** The files of one thread. */
export class AccessLogFiles {
  /** Sums for all files, for the filesystem.* stats. */
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
  /** Files without users that still have unwritten lines. */
  readonly #closing = new Set<AccessLogFile>();
  readonly #receiver: SharedLinesReceiver | undefined;
  #opened = 0;

  /** @param receiver takes the lines that the thread may leave behind */
  constructor(options: FileLogOptions = {}, receiver?: SharedLinesReceiver) {
    this.#receiver = receiver;
    const { flushMinBytes = DEFAULT_FLUSH_MIN_BYTES, flushIntervalMs = DEFAULT_FLUSH_INTERVAL_MS } = options;
    // Room for a full buffer that is being written and the next one, regardless of their size.
    const { maxPendingBytes = Math.max(DEFAULT_MAX_PENDING_BYTES, 3 * flushMinBytes) } = options;
    const { directory = workingDirectory() } = options;
    this.#options = { flushMinBytes, flushIntervalMs, maxPendingBytes, directory };
  }

  /** Returns the file of a path. Each open() needs one release(). Throws a BatonError if it cannot be opened. */
  open(configured: string): AccessLogFile {
    const path = resolve(this.#options.directory, configured);
    let file = this.#files.get(path);
    if (file === undefined) {
      const interval = this.#options.flushIntervalMs;
      const flushIntervalMs =
        standardStream(path) !== undefined ? Math.min(interval, STANDARD_STREAM_INTERVAL_MS) : interval;
      const id = this.#opened++;
      file = new AccessLogFile(path, { ...this.#options, flushIntervalMs }, this.counters, (unused) =>
        this.#end(unused, id),
      );
      this.#receiver?.opened(id, path, file.shared.memory);
      this.#files.set(path, file);
    }
    file.users++;
    return file;
  }

  /** Bytes in buffers and queues (filesystem.write_total_buffered). */
  get bufferedBytes(): number {
    let sum = 0;
    for (const file of this.#all()) sum += file.bufferedBytes;
    return sum;
  }

  /** Reopens all files after a rotation (SIGUSR1, POST /reopen_logs). Resolves when lines are written to the new files. */
  async reopenAll(): Promise<void> {
    await Promise.all([...this.#files.values()].map((file) => file.reopen()));
  }

  /** Writes everything buffered. Resolves when it is written or cannot be; the caller sets a time limit. */
  async flush(): Promise<void> {
    await Promise.all(this.#all().map((file) => file.flush()));
  }

  /**
   * Writes everything buffered, synchronously, when the process must end at once. flush() is more reliable, because it also waits
   * for a write in flight. A pipe without reader delays this by at most `timeoutMs`.
   */
  flushSync(timeoutMs = 1000): void {
    for (const file of this.#all()) file.flushSync(timeoutMs);
  }

  #all(): AccessLogFile[] {
    return [...this.#files.values(), ...this.#closing];
  }

  #end(file: AccessLogFile, id: number): void {
    this.#files.delete(file.path);
    this.#closing.add(file);
    void file.close().then(() => {
      this.#closing.delete(file);
      this.#receiver?.closed(id);
    });
  }
}

/** One file. To log, append a line to `buffer` and call endLine(). */
export class AccessLogFile {
  readonly path: string;
  /** The buffer to which the next line is appended. */
  readonly buffer: LogBuffer;
  /** The memory of the buffer, unless a long line has made that grow. */
  readonly shared: SharedLines;
  /** Number of loggers that have opened it. */
  users = 0;
  readonly #writer: FileWriter;
  readonly #flushMinBytes: number;
  readonly #flushIntervalMs: number;
  readonly #counters: FileCounters;
  readonly #onUnused: (file: AccessLogFile) => void;
  /** Includes room for the line that exceeds flushMinBytes. */
  readonly #capacity: number;
  /** Lines in the buffer. */
  #lines = 0;
  /** A written buffer, to be reused. */
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
    this.shared = new SharedLines(this.#capacity);
    this.buffer = new LogBuffer(this.shared.bytes);
    this.#writer = new FileWriter({
      path,
      counters,
      onWritten: (bytes) => {
        if (bytes.length === this.#capacity) this.#spare = bytes;
      },
      maxPendingBytes: options.maxPendingBytes,
      onProblem: (message) => getLogger('file').error(message),
      onRecovered: (message) => getLogger('file').info(message),
    });
  }

  get bufferedBytes(): number {
    return this.buffer.length + this.#writer.pendingBytes;
  }

  /** Called after a line was appended to the buffer. */
  endLine(): void {
    this.#lines++;
    this.#counters.writeBuffered++;
    if (this.buffer.length >= this.#flushMinBytes) return this.#handOver();
    if (this.buffer.bytes === this.shared.bytes) this.shared.set(this.buffer.length, this.#lines);
    if (!this.#isTimerSet) this.#setTimer();
  }

  reopen(): Promise<void> {
    // Lines from before the rotation belong to the old file.
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

  /** Removes a user. The file is closed with the last one. */
  release(): void {
    if (--this.users === 0) this.#onUnused(this);
  }

  /** Closes the file when everything is written or cannot be. Resolves then. */
  async close(): Promise<void> {
    clearTimeout(this.#timer);
    await this.flush();
    this.#writer.close();
  }

  #handOver(isLast = false): void {
    if (this.#lines === 0) return;
    const { length } = this.buffer;
    const lines = this.#lines;
    const bytes = this.#bytesToWrite();
    this.buffer.renew(this.shared.bytes);
    this.#lines = 0;
    this.#writer.write(bytes, length, lines, isLast);
    this.shared.set(0, 0);
  }

  /** Returns the bytes of the buffer; copies those that the next lines overwrite. */
  #bytesToWrite(): Uint8Array {
    const { bytes, length } = this.buffer;
    if (bytes !== this.shared.bytes) return bytes;
    const copy = this.#spare ?? new Uint8Array(this.#capacity);
    this.#spare = undefined;
    copy.set(bytes.subarray(0, length));
    return copy;
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
