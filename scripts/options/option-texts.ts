// The texts of an option that all documents share, without markup.

import type { OptionRow } from '../../src/cli/option-row.js';

/** Returns all sentences of a row: help and details. */
export function fullText(row: OptionRow): string {
  return [row.help, row.details].filter((text) => text !== undefined).join(' ');
}

/** Returns the first sentence of the help text, without the full stop, for completion menus. */
export function shortText(row: OptionRow): string {
  return row.help.replace(/(?<=[^.])\. .*$/s, '').replace(/\.$/, '');
}
