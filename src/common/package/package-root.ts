// Where Baton's own files lie, whatever directory it was compiled to or started from.

import { existsSync } from 'node:fs';
import { dirname, isAbsolute, join, relative, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));

let root: string | undefined;

/** Absolute path of a file of the package; absolute first parts pass through. */
export function packagePath(...parts: string[]): string {
  if (parts.length > 0 && isAbsolute(parts[0]!)) return join(...parts);
  root ??= findRoot(here);
  return join(root, ...parts);
}

/** Where the program that runs lies: dist/src as the compiler wrote it, or dist/baton as scripts/bundle.mjs put that together. */
export function programDirectory(): string {
  const parts = relative(packagePath(), here).split(sep);
  return packagePath(...parts.slice(0, 2));
}

/** URL of a thread's entry, by its path below src. The path has to be written out, for the build looks for it. */
export function programFile(path: string): URL {
  return pathToFileURL(join(programDirectory(), path));
}

function findRoot(directory: string): string {
  for (let at = directory; ; at = dirname(at)) {
    if (existsSync(join(at, 'package.json'))) return at;
    if (at === dirname(at)) throw new Error(`no package.json above ${directory}: Baton's installation is incomplete`);
  }
}
