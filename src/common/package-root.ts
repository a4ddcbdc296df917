// Where Baton's own files lie, whatever directory it was compiled to or started from.

import { existsSync } from 'node:fs';
import { dirname, isAbsolute, join } from 'node:path';
import { fileURLToPath } from 'node:url';

let root: string | undefined;

/** Absolute path of a file of the package; absolute first parts pass through. */
export function packagePath(...parts: string[]): string {
  if (parts.length > 0 && isAbsolute(parts[0]!)) return join(...parts);
  root ??= findRoot(dirname(fileURLToPath(import.meta.url)));
  return join(root, ...parts);
}

function findRoot(directory: string): string {
  for (let at = directory; ; at = dirname(at)) {
    if (existsSync(join(at, 'package.json'))) return at;
    if (at === dirname(at)) throw new Error(`no package.json above ${directory}: Baton's installation is incomplete`);
  }
}
