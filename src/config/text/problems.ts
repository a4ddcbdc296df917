// Collects what is wrong, all at once, and finds each place in the texts it came from.

import { formatPath, type Path, type PathPart } from './path.js';
import { PathTree } from './path-tree.js';
import { type Problem, problemOf } from './problem.js';
import { messageWithoutSecret, SecretIndex, secretAt, secretsIn } from './secrets.js';
import type { Source } from './source.js';
import { isTypedStruct, typeUrlMember } from './typed-struct.js';

/**
 * What a reported path is about: the name itself (unknown, not implemented), or what it holds. Of a secret the line is named
 * and not shown.
 */
export type Aspect = 'key' | 'value' | 'secret';

/** What is said of a place. A function is called only if it is shown: of a configuration where all is wrong, most is not. */
export type Saying = string | (() => string);

/** After this many, the rest is only counted. */
const MAX_PROBLEMS = 100;

const MAX_PATHS = 10_000;

/** Of static ones: static_resources.clusters[0]. */
const DEPTH_OF_RESOURCES = 3;

export class Problems {
  readonly errors: Problem[] = [];
  readonly warnings: Problem[] = [];
  /** How many errors were found, the uncollected ones too. */
  errorCount = 0;
  /** Paths at which something is wrong. */
  readonly #paths = new PathTree();
  #sources: readonly Source[];
  /** Secrets within parts of the sources. */
  readonly #secrets = new WeakMap<object, SecretIndex>();

  constructor(sources: readonly Source[]) {
    this.#sources = sources;
  }

  /** Errors of the following checks are looked for in these texts, the last one first. */
  within(sources: readonly Source[]): void {
    this.#sources = sources;
  }

  /** What has been said of a place is not said again: several checks may find it. */
  error(path: Path, message: Saying, aspect: Aspect = 'value'): void {
    const problem = this.errors.length < MAX_PROBLEMS ? this.#problem(path, message, aspect) : undefined;
    if (problem !== undefined && this.errors.some((known) => isSame(known, problem))) return;
    this.errorCount++;
    if (this.notesPaths) this.#paths.note(path, this.errorCount);
    if (problem !== undefined) this.errors.push(problem);
  }

  /** Whether more warnings are kept. */
  get keepsWarnings(): boolean {
    return this.warnings.length < MAX_PROBLEMS;
  }

  warn(path: Path, message: string, aspect: Aspect = 'key'): void {
    if (this.keepsWarnings) this.warnings.push(this.#problem(path, message, aspect));
  }

  /** Takes over problems that have their place already, and the number of `further` ones. */
  add(problems: readonly Problem[], further = 0): void {
    this.errorCount += problems.length + further;
    this.errors.push(...problems);
  }

  /** Whether has() and isDamaged() take note of more errors. */
  get notesPaths(): boolean {
    return this.errorCount < MAX_PATHS;
  }

  /** What stands there was meant by a field of another name, which has been reported. */
  expect(path: Path): void {
    this.#paths.mark(path);
  }

  /** Whether that very path has an error: what follows from it need not be reported. */
  has(path: Path): boolean {
    return this.#paths.has(path);
  }

  /** Whether something at that path or below it was wrong when there were `errorCount` errors: no check of it can be relied on. */
  isDamaged(path: Path, errorCount: number): boolean {
    return errorCount >= MAX_PATHS || this.#paths.firstAt(path) <= errorCount;
  }

  /** Runs a check of what lies at the path. It may throw where something was wrong before: it takes for granted that nothing is. */
  checking(path: Path, check: () => void): void {
    const known = this.errorCount;
    try {
      check();
    } catch (error) {
      if (!this.isDamaged(path, known)) throw error;
    }
  }

  #problem(path: Path, message: Saying, aspect: Aspect): Problem {
    const found = locate(this.#sources, path, aspect);
    const shown = this.#withoutSecrets(path, typeof message === 'string' ? message : message(), aspect);
    if (found === undefined) return problemOf(this.#sources.at(-1)?.name ?? '', shown, formatPath(path));
    const place = aspect === 'secret' ? { ...found, excerpt: '', caret: 0 } : found;
    return { ...place, path: formatPath(path), message: shown };
  }

  /** A message quotes the value that it is about, or one near it: the code that makes it need not know what is secret. */
  #withoutSecrets(path: Path, message: string, aspect: Aspect): string {
    let shown = message;
    for (const [index, { value }] of this.#sources.entries()) {
      const own = ownPath(this.#sources, index, path);
      if (own === undefined) continue;
      if (aspect === 'value') shown = messageWithoutSecret(shown, secretAt(value, own));
      shown = this.#secretsAround(value, own)?.hide(shown) ?? shown;
    }
    return shown;
  }

  /** Those of the resource that the path leads into. */
  #secretsAround(value: unknown, path: Path): SecretIndex | undefined {
    let around = value;
    for (const part of path.slice(0, DEPTH_OF_RESOURCES)) {
      const held = member(around, String(part));
      if (typeof held !== 'object' || held === null) break;
      around = held;
    }
    if (typeof around !== 'object' || around === null) return undefined;
    let secrets = this.#secrets.get(around);
    if (secrets === undefined) this.#secrets.set(around, (secrets = new SecretIndex(secretsIn(around))));
    return secrets;
  }
}

function isSame(a: Problem, b: Problem): boolean {
  return (
    a.message === b.message && a.path === b.path && a.line === b.line && a.column === b.column && a.source === b.source
  );
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
      const place = own && source.locate(own, length === path.length && aspect === 'value' ? 'value' : 'key');
      if (place) return { source: source.name, ...place };
    }
  }
  return undefined;
}

/** The path within one of the texts: positions in lists less what the texts before it contribute, TypedStructs gone through. */
function ownPath(sources: readonly Source[], index: number, path: Path): Path | undefined {
  const own: PathPart[] = [];
  let value = sources[index]!.value;
  const earlier = sources.slice(0, index).map((source) => source.value);
  for (const part of path) {
    let shifted = part;
    for (let at = 0; at < earlier.length; at++) {
      const held = earlier[at];
      if (typeof part === 'number' && typeof shifted === 'number') shifted -= lengthOf(held);
      earlier[at] = typeof part === 'string' ? member(held, part) : undefined;
    }
    if (typeof shifted === 'number' && shifted < 0) return undefined;
    // A single value that stands for a list of it is its first element.
    if (shifted === 0 && !Array.isArray(value) && lengthOf(value) === 1) continue;
    const inner = throughTypedStructs(value, shifted);
    own.push(...inner.path);
    value = inner.value;
  }
  return own;
}

/** How many elements a list of a text has: a single value is one. */
function lengthOf(held: unknown): number {
  if (Array.isArray(held)) return held.length;
  return held === undefined || held === null ? 0 : 1;
}

/** Where a part of a message stands in the text, from the message on, and what it holds. */
function throughTypedStructs(value: unknown, part: PathPart): { readonly path: Path; readonly value: unknown } {
  if (typeof part === 'number') return { path: [part], value: Array.isArray(value) ? value[part] : undefined };
  const path: PathPart[] = [];
  let held = value;
  let isTyped = isTypedStruct(member(held, '@type'));
  while (isTyped && typeof held === 'object' && held !== null) {
    const url = typeUrlMember(held);
    const isInner = isTypedStruct(member(held, url));
    if (part === '@type' && !isInner) return { path: [...path, url], value: undefined };
    // A member that a TypedStruct does not have is one of its own.
    if (member(held, part) !== undefined && member(member(held, 'value'), part) === undefined) break;
    path.push('value');
    held = member(held, 'value');
    isTyped = isInner;
  }
  return { path: [...path, part], value: member(held, part) };
}

function member(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  const camel = name.replace(/_([a-z0-9])/g, (_all, letter: string) => letter.toUpperCase());
  const fields = value as Record<string, unknown>;
  return fields[name] ?? fields[camel];
}
