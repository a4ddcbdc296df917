// The file that a source of configuration names.

import type { ConfigSource, PathConfigSource } from '../generated/api.js';

/** Undefined when the source is none. `path` is the deprecated way to name a file. */
export function fileOfSource({ path, path_config_source: file }: ConfigSource): PathConfigSource | undefined {
  return path === undefined ? file : { path };
}
