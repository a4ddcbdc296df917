// From a place in the program that runs to the one in its source: for logs and profiles. What the build put together has lost
// the lines of its sources, and keeps them in positions.json (scripts/bundle.mjs writes it).

import { existsSync, readFileSync } from 'node:fs';
import { join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { packagePath, programDirectory } from './package-root.js';

export interface SourcePlace {
  /** Below the package for its own files, as in `src/http/routing/tables/route-table.ts`; '' for what has no source. */
  readonly file: string;
  /** From 1; 0 is unknown. */
  readonly line: number;
}

/** What positions.json holds. */
interface Positions {
  /** Sources, as in SourcePlace. */
  readonly files: readonly string[];
  /** By file of the program, of each run of lines that stand in the source in the same way: the first line, the index of the source, the line there. */
  readonly runs: { readonly [file: string]: readonly number[] };
}

/** A file of the program in a stack: `file:///opt/baton/dist/baton/main.js:12:5`. */
const STACK_PLACE = /((?:file:\/)?\/[^\s():]+):(\d+):\d+/g;

const PACKAGE = join(packagePath(), sep);
const COMPILED = join(PACKAGE, 'dist', sep);
const DIRECTORY = join(programDirectory(), sep);

/** Numbers of a run. */
const RUN = 3;

let files: readonly string[] | undefined;
const runs = new Map<string, Int32Array>();

/** `url` is a file URL, a path, or anything else that V8 calls a script, which stays as it is. */
export function sourcePlace(url: string, line: number): SourcePlace {
  const path = url.startsWith('file:') ? fileURLToPath(url) : url;
  files ??= readPositions();
  const ofFile = runs.get(path);
  const at = ofFile === undefined ? -1 : runAt(ofFile, line);
  if (at < 0) return { file: belowPackage(path), line };
  return { file: files[ofFile![at + 1]!]!, line: ofFile![at + 2]! + line - ofFile![at]! };
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

/** Fills `runs`; returns the sources. There are none when the program runs as the compiler wrote it. */
function readPositions(): readonly string[] {
  const path = join(DIRECTORY, 'positions.json');
  if (!existsSync(path)) return [];
  const positions = JSON.parse(readFileSync(path, 'utf8')) as Positions;
  for (const [name, numbers] of Object.entries(positions.runs))
    runs.set(join(DIRECTORY, name), Int32Array.from(numbers));
  return positions.files;
}

/** Index of the last run that begins at the line or before it; -1 without one. */
function runAt(ofFile: Int32Array, line: number): number {
  let low = 0;
  let high = ofFile.length / RUN;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (ofFile[middle * RUN]! <= line) low = middle + 1;
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
