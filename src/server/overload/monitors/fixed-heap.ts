// envoy.resource_monitors.fixed_heap: the memory of the process in relation to a fixed size.

import { residentBytes } from '../../../common/process/thread-memory.js';
import type { ResourceMonitor } from './monitor.js';
import { readSmallFile } from './read-file.js';

export class FixedHeap implements ResourceMonitor {
  readonly #maxBytes: () => number;

  /** @param maxBytes returns the size that counts as 1 */
  constructor(maxBytes: () => number) {
    this.#maxBytes = maxBytes;
  }

  read(): number {
    const maxBytes = this.#maxBytes();
    if (!(maxBytes > 0)) throw new Error('the maximum heap size is not above 0');
    return heapBytes() / maxBytes;
  }
}

/**
 * Returns the resident memory of the process without pages of files, which are not heap: the heaps of all threads, the memory for requests and
 * responses, and what native code allocates.
 */
function heapBytes(): number {
  const status = readSmallFile('/proc/self/status');
  const anonymous = /^RssAnon:\s+(\d+) kB/m.exec(status);
  const shared = /^RssShmem:\s+(\d+) kB/m.exec(status);
  if (anonymous === null) return residentBytes();
  return (Number(anonymous[1]) + Number(shared?.[1] ?? 0)) * 1024;
}
