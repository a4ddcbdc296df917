// Collects what is wrong, all at once, and finds each place in the texts it came from.

import { formatPath, type Path } from './path.js';
import type { Problem } from './problem.js';
import type { Source } from './source.js';

/** What a reported path is about: the name itself (unknown, not implemented), or what it holds. */
export type Aspect = 'key' | 'value';

/** After this many, the rest is only counted. */
export const MAX_PROBLEMS = 100;

const MAX_PATHS = 10_000;

export class Problems {
  readonly errors: Problem[] = [];
  readonly warnings: Problem[] = [];
  /** How many errors were found, the uncollected ones too. */
  errorCount = 0;
  readonly #paths = new Set<string>();
  #sources: readonly Source[];

  constructor(sources: readonly Source[]) {
    this.#sources = sources;
  }

  /** Errors of the following checks are looked for in these texts, the last one first. */
  within(sources: readonly Source[]): void {
    this.#sources = sources;
  }

  error(path: Path, message: string, aspect: Aspect = 'value'): void {
    this.errorCount++;
    if (this.errorCount < MAX_PATHS) this.#paths.add(formatPath(path));
    if (this.errors.length < MAX_PROBLEMS) this.errors.push(this.#problem(path, message, aspect));
  }

  warn(path: Path, message: string, aspect: Aspect = 'key'): void {
    if (this.warnings.length < MAX_PROBLEMS) this.warnings.push(this.#problem(path, message, aspect));
  }

  /** Takes over problems that have their place already. */
  add(problems: readonly Problem[]): void {
    this.errorCount += problems.length;
    this.errors.push(...problems);
  }

  /** Whether that very path has an error: what follows from it need not be reported. */
  has(path: Path): boolean {
    return this.#paths.size > 0 && this.#paths.has(formatPath(path));
  }

  #problem(path: Path, message: string, aspect: Aspect): Problem {
    const found = locate(this.#sources, path, aspect);
    const nowhere = { source: this.#sources.at(-1)?.name ?? '', line: 0, column: 0, excerpt: '', caret: 0 };
    return { ...(found ?? nowhere), path: formatPath(path), message };
  }
}

/**
 * Lists of the merged configuration are the texts' lists one after the other, so a position is counted through them;
 * everything else is where the last text says it, or else an earlier one.
 */
function locate(sources: readonly Source[], path: Path, aspect: Aspect): Omit<Problem, 'path' | 'message'> | undefined {
  for (let length = path.length; length >= 0; length--) {
    for (let index = sources.length - 1; index >= 0; index--) {
      const source = sources[index]!;
      const own = ownPath(sources, index, path.slice(0, length));
      const place = own && source.locate(own, length === path.length ? aspect : 'key');
      if (place) return { source: source.name, ...place };
    }
  }
  return undefined;
}

/** The path within one of the texts: positions in lists less what the texts before it contribute. */
function ownPath(sources: readonly Source[], index: number, path: Path): Path | undefined {
  const own: (string | number)[] = [];
  const earlier = sources.slice(0, index).map((source) => source.value);
  for (const part of path) {
    let shifted = part;
    for (let at = 0; at < earlier.length; at++) {
      const held = earlier[at];
      if (typeof part === 'number' && typeof shifted === 'number' && Array.isArray(held)) shifted -= held.length;
      earlier[at] = typeof part === 'string' ? member(held, part) : undefined;
    }
    if (typeof shifted === 'number' && shifted < 0) return undefined;
    own.push(shifted);
  }
  return own;
}

function member(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  const camel = name.replace(/_([a-z0-9])/g, (_all, letter: string) => letter.toUpperCase());
  const fields = value as Record<string, unknown>;
  return fields[name] ?? fields[camel];
}
