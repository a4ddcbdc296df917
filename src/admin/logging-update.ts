// What a request to /logging says about levels: the rules that it makes, or why it makes none. No I/O.

import { type Component, isComponent } from '../log/components.js';
import { isPattern, type LevelOverride, type LevelRules, namesOfFile } from '../log/level-rules.js';
import { type Level, parseLevel } from '../log/levels.js';
import type { LoggerFile } from '../log/logger.js';

const MAX_PATHS = 1000;
/** Of all patterns with wildcards together: each is matched with every logger, on every thread, which holds up traffic. */
const MAX_PATTERN_CHARACTERS = 2000;

/** The loggers that there are. */
export interface KnownLoggers {
  /** Loggers go by file instead of component. */
  readonly isFineGrain: boolean;
  readonly files: readonly LoggerFile[];
}

/**
 * The rules after an update; undefined when the request asks for none. Whatever it does not name has its default level,
 * whatever an earlier update said. `parameters` in the order of the request; those with empty values are those that a form
 * has left out.
 * @throws Error with the text for the user; nothing is to change then
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

/** `name:level` */
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
    // A name without wildcards is a file that there is; a pattern may wait for files that are loaded later.
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
