// The options in the form of command_line_options in /server_info.

import { camel } from './option-row.js';
import { OPTION_ROWS, type Options } from './options.js';

/**
 * Returns all members of command_line_options, including defaults.
 * @param concurrency the actual number of workers
 */
export function commandLineOptions(options: Options, concurrency: number): { readonly [name: string]: unknown } {
  const values = options as unknown as Readonly<Record<string, never>>;
  const members: Record<string, unknown> = {};
  for (const [name, row] of OPTION_ROWS) {
    if (row.info === undefined) continue;
    const value = values[camel(name)]!;
    members[row.info] = row.render ? row.render(value) : value;
  }
  members['concurrency'] = concurrency;
  members['socket_mode'] = socketMode(options);
  members['allow_unknown_static_fields'] = options.allowUnknownStaticFields || options.allowUnknownFields;
  return members;
}

/** Returns the mode in decimal, since JSON has no octal numbers; 0 for abstract sockets, which have no permissions. */
function socketMode(options: Options): number {
  return options.socketPath.startsWith('@') ? 0 : Number.parseInt(options.socketMode, 8);
}
