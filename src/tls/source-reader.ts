// Reads the files that a context itself names once: a later version of one of its secrets must not bring other contents of the files with it,
// which may be in the middle of a change. Watched files are read again when they change.

import { readDataSource } from '../config/fields/data-source.js';
import type { DataSource } from '../config/generated/api.js';

/** Returns the data of a source. Throws BatonError if it cannot be read. */
export type ReadSource = (source: DataSource) => Buffer;

/** The reader of one context. */
export class SourceReader {
  readonly #contents = new Map<string, Buffer>();

  readonly read: ReadSource = (source) => {
    const { filename } = source;
    if (filename === undefined) return readDataSource(source);
    let bytes = this.#contents.get(filename);
    if (bytes === undefined) {
      bytes = readDataSource(source);
      this.#contents.set(filename, bytes);
    }
    return bytes;
  };

  /** Makes read() read these files again. Returns a function that restores their previous contents. */
  forget(files: Iterable<string>): () => void {
    const before = new Map<string, Buffer>();
    for (const file of files) {
      const bytes = this.#contents.get(file);
      if (bytes !== undefined) before.set(file, bytes);
      this.#contents.delete(file);
    }
    return () => {
      for (const [file, bytes] of before) this.#contents.set(file, bytes);
    };
  }

  /** Releases the contents: no context is made again. */
  clear(): void {
    this.#contents.clear();
  }
}

export function readSource(source: DataSource): Buffer {
  return readDataSource(source);
}
