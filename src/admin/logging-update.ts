// Converts a request to /logging into level rules, or explains why it is invalid. No I/O.

import { type Component, isComponent } from '../log/components.js';
import { isPattern, type LevelOverride, type LevelRules, namesOfFile } from '../log/level-rules.js';
import { type Level, parseLevel } from '../log/levels.js';
import type { LoggerFile } from '../log/logger.js';

const MAX_PATHS = 1000;
/**
 * Limit of all patterns with wildcards together: each is matched against every logger on every thread, which delays traffic.
 */
const MAX_PATTERN_CHARACTERS = 2000;

/** The existing loggers. */
export interface KnownLoggers {
  /** Loggers are named by file instead of by component. */
  readonly isFineGrain: boolean;
  readonly files: readonly LoggerFile[];
}

/**
 * Returns the rules after an update; undefined if the request contains none. Loggers that it does not name get their default
 * level, regardless of earlier updates. `parameters`: in the order of the request; empty values are those left out of a
 * form.
 * @throws Error with the text for the user; nothing must change then
 */
export function updatedRules(
  parameters: Iterable<readonly [string, string]>,
  current: LevelRules,
  known: KnownLoggers,
): LevelRules | undefined {
  const given = [...parameters].filter(([, value]) => value !== '');
  if (given.length === 0) return undefined;
  if (given.length > 1) throw new Error('invalid number of parameters');
  const [name, value] = given[0]!;
  if (name === 'level') return { level: levelOf(value), components: [], overrides: [] };
  return { ...current, overrides: overridesOf(name, value, known) };
}

function overridesOf(name: string, value: string, known: KnownLoggers): LevelOverride[] {
  if (name === 'group') {
    const [group, level] = pairOf(value, 'empty logger name or empty logger level in group');
    return [{ component: componentOf(group), level }];
  }
  if (name !== 'paths') return overridesOfPairs([[name, levelOf(value)]], known);
  const items = value.split(',').filter((item) => item.trim() !== '');
  if (items.length > MAX_PATHS) throw new Error(`more than ${MAX_PATHS} paths`);
  return overridesOfPairs(
    items.map((item) => pairOf(item, 'empty logger name or empty logger level')),
    known,
  );
}

/** Parses `name:level`. */
function pairOf(item: string, complaint: string): [string, Level] {
  const colon = item.indexOf(':');
  const name = item.slice(0, Math.max(0, colon)).trim();
  const level = item.slice(colon + 1).trim();
  if (name === '' || level === '') throw new Error(complaint);
  return [name, levelOf(level)];
}

function overridesOfPairs(pairs: readonly [name: string, level: Level][], known: KnownLoggers): LevelOverride[] {
  if (!known.isFineGrain) return pairs.map(([name, level]) => ({ component: componentOf(name), level }));
  const names = new Set(known.files.flatMap(({ file }) => namesOfFile(file)));
  let characters = 0;
  for (const [name] of pairs) {
    // A name without wildcards must be an existing file; a pattern may match files that are loaded later.
    if (isPattern(name)) characters += name.length;
    else if (!names.has(name)) throw new Error('unknown logger name');
  }
  if (characters > MAX_PATTERN_CHARACTERS)
    throw new Error(`patterns with wildcards of more than ${MAX_PATTERN_CHARACTERS} characters together`);
  return pairs.map(([pattern, level]) => ({ pattern, level }));
}

function componentOf(name: string): Component {
  if (!isComponent(name)) throw new Error('unknown logger name');
  return name;
}

function levelOf(name: string): Level {
  const level = parseLevel(name);
  if (level === undefined) throw new Error('unknown logger level');
  return level;
}
