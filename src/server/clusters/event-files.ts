// The files of event logs, which the primary writes: ejections of hosts, and events of health checks. One line of JSON an event.

import { type AccessLogFile, AccessLogFiles, type FileLogOptions } from '../../access-log/files/file-log.js';
import { atMostMs } from '../../common/time/within-ms.js';
import { FilesystemStats } from '../../stats/layouts/filesystem.js';
import type { StatsStore } from '../../stats/store.js';
import { FilesystemStatsUpdate } from '../../worker/stats/filesystem-stats.js';

/** Limit for writing the last lines. */
const FINAL_FLUSH_MS = 1000;

export class EventFiles {
  readonly #files: AccessLogFiles;
  readonly #store: StatsStore;
  /** Undefined before the first file. */
  #stats: FilesystemStatsUpdate | undefined;

  constructor(options: FileLogOptions, store: StatsStore) {
    this.#files = new AccessLogFiles(options);
    this.#store = store;
  }

  /** Returns the file of a path; each open() needs one release(). Throws a BatonError when it cannot be opened. */
  open(path: string): EventFile {
    const file = this.#files.open(path);
    this.#stats ??= new FilesystemStatsUpdate(
      this.#files,
      this.#store.scope(this.#store.addScope('filesystem.', FilesystemStats)),
    );
    return new EventFile(file);
  }

  /** Called after a log rotation. */
  reopen(): void {
    void this.#files.reopenAll();
  }

  async close(): Promise<void> {
    await atMostMs(this.#files.flush(), FINAL_FLUSH_MS);
    this.#stats?.close();
  }
}

export class EventFile {
  readonly #file: AccessLogFile;

  constructor(file: AccessLogFile) {
    this.#file = file;
  }

  /** Adds a line. */
  write(line: string): void {
    this.#file.buffer.text(`${line}\n`);
    this.#file.endLine();
  }

  release(): void {
    this.#file.release();
  }
}
