// Parses a valid command line.

import type { Options } from '../../src/cli/options.js';
import { parseArguments } from '../../src/cli/parse.js';

/** Returns the parsed options. Throws if they are refused. */
export function accepted(argv: readonly string[]): { options: Options; warnings: readonly string[] } {
  const parsed = parseArguments(argv);
  if (!parsed.ok) throw new Error(parsed.error);
  return parsed;
}
