// Writes docs/baton.1, the man page, in the macros of man(7).

import { type OptionRow, shownDefault } from '../../src/cli/option-row.js';
import { OPTION_ROWS } from '../../src/cli/options.js';
import { releaseNumber } from '../../src/common/package/version.js';
import { COMPONENTS } from '../../src/log/components.js';
import { JSON_LOG, JSON_LOG_MEMBERS, JSON_LOG_OPTION, OWN_JSON_LOG, OWN_JSON_LOG_FORMAT } from './json-log.js';
import { LOG_FLAGS } from './log-flags.js';
import { fullText } from './option-texts.js';
import { DESCRIPTION, ENVIRONMENT, type Entry, EXAMPLES, EXIT_STATUS, FILES, SIGNALS, SUMMARY } from './reference.js';

/** Date of the last change of the texts. */
const DATE = '2026-11-29';
/** Excludes bold marks. */
const WIDTH = 66;

export function manPage(): string {
  const sections: readonly (readonly [title: string, body: string])[] = [
    ['NAME', `baton \\- ${plain(SUMMARY)}`],
    ['SYNOPSIS', synopsis()],
    ['DESCRIPTION', DESCRIPTION.map(prose).join('\n.PP\n')],
    ['OPTIONS', OPTION_ROWS.map(([name, row]) => option(name, row)).join('\n')],
    ['LOG FORMAT', `The flags of ${prose('--log-format')}:\n${LOG_FLAGS.map(logFlag).join('\n')}`],
    ['LOG IN JSON FORM', jsonLog()],
    ['COMPONENTS', `The loggers of ${prose('--component-log-level')}:\n${prose(`${COMPONENTS.join(', ')}.`)}`],
    ['SIGNALS', entries(SIGNALS)],
    ['EXIT STATUS', entries(EXIT_STATUS)],
    ['ENVIRONMENT', entries(ENVIRONMENT)],
    ['FILES', entries(FILES)],
    ['EXAMPLES', EXAMPLES.map(([purpose, command]) => example(purpose, command)).join('\n.PP\n')],
  ];
  return [
    '.\\" Written by scripts/document-options.ts from the option table: do not edit.',
    `.TH BATON 1 "${DATE}" "baton ${releaseNumber()}" "User Commands"`,
    ...sections.map(([title, body]) => `.SH "${title}"\n${body}`),
    '',
  ].join('\n');
}

function synopsis(): string {
  return [
    '.B baton\n[\\fIoption\\fR ...]',
    '.B baton \\-\\-mode validate \\-c\n.I path',
    '.B baton\n.BR \\-\\-version \\ |\\  \\-\\-hot\\-restart\\-version \\ |\\  \\-\\-schema \\ |\\  \\-\\-help',
  ].join('\n.br\n');
}

function option(name: string, row: OptionRow): string {
  const value = row.value === undefined ? '' : ` \\fI${plain(row.value)}\\fR`;
  const names = [...(row.alias === undefined ? [] : [`-${row.alias}`]), `--${name}`];
  const shown = shownDefault(row);
  const text = prose(fullText(row)) + (shown === undefined ? '' : `\nDefault:\n${plain(shown)}`);
  return `.TP\n${names.map((each) => `\\fB${plain(each)}\\fR${value}`).join(', ')}\n${text}`;
}

function logFlag([flags, meaning]: (typeof LOG_FLAGS)[number]): string {
  return `.TP 9\n\\fB${flags.map(plain).join('\\fR, \\fB')}\\fR\n${prose(meaning)}`;
}

function jsonLog(): string {
  const [about, records] = JSON_LOG;
  const command = `baton -c front-proxy.yaml \\\n  ${JSON_LOG_OPTION} \\\n  2>&1 | npx pino-pretty`;
  return [
    prose(about!),
    `.PP\n${prose(records!)}\n${verbatim(command)}\n${entries(JSON_LOG_MEMBERS)}`,
    OWN_JSON_LOG.map((text) => `.PP\n${prose(text)}`).join('\n'),
    verbatim(OWN_JSON_LOG_FORMAT),
  ].join('\n');
}

function entries(list: readonly Entry[]): string {
  return list.map(([name, meaning]) => `.TP\n\\fB${plain(name)}\\fR\n${prose(meaning)}`).join('\n');
}

function example(purpose: string, command: string): string {
  return `${plain(purpose)}\n${verbatim(command)}`;
}

function verbatim(text: string): string {
  return `.PP\n.in +4n\n.nf\n${text.split('\n').map(plain).join('\n')}\n.fi\n.in`;
}

/** Returns text with option names in bold. */
function prose(text: string): string {
  return fill(plain(text)).replace(/(?<![\w-])\\-\\-[a-z][a-z0-9]*(?:\\-[a-z0-9]+)*/g, (name) => `\\fB${name}\\fR`);
}

/** Puts each sentence on a line and wraps long lines, as mandoc recommends. Escapes lines that begin like a macro. */
function fill(text: string): string {
  const lines: string[] = [];
  for (const sentence of text.split(/(?<=[.:;]) (?=[A-Z])/)) {
    let line = '';
    for (const word of sentence.split(' ')) {
      if (line !== '' && line.length + word.length >= WIDTH) {
        lines.push(line);
        line = '';
      }
      line += line === '' ? word.replace(/^(?=[.'])/, '\\&') : ` ${word}`;
    }
    lines.push(line);
  }
  return lines.join('\n');
}

/** Escapes text for troff. Dashes become minus signs, so that commands can be copied. */
function plain(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll('^', '\\(ha')
    .replaceAll('~', '\\(ti')
    .replaceAll('`', '\\(ga')
    .replaceAll("'", '\\(aq')
    .replaceAll('…', '...');
}
