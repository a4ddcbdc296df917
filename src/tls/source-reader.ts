// Reads the files that a context itself names once: a later version of one of its secrets must not bring other contents of the files with it,
// which may be in the middle of a change.

import { readDataSource } from '../config/fields/data-source.js';
import type { DataSource } from '../config/generated/api.js';
import { namedSecrets, type SecretConfig } from './secrets/context-secrets.js';

/** Returns the data of a source. Throws BatonError if it cannot be read. */
export type ReadSource = (source: DataSource) => Buffer;

/** Returns a reader for one context. It keeps contents only if a source may deliver another version of a secret. */
export function sourceReader(context: SecretConfig): ReadSource {
  if (namedSecrets(context).every(({ config }) => config.sds_config === undefined)) return readSource;
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

export function readSource(source: DataSource): Buffer {
  return readDataSource(source);
}
