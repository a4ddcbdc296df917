// Writes completions/baton.fish.

import type { Completion, OptionRow } from '../../src/cli/option-row.js';
import { OPTION_ROWS } from '../../src/cli/options.js';
import { COMPONENTS } from '../../src/log/components.js';
import { LEVEL_NAMES } from '../../src/log/levels.js';
import { shortText } from './option-texts.js';

export function fishCompletion(): string {
  return `# Completion of baton's options in fish. Written by scripts/document-options.ts from the option table: do not edit.

# <component>:<level>,<component>:<level>
function __baton_component_levels
    set -l value (string replace -r -- '^--component-log-level=' '' (commandline -ct))
    set -l head (string match -r -- '^.*,' $value); or set head ''
    set -l item (string replace -r -- '^.*,' '' $value)
    if string match -q '*:*' -- $item
        set -l component (string replace -r ':.*$' '' -- $item)
        for level in ${LEVEL_NAMES.join(' ')}
            echo $head$component:$level
        end
    else
        for component in ${COMPONENTS.join(' ')}
            echo $head$component:
        end
    end
end

${OPTION_ROWS.map(([name, row]) => completion(name, row)).join('\n')}
`;
}

function completion(name: string, row: OptionRow): string {
  const short = row.alias === undefined ? '' : ` -s ${row.alias}`;
  return `complete -c baton${short} -l ${name}${once(name, row)}${argument(row)} -d ${quote(shortText(row))}`;
}

/** Flags that the line contains already are not offered; options with values are always known, for their values. */
function once(name: string, row: OptionRow): string {
  return row.kind === 'flag' ? ` -n '__fish_not_contain_opt ${row.alias ? `-s ${row.alias} ` : ''}${name}'` : '';
}

function argument(row: OptionRow): string {
  return row.kind === 'flag' ? '' : values(row.completes);
}

function values(completes: Completion | undefined): string {
  if (completes === undefined) return ' -x';
  if (completes === 'path') return ' -r -F';
  if (completes === 'component-levels') return " -x -a '(__baton_component_levels)'";
  return ` -x -a '${completes.join(' ')}'`;
}

function quote(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
