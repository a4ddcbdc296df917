// The options as /server_info shows them: command_line_options.

import { camel } from './option-row.js';
import { OPTION_ROWS, type Options } from './options.js';

/**
 * Every member of command_line_options, defaults included.
 * @param concurrency the number of workers that really run
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

/** Decimal, as a number has no octal form in JSON; 0 for abstract sockets, which have no permissions. */
function socketMode(options: Options): number {
  return options.socketPath.startsWith('@') ? 0 : Number.parseInt(options.socketMode, 8);
}
