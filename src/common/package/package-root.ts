// Paths of Baton's own files, independent of where it was compiled to or started from.

import { existsSync } from 'node:fs';
import { dirname, isAbsolute, join, relative, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));

let root: string | undefined;

/** Returns the absolute path of a file of the package. An absolute first part is kept. */
export function packagePath(...parts: string[]): string {
  if (parts.length > 0 && isAbsolute(parts[0]!)) return join(...parts);
  root ??= findRoot(here);
  return join(root, ...parts);
}

/**
 * Returns the directory of the running program: dist/src as the compiler wrote it, or dist/baton as scripts/bundle.mjs
 * bundled it.
 */
export function programDirectory(): string {
  const parts = relative(packagePath(), here).split(sep);
  return packagePath(...parts.slice(0, 2));
}

/**
 * Returns the URL of a thread's entry file from its path below src. The path must be a literal: the build searches for it.
 */
export function programFile(path: string): URL {
  return pathToFileURL(join(programDirectory(), path));
}

function findRoot(directory: string): string {
  for (let at = directory; ; at = dirname(at)) {
    // dist/baton has a package.json too, which makes its files CommonJS modules.
    if (existsSync(join(at, 'package.json')) && existsSync(join(at, 'dist'))) return at;
    if (at === dirname(at)) throw new Error(`no package.json above ${directory}: Baton's installation is incomplete`);
  }
}
