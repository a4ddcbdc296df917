// Writes docs/command-line.md.

import { type OptionRow, shownDefault } from '../../src/cli/option-row.js';
import { OPTION_ROWS } from '../../src/cli/options.js';
import { COMPONENTS } from '../../src/log/components.js';
import {
  JSON_LOG,
  JSON_LOG_MEMBERS,
  JSON_LOG_OPTION,
  OWN_JSON_LOG,
  OWN_JSON_LOG_FORMAT,
  PRETTY_OWN,
} from './json-log.js';
import { LOG_FLAGS } from './log-flags.js';
import { fullText } from './option-texts.js';
import { DESCRIPTION, ENVIRONMENT, type Entry, EXAMPLES, EXIT_STATUS, SIGNALS } from './reference.js';

export function commandLineDocument(): string {
  return `<!-- Written by scripts/document-options.ts from the option table: do not edit. -->

# Command line

${DESCRIPTION.map(prose).join('\n\n')}

This page is also a man page, [baton.1](baton.1): \`man -l docs/baton.1\`. \`npm install -g .\` installs it.

| option | default | meaning |
|---|---|---|
${OPTION_ROWS.map(([name, row]) => optionRow(name, row)).join('\n')}

## Examples

${EXAMPLES.map(([purpose, command]) => `${prose(purpose)}\n\n\`\`\`sh\n${command}\n\`\`\``).join('\n\n')}

## Log format

The flags of \`--log-format\`:

| flag | prints |
|---|---|
${LOG_FLAGS.map(([flags, meaning]) => `| ${flags.map(code).join(', ')} | ${prose(meaning)} |`).join('\n')}

## Log in JSON form

${JSON_LOG.map(prose).join('\n\n')}

\`\`\`sh
baton -c front-proxy.yaml ${JSON_LOG_OPTION}
\`\`\`

\`\`\`json
{"level":30,"time":1795920399905,"pid":6021,"name":"main","caller":"src/server/server.ts:205","msg":"starting main dispatch loop"}
{"level":40,"time":1795920400347,"pid":6021,"name":"main","caller":"src/server/serve.ts:187","msg":"caught SIGTERM"}
\`\`\`

| member | holds |
|---|---|
${JSON_LOG_MEMBERS.map(([name, meaning]) => `| ${code(name)} | ${prose(meaning)} |`).join('\n')}

[pino-pretty](https://github.com/pinojs/pino-pretty) makes them readable. The log goes to standard error unless \`--log-path\` is given:

\`\`\`sh
baton -c front-proxy.yaml ${JSON_LOG_OPTION} 2>&1 | npx pino-pretty
\`\`\`

\`\`\`text
[02:46:39.905] INFO (main/6021) <src/server/server.ts:205>: starting main dispatch loop
[02:46:40.347] WARN (main/6021) <src/server/serve.ts:187>: caught SIGTERM
\`\`\`

${OWN_JSON_LOG.map(prose).join('\n\n')}

\`\`\`yaml
${OWN_JSON_LOG_FORMAT}
\`\`\`

\`\`\`json
{"level":"info","time":"2026-11-29T02:41:29.284+00:00","name":"main","msg":"shutting down server instance"}
\`\`\`

pino-pretty shows such lines too, if its options define the level names that it does not know:

\`\`\`sh
${PRETTY_OWN}
\`\`\`

In Envoy, an empty \`json_format\` results in lines of \`{}\`, and the order of members is not kept.

## Components

The loggers of \`--component-log-level\`: ${COMPONENTS.map(code).join(', ')}.

## Signals

${entries(SIGNALS)}

## Exit status

${entries(EXIT_STATUS)}

## Environment

${entries(ENVIRONMENT)}

## Completion in shells

[completions/](../completions) has a file for each shell. It completes options, their fixed values, the components of
\`--component-log-level\`, and file names. Copy it to where the shell looks for it:

| shell | file | for one user | for all |
|---|---|---|---|
| bash | [baton.bash](../completions/baton.bash) | \`~/.local/share/bash-completion/completions/baton\` | \`/usr/share/bash-completion/completions/baton\` |
| zsh | [_baton](../completions/_baton) | a directory of \`$fpath\` | \`/usr/local/share/zsh/site-functions/_baton\` |
| fish | [baton.fish](../completions/baton.fish) | \`~/.config/fish/completions/baton.fish\` | \`/usr/share/fish/vendor_completions.d/baton.fish\` |

For bash, \`source completions/baton.bash\` in \`~/.bashrc\` works too.
`;
}

function optionRow(name: string, row: OptionRow): string {
  const value = row.value === undefined ? '' : ` <${row.value}>`;
  const names = [...(row.alias === undefined ? [] : [`-${row.alias}`]), `--${name}`];
  const shown = shownDefault(row);
  return `| ${names.map((each) => code(each + value)).join('<br>')} | ${shown === undefined ? '' : code(shown)} | ${prose(fullText(row))} |`;
}

function entries(list: readonly Entry[]): string {
  return list.map(([name, meaning]) => `- ${name.split(', ').map(code).join(', ')}: ${prose(meaning)}`).join('\n');
}

function code(text: string): string {
  return `\`${text.replaceAll('|', '\\|')}\``;
}

/** Escapes text for Markdown, with option names as code. */
function prose(text: string): string {
  return text
    .replace(/[\\<>|*_[\]]/g, (sign) => `\\${sign}`)
    .replace(/(?<![\w-])--[a-z][a-z0-9]*(?:-[a-z0-9]+)*/g, (name) => `\`${name}\``);
}
