// The level of each logger: plain data that is the same on every thread, and its evaluation for one logger.

import type { Component } from './components.js';
import type { Level } from './levels.js';

export interface ComponentLevel {
  readonly component: Component;
  readonly level: Level;
}

/** Applies to the loggers of a component, or of the files that match a pattern. */
export type LevelOverride = ComponentLevel | { readonly pattern: string; readonly level: Level };

/** The levels of all loggers. */
export interface LevelRules {
  /** For loggers that match no entry below. */
  readonly level: Level;
  /** Defaults that differ from `level`, by component. The last entry of a component counts. */
  readonly components: readonly ComponentLevel[];
  /** Overrides of the last update. The first match counts. Each update replaces all of them. */
  readonly overrides: readonly LevelOverride[];
}

/** Returns the level of the logger of `file` for `component`. */
export function levelFor(rules: LevelRules, component: Component, file: string): Level {
  let compiled = compiledRules.get(rules);
  if (compiled === undefined) compiledRules.set(rules, (compiled = new CompiledRules(rules)));
  return compiled.levelFor(component, file);
}

/** Returns whether a pattern has wildcards. A pattern without wildcards is a name. */
export function isPattern(pattern: string): boolean {
  return /[*?]/.test(pattern);
}

/** Returns the names of a file: its path, its file name, and its file name without suffix. */
export function namesOfFile(file: string): readonly [path: string, name: string, stem: string] {
  const name = file.slice(file.lastIndexOf('/') + 1);
  const dot = name.indexOf('.');
  return [file, name, dot < 0 ? name : name.slice(0, dot)];
}

const compiledRules = new WeakMap<LevelRules, CompiledRules>();

/** Indexed rules: when levels change, every logger of a thread is looked up. */
class CompiledRules {
  readonly #rules: LevelRules;
  /** Index of the first override that names a component, a path or a file name. */
  readonly #components = new Map<Component, number>();
  readonly #names = new Map<string, number>();
  /** Overrides with wildcards, in order. */
  readonly #patterns: { readonly pattern: string; readonly index: number }[] = [];

  constructor(rules: LevelRules) {
    this.#rules = rules;
    for (const [index, override] of rules.overrides.entries()) {
      if ('component' in override) putFirst(this.#components, override.component, index);
      else if (isPattern(override.pattern)) this.#patterns.push({ pattern: override.pattern, index });
      else putFirst(this.#names, override.pattern, index);
    }
  }

  levelFor(component: Component, file: string): Level {
    const { components, level, overrides } = this.#rules;
    const names = namesOfFile(file);
    let first = this.#components.get(component) ?? overrides.length;
    for (const name of names) first = Math.min(first, this.#names.get(name) ?? first);
    for (const { index, pattern } of this.#patterns) {
      if (index > first) break;
      if (matches(names, pattern)) first = index;
    }
    return overrides[first]?.level ?? components.findLast((entry) => entry.component === component)?.level ?? level;
  }
}

function putFirst<Key>(map: Map<Key, number>, key: Key, index: number): void {
  if (!map.has(key)) map.set(key, index);
}

/**
 * Returns whether a pattern with the wildcards `*` and `?` matches a file. A pattern with a slash is matched against the whole
 * path, any other pattern against the file name with and without suffix.
 */
function matches([path, name, stem]: ReturnType<typeof namesOfFile>, pattern: string): boolean {
  return pattern.includes('/') ? matchesGlob(path, pattern) : matchesGlob(name, pattern) || matchesGlob(stem, pattern);
}

/** Matches wildcards without backtracking: after a mismatch, only the last star is extended by one character. */
function matchesGlob(text: string, pattern: string): boolean {
  let at = 0;
  let next = 0;
  let star = -1;
  let starAt = 0;
  while (at < text.length) {
    if (pattern[next] === '*') {
      star = next++;
      starAt = at;
    } else if (next < pattern.length && (pattern[next] === '?' || pattern[next] === text[at])) {
      at++;
      next++;
    } else if (star >= 0) {
      next = star + 1;
      at = ++starAt;
    } else {
      return false;
    }
  }
  while (pattern[next] === '*') next++;
  return next === pattern.length;
}
