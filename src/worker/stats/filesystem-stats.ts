// Copies the counts of this worker's access log files to the stats filesystem.*.

import type { AccessLogFiles } from '../../access-log/files/file-log.js';
import { FilesystemStats } from '../../stats/layouts/filesystem.js';
import type { Scope } from '../../stats/thread-stats.js';

/** Interval of the copying. */
const UPDATE_MS = 1000;

export class FilesystemStatsUpdate {
  readonly #files: AccessLogFiles;
  readonly #scope: Scope;
  readonly #seen: AccessLogFiles['counters'];
  readonly #timer: NodeJS.Timeout;

  constructor(files: AccessLogFiles, scope: Scope) {
    this.#files = files;
    this.#scope = scope;
    this.#seen = { ...files.counters };
    this.#timer = setInterval(() => this.update(), UPDATE_MS).unref();
  }

  update(): void {
    const { counters } = this.#files;
    const { at } = FilesystemStats;
    const seen = this.#seen;
    this.#scope.add(at.write_buffered, counters.writeBuffered - seen.writeBuffered);
    this.#scope.add(at.write_completed, counters.writeCompleted - seen.writeCompleted);
    this.#scope.add(at.write_failed, counters.writeFailed - seen.writeFailed);
    this.#scope.add(at.write_dropped, counters.dropped - seen.dropped);
    this.#scope.add(at.flushed_by_timer, counters.flushedByTimer - seen.flushedByTimer);
    this.#scope.add(at.reopen_failed, counters.reopenFailed - seen.reopenFailed);
    const { bufferedBytes } = this.#files;
    if (bufferedBytes > 0 || counters.writeBuffered > 0) this.#scope.set(at.write_total_buffered, bufferedBytes);
    Object.assign(seen, counters);
  }

  close(): void {
    clearInterval(this.#timer);
    this.update();
  }
}
