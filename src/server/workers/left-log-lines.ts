// Access log lines that a worker leaves in its buffers when it is terminated, because it is stuck or has no memory left. Lines that
// it had begun to write are not among them: a write that the system has not started by then is lost.

import { FileWriter } from '../../access-log/files/file-writer.js';
import { SharedLines, type SharedLinesReceiver } from '../../access-log/files/shared-lines.js';
import { messageOf } from '../../common/errors/errors.js';
import { getLogger } from '../../log/logger.js';

const logger = getLogger('file');

/** A pipe that nobody reads holds the primary up for so long. */
const WRITE_MS = 50;

export class LeftLogLines implements SharedLinesReceiver {
  readonly #files = new Map<number, { readonly path: string; readonly shared: SharedLines }>();

  opened(file: number, path: string, memory: SharedArrayBuffer): void {
    this.#files.set(file, { path, shared: new SharedLines(memory) });
  }

  closed(file: number): void {
    this.#files.delete(file);
  }

  /** Called when the thread has ended. */
  write(): void {
    for (const { path, shared } of this.#files.values()) {
      const { bytes, lines } = shared.left();
      if (lines > 0) writeLines(path, bytes, lines);
    }
    this.#files.clear();
  }
}

function writeLines(path: string, bytes: Uint8Array, lines: number): void {
  const onProblem = (message: string) => logger.error(message);
  try {
    const counters = {
      ...{ dropped: 0, flushedByTimer: 0, reopenFailed: 0 },
      ...{ writeBuffered: 0, writeCompleted: 0, writeFailed: 0 },
    };
    const options = { path, counters, maxPendingBytes: bytes.length, onProblem };
    const writer = new FileWriter({ ...options, onWritten: () => {}, onRecovered: () => {} });
    writer.write(bytes, bytes.length, lines, true);
    writer.flushSync(WRITE_MS);
    writer.close();
    if (counters.dropped > 0) onProblem(`${counters.dropped} lines that a worker left for '${path}' are lost`);
  } catch (error) {
    onProblem(`${lines} lines that a worker left for '${path}' are lost: ${messageOf(error)}`);
  }
}
