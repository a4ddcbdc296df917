// envoy.resource_monitors.cgroup_memory: the memory of the cgroup, of version 2 or 1, in relation to its limit.

import { existsSync } from 'node:fs';
import type { ResourceMonitor } from './monitor.js';
import { readNumber, readSmallFile } from './read-file.js';

interface CgroupFiles {
  readonly usage: string;
  readonly limit: string;
}

const VERSIONS: readonly CgroupFiles[] = [
  { usage: '/sys/fs/cgroup/memory.current', limit: '/sys/fs/cgroup/memory.max' },
  { usage: '/sys/fs/cgroup/memory/memory.usage_in_bytes', limit: '/sys/fs/cgroup/memory/memory.limit_in_bytes' },
];

/** What a cgroup of version 1 reports without a limit, and above. */
const UNLIMITED_BYTES = 2 ** 62;

export class CgroupMemory implements ResourceMonitor {
  readonly #maxBytes: number;
  readonly #files: CgroupFiles;

  /** `maxBytes`: a limit of the configuration; 0: only that of the cgroup counts. Throws an Error outside of a cgroup. */
  constructor(maxBytes: number, versions = VERSIONS) {
    this.#maxBytes = maxBytes;
    const files = versions.find(({ limit, usage }) => existsSync(usage) && existsSync(limit));
    if (files === undefined) throw new Error('no supported cgroup memory implementation found');
    this.#files = files;
  }

  read(): number {
    const used = readNumber(this.#files.usage);
    const limit = Math.min(this.#limit, this.#maxBytes || Number.POSITIVE_INFINITY);
    return limit === Number.POSITIVE_INFINITY ? 0 : used / limit;
  }

  get #limit(): number {
    const text = readSmallFile(this.#files.limit).trim();
    const bytes = Number(text);
    if (text === 'max' || bytes >= UNLIMITED_BYTES) return Number.POSITIVE_INFINITY;
    if (text === '' || !(bytes > 0)) throw new Error(`${this.#files.limit} is not a limit`);
    return bytes;
  }
}
