// Writes completions/_baton.

import type { Completion, OptionRow } from '../../src/cli/option-row.js';
import { OPTION_ROWS } from '../../src/cli/options.js';
import { COMPONENTS } from '../../src/log/components.js';
import { LEVEL_NAMES } from '../../src/log/levels.js';
import { shortText } from './option-texts.js';

export function zshCompletion(): string {
  return `#compdef baton
# Completion of baton's options in zsh. Written by scripts/document-options.ts from the option table: do not edit.

# <component>:<level>,<component>:<level>
_baton_component_levels() {
  _values -s , -S : component \\
${COMPONENTS.map((name) => `    '${name}:level:(${LEVEL_NAMES.join(' ')})'`).join(' \\\n')}
}

_arguments \\
  '1:configuration file:_files' \\
${OPTION_ROWS.map(([name, row]) => `  ${specification(name, row)}`).join(' \\\n')}
`;
}

function specification(name: string, row: OptionRow): string {
  const text = `[${shortText(row).replace(/[[\]:\\]/g, '\\$&')}]`;
  const value = row.kind === 'flag' ? '' : `:${row.value!.replaceAll(':', '\\:')}:${action(row.completes)}`;
  const sign = row.kind === 'flag' ? '' : '=';
  if (row.kind === 'list') return quote(`*--${name}${sign}${text}${value}`);
  if (row.alias === undefined) return quote(`--${name}${sign}${text}${value}`);
  return `${quote(`(-${row.alias} --${name})`)}{-${row.alias}${sign},--${name}${sign}}${quote(text + value)}`;
}

function action(completes: Completion | undefined): string {
  if (completes === undefined) return '';
  if (completes === 'path') return '_files';
  if (completes === 'component-levels') return '_baton_component_levels';
  return `(${completes.join(' ')})`;
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
