// The list of this build's extensions, logged at start.

import { EXTENSIONS } from '../extensions/index.js';

/** Returns a line `<category>: <name>, <name>` for each category; categories and names are sorted. */
export function extensionLines(): string[] {
  const names = new Map<string, string[]>();
  for (const { category, name } of EXTENSIONS) names.set(category, [...(names.get(category) ?? []), name]);
  return [...names].map(([category, list]) => `${category}: ${list.sort().join(', ')}`).sort();
}
