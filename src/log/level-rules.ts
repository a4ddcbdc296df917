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
  for (const override of rules.overrides) {
    if ('component' in override ? override.component === component : matchesFile(file, override.pattern)) {
      return override.level;
    }
  }
  return rules.components.findLast((entry) => entry.component === component)?.level ?? rules.level;
}

/**
 * Whether a pattern names a file. `*` and `?` are wildcards; a pattern with a slash is for whole paths, another one for file
 * names, with or without their suffix.
 */
export function matchesFile(file: string, pattern: string): boolean {
  if (pattern.includes('/')) return matchesGlob(file, pattern);
  const name = file.slice(file.lastIndexOf('/') + 1);
  return matchesGlob(name, pattern) || matchesGlob(name.replace(/\..*$/u, ''), pattern);
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
