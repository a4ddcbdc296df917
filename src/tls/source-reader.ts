// Reads the files that a context itself names once: a later version of one of its secrets must not bring other contents of the files with it,
// which may be in the middle of a change.

import { readDataSource } from '../config/fields/data-source.js';
import type { DataSource } from '../config/generated/api.js';

/** Returns the data of a source. Throws BatonError if it cannot be read. */
export type ReadSource = (source: DataSource) => Buffer;

/** Returns a reader for one context. */
export function sourceReader(): ReadSource {
  const contents = new Map<string, Buffer>();
  return (source) => {
    const { filename } = source;
    if (filename === undefined) return readDataSource(source);
    let bytes = contents.get(filename);
    if (bytes === undefined) {
      bytes = readDataSource(source);
      contents.set(filename, bytes);
    }
    return bytes;
  };
}
