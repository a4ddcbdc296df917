// The log of ejections and unejections (cluster_manager.outlier_detection.event_log_path), one line of JSON for each.

import type { OutlierDetectionEvent } from '../../config/generated/api.js';
import type { EventFile, EventFiles } from './event-files.js';

export class OutlierEventLog {
  readonly #path: string;
  readonly #files: EventFiles;
  #file: EventFile | undefined;

  constructor(path: string, files: EventFiles) {
    this.#path = path;
    this.#files = files;
  }

  /** Opens the file; events before that are dropped. Throws a BatonError when the file cannot be opened. */
  open(): void {
    this.#file = this.#files.open(this.#path);
  }

  write(event: OutlierDetectionEvent): void {
    this.#file?.write(JSON.stringify(event));
  }
}
