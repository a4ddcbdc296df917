// What all documents say of an option, in plain words.

import type { OptionRow } from '../../src/cli/option-row.js';
import { OPEN_REMARK } from './reference.js';

/** All sentences of a row: help, details, and whether its effect is yet to come. */
export function fullText(row: OptionRow): string {
  const remark = row.effect === 'open' ? OPEN_REMARK : undefined;
  return [row.help, row.details, remark].filter((text) => text !== undefined).join(' ');
}

/** The first sentence of its help, without the dot: for a line in a menu. */
export function shortText(row: OptionRow): string {
  return row.help.replace(/(?<=[^.])\. .*$/s, '').replace(/\.$/, '');
}
