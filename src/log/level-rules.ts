// Which level each logger has: plain data that is the same on every thread, and what it says of one logger.

import type { Component } from './components.js';
import type { Level } from './levels.js';

export interface ComponentLevel {
  readonly component: Component;
  readonly level: Level;
}

/** Loggers of a component, or of the files that a pattern matches. */
export type LevelOverride = ComponentLevel | { readonly pattern: string; readonly level: Level };

/** The levels of all loggers. */
export interface LevelRules {
  /** Of loggers that nothing below names. */
  readonly level: Level;
  /** Defaults that differ from it, by component: the later counts. */
  readonly components: readonly ComponentLevel[];
  /** What the last update said: the first that matches counts. Another update replaces all of them. */
  readonly overrides: readonly LevelOverride[];
}

/** The level of the logger that `file` has for `component`. */
export function levelFor(rules: LevelRules, component: Component, file: string): Level {
  let compiled = compiledRules.get(rules);
  if (compiled === undefined) compiledRules.set(rules, (compiled = new CompiledRules(rules)));
  return compiled.levelFor(component, file);
}

/** Whether a pattern has wildcards: others are names. */
export function isPattern(pattern: string): boolean {
  return /[*?]/.test(pattern);
}

/** The names of a file: its path, its file name, and that without its suffix. */
export function namesOfFile(file: string): readonly [path: string, name: string, stem: string] {
  const name = file.slice(file.lastIndexOf('/') + 1);
  const dot = name.indexOf('.');
  return [file, name, dot < 0 ? name : name.slice(0, dot)];
}

const compiledRules = new WeakMap<LevelRules, CompiledRules>();

/** Rules as they are looked up: every logger of a thread asks, whenever levels change. */
class CompiledRules {
  readonly #rules: LevelRules;
  /** Index of the first override that names a component, a path or a file name. */
  readonly #components = new Map<Component, number>();
  readonly #names = new Map<string, number>();
  /** Overrides with wildcards, in their order. */
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
 * Whether a pattern with the wildcards `*` and `?` matches a file: one with a slash is for whole paths, another one for file
 * names, with or without their suffix.
 */
function matches([path, name, stem]: ReturnType<typeof namesOfFile>, pattern: string): boolean {
  return pattern.includes('/') ? matchesGlob(path, pattern) : matchesGlob(name, pattern) || matchesGlob(stem, pattern);
}

/** Wildcards without backtracking: after a mismatch only the last star takes one character more. */
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
