// The layer of a directory: the file `a/b` contains the value of the key `a.b`.

import { readdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { BatonError, messageOf } from '../common/errors/errors.js';
import type { Layer } from './layer.js';
import { type RuntimeValue, valueOfText } from './value.js';

/** Maximum nesting of directories. It also bounds loops of symbolic links. */
export const MAX_DEPTH = 16;
/** Larger files are not values and must not fill the memory. */
export const MAX_FILE_BYTES = 64 * 1024;
/** For all files together: links may show the same file repeatedly. */
const MAX_TOTAL_BYTES = 16 * 1024 * 1024;
const MAX_FILES = 100_000;

/**
 * Reads a tree, one file per step, and returns undefined if the directory does not exist. Follows links; skips entries that are
 * neither files nor directories. If the directory itself is a link, the tree that it points to at the beginning is read to the
 * end. Throws a BatonError RUNTIME_LAYER, and returns no values, if the tree cannot be read, is too deep or too large, or has a
 * reserved name.
 */
export function* readDiskLayer(name: string, directory: string): Generator<void, Layer | undefined> {
  if (!isDirectory(directory)) return undefined;
  const real = attempt(directory, () => realpathSync(directory));
  if (PSEUDO_FILES.test(real)) throw failed(directory, 'its file system has no regular files');
  const tree = new Tree();
  yield* tree.read(real, '', 1);
  return { name, values: tree.values };
}

const PSEUDO_FILES = /^\/(?:dev|proc|sys)(?:\/|$)/;

/** The fields of a fraction in other layers. */
const RESERVED = new Set(['numerator', 'denominator']);

class Tree {
  readonly values = new Map<string, RuntimeValue>();
  #files = 0;
  #bytes = 0;

  *read(directory: string, prefix: string, depth: number): Generator<void, void> {
    if (depth > MAX_DEPTH) throw failed(directory, `directories are nested more than ${MAX_DEPTH} deep`);
    for (const name of attempt(directory, () => readdirSync(directory)).sort()) {
      const path = join(directory, name);
      if (RESERVED.has(name)) throw failed(path, `the name '${name}' is reserved`);
      const key = prefix === '' ? name : `${prefix}.${name}`;
      const stats = attempt(path, () => statSync(path));
      if (stats.isDirectory()) yield* this.read(path, key, depth + 1);
      else if (stats.isFile()) this.values.set(key, valueOfText(this.#text(path, stats.size)));
      yield;
    }
  }

  #text(path: string, size: number): string {
    if (size > MAX_FILE_BYTES) throw failed(path, `the file is larger than ${MAX_FILE_BYTES >> 10} KiB`);
    this.#bytes += size;
    if (++this.#files > MAX_FILES) throw failed(path, `there are more than ${MAX_FILES} files`);
    if (this.#bytes > MAX_TOTAL_BYTES)
      throw failed(path, `all files together are larger than ${MAX_TOTAL_BYTES >> 20} MiB`);
    return withoutComments(attempt(path, () => readFileSync(path, 'utf8')));
  }
}

/** Removes comments (lines that begin with '#'), empty lines and trailing white space. */
function withoutComments(text: string): string {
  return text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .join('\n')
    .trimEnd();
}

function isDirectory(path: string): boolean {
  return attempt(path, () => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false);
}

function attempt<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw failed(path, messageOf(error), error);
  }
}

function failed(path: string, reason: string, cause?: unknown): BatonError {
  return new BatonError('RUNTIME_LAYER', reason, { where: path, cause });
}
