// The log of ejections and unejections (cluster_manager.outlier_detection.event_log_path), one line of JSON for each.

import { type AccessLogFile, AccessLogFiles, type FileLogOptions } from '../../access-log/files/file-log.js';
import { atMostMs } from '../../common/time/within-ms.js';
import type { OutlierDetectionEvent } from '../../config/generated/api.js';
import { FilesystemStats } from '../../stats/layouts/filesystem.js';
import type { StatsStore } from '../../stats/store.js';
import { FilesystemStatsUpdate } from '../../worker/stats/filesystem-stats.js';

/** Limit for writing the last lines. */
const FINAL_FLUSH_MS = 1000;

export class OutlierEventLog {
  readonly #path: string;
  readonly #files: AccessLogFiles;
  readonly #stats: FilesystemStatsUpdate;
  #file: AccessLogFile | undefined;

  constructor(path: string, options: FileLogOptions, store: StatsStore) {
    this.#path = path;
    this.#files = new AccessLogFiles(options);
    this.#stats = new FilesystemStatsUpdate(this.#files, store.scope(store.addScope('filesystem.', FilesystemStats)));
  }

  /** Opens the file; events before that are dropped. Throws a BatonError when the file cannot be opened. */
  open(): void {
    this.#file = this.#files.open(this.#path);
  }

  write(event: OutlierDetectionEvent): void {
    if (this.#file === undefined) return;
    this.#file.buffer.text(`${JSON.stringify(event)}\n`);
    this.#file.endLine();
  }

  /** Called after a log rotation. */
  reopen(): void {
    void this.#files.reopenAll();
  }

  async close(): Promise<void> {
    await atMostMs(this.#files.flush(), FINAL_FLUSH_MS);
    this.#stats.close();
  }
}
