// Collects all problems of a configuration and locates them in its texts.

import { formatPath, type Path, type PathPart } from './path.js';
import { PathTree } from './path-tree.js';
import { type Problem, problemOf } from './problem.js';
import { messageWithoutSecret, SecretIndex, secretAt, secretsIn } from './secrets.js';
import type { Source } from './source.js';
import { isTypedStruct, typeUrlMember } from './typed-struct.js';

/**
 * What a problem at a path is about: the name (unknown, not implemented) or its value. For a secret, the place is reported
 * without the line.
 */
export type Aspect = 'key' | 'value' | 'secret';

/** An error text. A function is called only if the error is shown, since most errors of a very broken configuration are not. */
export type LazyMessage = string | (() => string);

/** Further problems are only counted. */
const MAX_PROBLEMS = 100;

const MAX_PATHS = 10_000;

/** Path length of a static resource: static_resources.clusters[0]. */
const DEPTH_OF_RESOURCES = 3;

export class Problems {
  readonly errors: Problem[] = [];
  readonly warnings: Problem[] = [];
  /** Number of errors, including those that were not collected. */
  errorCount = 0;
  /** Paths with errors. */
  readonly #paths = new PathTree();
  #sources: readonly Source[];
  /** The secrets within parts of the sources. */
  readonly #secrets = new WeakMap<object, SecretIndex>();

  /** What no message shows; undefined: nothing. */
  #hidden: SecretIndex | undefined;

  constructor(sources: readonly Source[]) {
    this.#sources = sources;
  }

  /** Hides texts in all further messages. */
  hide(texts: readonly string[]): void {
    this.#hidden = texts.length === 0 ? undefined : new SecretIndex(texts);
  }

  /** Sets the texts in which the following errors are located, the last one first. */
  within(sources: readonly Source[]): void {
    this.#sources = sources;
  }

  /** Reports an error. Duplicates are dropped, because several checks may find the same error. */
  error(path: Path, message: LazyMessage, aspect: Aspect = 'value'): void {
    const problem = this.errors.length < MAX_PROBLEMS ? this.#problem(path, message, aspect) : undefined;
    if (problem !== undefined && this.errors.some((known) => isSame(known, problem))) return;
    this.errorCount++;
    if (this.notesPaths) this.#paths.note(path, this.errorCount);
    if (problem !== undefined) this.errors.push(problem);
  }

  /** Whether further warnings are kept. */
  get keepsWarnings(): boolean {
    return this.warnings.length < MAX_PROBLEMS;
  }

  warn(path: Path, message: string, aspect: Aspect = 'key'): void {
    if (this.keepsWarnings) this.warnings.push(this.#problem(path, message, aspect));
  }

  /** Adds problems that have a place already, and the number of `further` ones. */
  add(problems: readonly Problem[], further = 0): void {
    this.errorCount += problems.length + further;
    this.errors.push(...problems);
  }

  /** Whether has() and isDamaged() still track errors. */
  get notesPaths(): boolean {
    return this.errorCount < MAX_PATHS;
  }

  /** Marks a path whose value was probably given under another name, which has been reported. */
  markMisnamed(path: Path): void {
    this.#paths.mark(path);
  }

  /** Returns whether exactly this path has an error. Consequences of it need not be reported. */
  has(path: Path): boolean {
    return this.#paths.has(path);
  }

  /** Returns whether the path or a path below it was among the first `errorCount` errors. Then checks of it are unreliable. */
  isDamaged(path: Path, errorCount: number): boolean {
    return errorCount >= MAX_PATHS || this.#paths.firstAt(path) <= errorCount;
  }

  /**
   * Runs a check of the value at the path. The check may throw if the value already had errors, because it assumes that it is
   * valid.
   */
  checking(path: Path, check: () => void): void {
    const known = this.errorCount;
    try {
      check();
    } catch (error) {
      if (!this.isDamaged(path, known)) throw error;
    }
  }

  /** Returns a problem of a value that is found later, without its message. */
  placeOf(path: Path): Problem {
    return this.#problem(path, '', 'value');
  }

  #problem(path: Path, message: LazyMessage, aspect: Aspect): Problem {
    const found = locate(this.#sources, path, aspect);
    const shown = this.#withoutSecrets(path, typeof message === 'string' ? message : message(), aspect);
    if (found === undefined) return problemOf(this.#sources.at(-1)?.name ?? '', shown, formatPath(path));
    const place = aspect === 'secret' ? { ...found, excerpt: '', caret: 0 } : found;
    return { ...place, path: formatPath(path), message: shown };
  }

  /**
   * Hides secrets that a message quotes from its value or nearby values, so that checks need not know which values are secret.
   */
  #withoutSecrets(path: Path, message: string, aspect: Aspect): string {
    let shown = this.#hidden?.hide(message) ?? message;
    for (const [index, { value }] of this.#sources.entries()) {
      const own = ownPath(this.#sources, index, path);
      if (own === undefined) continue;
      if (aspect === 'value') shown = messageWithoutSecret(shown, secretAt(value, own));
      shown = this.#secretsOfResource(value, own)?.hide(shown) ?? shown;
    }
    return shown;
  }

  /** Returns the secrets of the resource that contains the path. */
  #secretsOfResource(value: unknown, path: Path): SecretIndex | undefined {
    let resource = value;
    for (const part of path.slice(0, DEPTH_OF_RESOURCES)) {
      const held = member(resource, String(part));
      if (typeof held !== 'object' || held === null) break;
      resource = held;
    }
    if (typeof resource !== 'object' || resource === null) return undefined;
    let secrets = this.#secrets.get(resource);
    if (secrets === undefined) this.#secrets.set(resource, (secrets = new SecretIndex(secretsIn(resource))));
    return secrets;
  }
}

function isSame(a: Problem, b: Problem): boolean {
  return (
    a.message === b.message && a.path === b.path && a.line === b.line && a.column === b.column && a.source === b.source
  );
}

/**
 * Lists of the merged configuration are the concatenated lists of the texts, so indexes are counted across them. All other
 * values are located in the last text that has them.
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

/** Returns the path within one of the texts: indexes without the elements of earlier texts, and TypedStructs resolved. */
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
    // A single value that stands for a list is its first element.
    if (shifted === 0 && !Array.isArray(value) && lengthOf(value) === 1) continue;
    const inner = throughTypedStructs(value, shifted);
    own.push(...inner.path);
    value = inner.value;
  }
  return own;
}

/** Returns how many elements a text contributes to a list. A single value counts as one. */
function lengthOf(held: unknown): number {
  if (Array.isArray(held)) return held.length;
  return held === undefined || held === null ? 0 : 1;
}

/** Returns the path of a message's part in the text, relative to the message, and its value. */
function throughTypedStructs(value: unknown, part: PathPart): { readonly path: Path; readonly value: unknown } {
  if (typeof part === 'number') return { path: [part], value: Array.isArray(value) ? value[part] : undefined };
  const path: PathPart[] = [];
  let held = value;
  let isTyped = isTypedStruct(member(held, '@type'));
  while (isTyped && typeof held === 'object' && held !== null) {
    const url = typeUrlMember(held);
    const isInner = isTypedStruct(member(held, url));
    if (part === '@type' && !isInner) return { path: [...path, url], value: undefined };
    // A member that the TypedStruct's value does not have belongs to the TypedStruct itself.
    if (member(held, part) !== undefined && member(member(held, 'value'), part) === undefined) break;
    path.push('value');
    held = member(held, 'value');
    isTyped = isInner;
  }
  return { path: [...path, part], value: member(held, part) };
}

function member(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  const fields = value as Record<string, unknown>;
  const held = fields[name];
  if ((held !== undefined && held !== null) || name.length > MAX_FIELD_NAME) return held;
  return fields[name.replace(/_([a-z0-9])/g, (_all, letter: string) => letter.toUpperCase())];
}

/** No field of the API has a longer name. Unknown names of megabytes are not converted. */
const MAX_FIELD_NAME = 1000;
