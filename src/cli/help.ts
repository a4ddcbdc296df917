// The text of --help, generated from the option table.

import { existsSync } from 'node:fs';
import { packagePath } from '../common/package/package-root.js';
import { type OptionRow, shownDefault } from './option-row.js';
import { OPTION_ROWS } from './options.js';

const WIDTH = 100;
const INDENT = 34;

/** Returns the usage line and all options with values, help texts and defaults. */
export function helpText(): string {
  const rows = OPTION_ROWS.map(([name, row]) => optionText(name, row)).join('\n');
  return `Usage: baton [options] [file]\n\nA proxy for Envoy-style configurations.\n\nOptions:\n${rows}\n`;
}

/** Printed after an error about an option. */
export const USAGE_HINT = "Try 'baton --help' for all options.";

/** Returns the hints for a start without a configuration. */
export function firstSteps(): string {
  const example = packagePath('examples/quickstart.yaml');
  const file = /[^\w./-]/.test(example) ? `'${example.replaceAll("'", "'\\''")}'` : example;
  return [
    'Give a configuration:  baton FILE',
    ...(existsSync(example) ? [`An example:            baton ${file}`] : []),
    'All options:           baton --help\n',
  ].join('\n');
}

function optionText(name: string, row: OptionRow): string {
  const short = row.alias ? `-${row.alias}, ` : '    ';
  const head = `  ${short}--${name}${row.value ? ` <${row.value}>` : ''}`;
  const shown = shownDefault(row);
  const lines = wrap(shown === undefined ? row.help : `${row.help} Default: ${shown}.`);
  const first = head.length < INDENT - 1 ? head.padEnd(INDENT) + lines.shift() : head;
  return [first, ...lines.map((line) => ' '.repeat(INDENT) + line)].join('\n');
}

function wrap(text: string): string[] {
  const lines: string[] = [''];
  for (const word of text.split(' ')) {
    const line = lines.at(-1)!;
    if (line !== '' && INDENT + line.length + 1 + word.length > WIDTH) lines.push(word);
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`;
  }
  return lines;
}
