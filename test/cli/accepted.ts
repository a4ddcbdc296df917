// A command line that is right.

import type { Options } from '../../src/cli/options.js';
import { parseArguments } from '../../src/cli/parse.js';

/** What it says. Throws when it is refused. */
export function accepted(argv: readonly string[]): { options: Options; warnings: readonly string[] } {
  const parsed = parseArguments(argv);
  if (!parsed.ok) throw new Error(parsed.error);
  return parsed;
}
