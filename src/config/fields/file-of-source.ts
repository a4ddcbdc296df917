// The file of a configuration source.

import type { ConfigSource, PathConfigSource } from '../generated/api.js';

/** Returns undefined if the source is not a file. `path` is the deprecated field for a file. */
export function fileOfSource({ path, path_config_source: file }: ConfigSource): PathConfigSource | undefined {
  return path === undefined ? file : { path };
}

/** Returns whether a source is a file. */
export function isFileSource(source: ConfigSource | undefined): boolean {
  return source !== undefined && fileOfSource(source) !== undefined;
}
