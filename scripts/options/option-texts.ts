// What all documents say of an option, in plain words.

import type { OptionRow } from '../../src/cli/option-row.js';

/** All sentences of a row: help and details. */
export function fullText(row: OptionRow): string {
  return [row.help, row.details].filter((text) => text !== undefined).join(' ');
}

/** The first sentence of its help, without the dot: for a line in a menu. */
export function shortText(row: OptionRow): string {
  return row.help.replace(/(?<=[^.])\. .*$/s, '').replace(/\.$/, '');
}
