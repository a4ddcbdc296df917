// From a place in the program that runs to the one in its source: for logs and profiles. What the build put together has lost
// the lines of its sources, and keeps them in a file beside each that it wrote (scripts/bundle.mjs).

import { readFileSync } from 'node:fs';
import { join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { packagePath, programDirectory } from './package-root.js';

export interface SourcePlace {
  /** Below the package for its own files, as in `src/http/routing/tables/route-table.ts`; '' for what has no source. */
  readonly file: string;
  /** From 1; 0 is unknown. */
  readonly line: number;
}

/** What `<file>.lines` holds of a file of the program. */
interface SourceLines {
  /** Sources, as in SourcePlace. */
  readonly files: readonly string[];
  /** Of each run of lines that stand in the source in the same way: the first line, the index of the source, the line there. */
  readonly runs: readonly number[];
}

/** A file of the program in a stack: `file:///opt/baton/dist/baton/main.js:12:5`. */
const STACK_PLACE = /((?:file:\/)?\/[^\s():]+):(\d+):\d+/g;

const PACKAGE = join(packagePath(), sep);
const COMPILED = join(PACKAGE, 'dist', sep);
const DIRECTORY = join(programDirectory(), sep);

/** Numbers of a run. */
const RUN = 3;

/** Of the program's files that somebody has asked for; undefined: it runs as the compiler wrote it. */
const read = new Map<string, SourceLines | undefined>();

/** `url` is a file URL, a path, or anything else that V8 calls a script, which stays as it is. */
export function sourcePlace(url: string, line: number): SourcePlace {
  const path = url.startsWith('file:') ? fileURLToPath(url) : url;
  const lines = path.startsWith(DIRECTORY) ? linesOf(path) : undefined;
  const at = lines === undefined ? -1 : runAt(lines.runs, line);
  if (lines === undefined || at < 0) return { file: belowPackage(path), line };
  return { file: lines.files[lines.runs[at + 1]!]!, line: lines.runs[at + 2]! + line - lines.runs[at]! };
}

/** A function's name in its source: the build gives numbers to those that several files have. */
export function sourceName(name: string): string {
  return name.replace(/\$\d+$/, '');
}

/** A stack that names places in the source. */
export function sourceStack(stack: string): string {
  return stack.replace(STACK_PLACE, (place, url: string, line: string) => {
    const source = sourcePlace(url, Number(line));
    return source.file.startsWith(sep) ? place : `${source.file}:${source.line}`;
  });
}

/** Undefined where there are none, or, this time, no descriptor to read them with. */
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

/** Index of the last run that begins at the line or before it; -1 without one. */
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

function belowPackage(path: string): string {
  for (const directory of [COMPILED, PACKAGE]) {
    if (path.startsWith(directory)) return path.slice(directory.length);
  }
  return path;
}
