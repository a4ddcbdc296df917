// Writes completions/baton.bash.

import type { Completion } from '../../src/cli/option-row.js';
import { OPTION_ROWS } from '../../src/cli/options.js';
import { COMPONENTS } from '../../src/log/components.js';
import { LEVEL_NAMES } from '../../src/log/levels.js';

export function bashCompletion(): string {
  const repeatable = OPTION_ROWS.filter(([, row]) => row.kind === 'list').map(([name]) => `--${name}`);
  const names = OPTION_ROWS.map(([name]) => `--${name}`);
  return `# Completion of baton's options in bash. Written by scripts/document-options.ts from the option table: do not edit.

_baton() {
  local word=\${COMP_WORDS[COMP_CWORD]} option='' value=''
  # The word as in the line: bash splits words at '=' and ':', and replaces only the last piece.
  local whole=\${COMP_LINE:0:COMP_POINT}
  whole=\${whole##*[[:space:]]}
  COMPREPLY=()
  case $whole in
    --*=*) option=\${whole%%=*} value=\${whole#*=} ;;
    -[a-z]=*) option=\${whole%%=*} value=\${whole#*=} ;;
    *)
      # The word before the whole one; the pieces of the whole one end when its length is reached.
      local index=$COMP_CWORD length=\${#word}
      while ((length < \${#whole} && index > 0)); do
        index=$((index - 1))
        length=$((length + \${#COMP_WORDS[index]}))
      done
      ((index > 0)) && option=\${COMP_WORDS[index - 1]}
      value=$whole
      ;;
  esac
  case $option in
${cases()}
    ${withValue().join(' | ')})
      # The value cannot be completed.
      return ;;
  esac
  [[ $whole == --*=* ]] && return
  if [[ -z $whole || $whole == -* ]]; then _baton_options "$whole"; else _baton_files "$whole"; fi
}

# All options except those already in the line: most may be given once.
_baton_options() {
  local name
  for name in ${names.join(' ')}; do
    [[ $name == "$1"* ]] || continue
    case " \${COMP_WORDS[*]:1:COMP_CWORD-1} " in
      *" $name "*) [[ ${repeatable.map((name) => `$name == ${name}`).join(' || ')} ]] || continue ;;
    esac
    COMPREPLY+=("$name")
  done
}

_baton_words() {
  local value=$1 each
  shift
  for each; do [[ $each == "$value"* ]] && COMPREPLY+=("$each"); done
  _baton_cut "$value"
}

_baton_files() {
  local file
  compopt -o filenames 2>/dev/null
  while IFS= read -r file; do COMPREPLY+=("$file"); done < <(compgen -f -- "$1")
  _baton_cut "$1"
}

# <component>:<level>,<component>:<level>
_baton_component_levels() {
  local head='' item=$1 each
  [[ $item == *,* ]] && head=\${item%,*}, item=\${item##*,}
  if [[ $item == *:* ]]; then
    for each in ${LEVEL_NAMES.join(' ')}; do
      [[ $each == "\${item#*:}"* ]] && COMPREPLY+=("$head\${item%%:*}:$each")
    done
  else
    compopt -o nospace 2>/dev/null
    for each in ${COMPONENTS.join(' ')}; do
      [[ $each == "$item"* && ,$head != *,"$each":* ]] && COMPREPLY+=("$head$each:")
    done
  fi
  _baton_cut "$1"
}

# Removes the part before the last piece of the value, which bash replaces, from the replies.
_baton_cut() {
  local kept='' index
  [[ $COMP_WORDBREAKS == *:* && $1 == *:* ]] && kept=\${1%:*}:
  for index in "\${!COMPREPLY[@]}"; do
    COMPREPLY[index]=\${COMPREPLY[index]#"$kept"}
    [[ $COMP_WORDBREAKS != *=* && $whole == -*=* ]] && COMPREPLY[index]=$option=\${COMPREPLY[index]}
  done
}

complete -F _baton baton
`;
}

function cases(): string {
  return OPTION_ROWS.flatMap(([name, row]) => {
    if (row.completes === undefined) return [];
    return [`    ${names(name, row.alias).join(' | ')})\n      ${call(row.completes)}\n      return ;;`];
  }).join('\n');
}

function call(completes: Completion): string {
  if (completes === 'path') return '_baton_files "$value"';
  if (completes === 'component-levels') return '_baton_component_levels "$value"';
  return `_baton_words "$value" ${completes.join(' ')}`;
}

/** Options whose values cannot be completed. */
function withValue(): string[] {
  return OPTION_ROWS.flatMap(([name, row]) =>
    row.kind === 'flag' || row.completes !== undefined ? [] : names(name, row.alias),
  );
}

function names(name: string, alias: string | undefined): string[] {
  return alias === undefined ? [`--${name}`] : [`-${alias}`, `--${name}`];
}
