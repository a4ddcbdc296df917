// The list of this build's extensions, as the log shows it at start.

import { EXTENSIONS } from '../extensions/index.js';

/** `<category>: <name>, <name>`, a line for each category, both sorted. */
export function extensionLines(): string[] {
  const names = new Map<string, string[]>();
  for (const { category, name } of EXTENSIONS) names.set(category, [...(names.get(category) ?? []), name]);
  return [...names].map(([category, list]) => `${category}: ${list.sort().join(', ')}`).sort();
}
