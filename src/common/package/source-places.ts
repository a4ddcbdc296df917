// Maps places in the running program to places in its source, for logs and profiles. The bundler loses the lines of the
// sources; scripts/bundle.mjs keeps them in a file beside each file that it writes.

import { readFileSync } from 'node:fs';
import { join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { packagePath, programDirectory } from './package-root.js';

export interface SourcePlace {
  /**
   * Relative to the package for its own files, as in `src/http/routing/tables/route-table.ts`; '' for code without a source.
   */
  readonly file: string;
  /** From 1; 0 if unknown. */
  readonly line: number;
}

/** The content of `<file>.lines`, for one file of the program. */
interface SourceLines {
  /** Sources, as in SourcePlace. */
  readonly files: readonly string[];
  /** Three numbers for each run of consecutive lines: its first line, the index of the source, the line there. */
  readonly runs: readonly number[];
}

/** Matches a file of the program in a stack: `file:///opt/baton/dist/baton/main.js:12:5`. */
const STACK_PLACE = /((?:file:\/)?\/[^\s():]+):(\d+):\d+/g;

const PACKAGE = join(packagePath(), sep);
const COMPILED = join(PACKAGE, 'dist', sep);
const DIRECTORY = join(programDirectory(), sep);

/** The part of their path that files of the bundled program share in every installation. */
const PROGRAM = join(sep, 'dist', 'baton', sep);

/** Numbers per run. */
const RUN = 3;

/** Files of the program looked up so far; undefined: the file has no lines file, because the compiler wrote it. */
const read = new Map<string, SourceLines | undefined>();

/** Returns the place in the source. `url`: a file URL, a path, or another name that V8 gives a script, which is kept. */
export function sourcePlace(url: string, line: number): SourcePlace {
  const path = ofThisPackage(url.startsWith('file:') ? fileURLToPath(url) : url);
  const lines = path.startsWith(DIRECTORY) ? linesOf(path) : undefined;
  const at = lines === undefined ? -1 : runAt(lines.runs, line);
  if (lines === undefined || at < 0) return { file: belowPackage(path), line };
  return { file: lines.files[lines.runs[at + 1]!]!, line: lines.runs[at + 2]! + line - lines.runs[at]! };
}

/** Returns a function's name in its source: the bundler appends numbers to names that several files use. */
export function sourceName(name: string): string {
  return name.replace(/\$\d+$/, '');
}

/** Returns a stack with places in the source. */
export function sourceStack(stack: string): string {
  return stack.replace(STACK_PLACE, (place, url: string, line: string) => {
    const source = sourcePlace(url, Number(line));
    return source.file.startsWith(sep) ? place : `${source.file}:${source.line}`;
  });
}

/** Returns undefined if the file has no lines file, or if it cannot be read this time for lack of descriptors. */
function linesOf(path: string): SourceLines | undefined {
  if (read.has(path)) return read.get(path);
  let lines: SourceLines | undefined;
  try {
    lines = JSON.parse(readFileSync(`${path}.lines`, 'utf8'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') return undefined;
  }
  read.set(path, lines);
  return lines;
}

/** Returns the index of the last run that begins at or before the line; negative if there is none. */
function runAt(runs: readonly number[], line: number): number {
  let low = 0;
  let high = runs.length / RUN;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (runs[middle * RUN]! <= line) low = middle + 1;
    else high = middle;
  }
  return (low - 1) * RUN;
}

/** A code cache names the files of the program as they were when it was written: the package may have moved since. */
function ofThisPackage(path: string): string {
  const at = path.startsWith(DIRECTORY) ? -1 : path.lastIndexOf(PROGRAM);
  return at < 0 ? path : join(DIRECTORY, path.slice(at + PROGRAM.length));
}

function belowPackage(path: string): string {
  for (const directory of [COMPILED, PACKAGE]) {
    if (path.startsWith(directory)) return path.slice(directory.length);
  }
  return path;
}
