// Command lines that Baton answers and leaves: help, version, and mistakes, each with its stream and exit status.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { tempDir } from '../harness/index.js';
import { runBaton } from './run.js';

const directory = tempDir(t);
const notAListener = join(directory, 'not-a-listener.yaml');
writeFileSync(notAListener, 'static_resources:\n  listeners:\n  - nmae: typo\n');

t.test('--version goes to stdout in five parts', async (t) => {
  const { code, stdout, stderr } = await runBaton(t, { args: ['--version'] });
  t.equal(code, 0);
  t.match(stdout, /^\n\S+ {2}version: [^/\n]+\/\d+\.\d+\.\d+(-dev)?\/(Clean|Modified)\/(RELEASE|DEBUG)\/\S+\n\n$/);
  t.equal(stderr, '');
});

for (const option of ['--help', '-h']) {
  t.test(`${option} explains every option on stdout`, async (t) => {
    const { code, stdout, stderr } = await runBaton(t, { args: [option] });
    t.equal(code, 0);
    for (const each of ['--config-path', '--config-yaml', '--concurrency', '--mode', '--log-level', '--log-path']) {
      t.match(stdout, each);
    }
    t.equal(stderr, '');
  });
}

const mistakes: [what: string, args: string[], expected: RegExp | string][] = [
  ['an option that does not exist', ['--concurency', '1'], /unknown option '--concurency'/],
  ['an unknown mode', ['--mode', 'dance'], /unknown mode 'dance'/],
  ['an unknown log level', ['-l', 'loud'], /invalid log level specified 'loud'/],
  [
    'a component without a level',
    ['--component-log-level', 'http'],
    /component log level not correctly specified 'http'/,
  ],
  ['an unknown component', ['--component-log-level', 'htpt:debug'], /invalid component specified 'htpt'/],
  ['a word where a number belongs', ['--drain-time-s', 'soon'], /--drain-time-s.*'soon'/],
  ['an option given twice', ['--mode', 'serve', '--mode', 'serve'], /--mode.*twice/],
  ['an option without its value', ['--config-path'], /--config-path needs a value/],
];

for (const [what, args, expected] of mistakes) {
  t.test(`${what} is an error with exit status 1`, async (t) => {
    const { code, stdout, stderr } = await runBaton(t, { args });
    t.equal(code, 1);
    t.match(stderr, expected);
    t.equal(stdout, '');
    t.notMatch(stderr, STACK);
  });
}

t.test('a log file that cannot be opened is an error with exit status 1', async (t) => {
  const path = join(directory, 'no', 'such', 'directory', 'log');
  const { code, stderr } = await runBaton(t, { config: {}, args: ['--log-path', path] });
  t.equal(code, 1);
  t.match(stderr, `Failed to open log-file '${path}'`);
  t.notMatch(stderr, STACK);
});

for (const mode of ['serve', 'validate']) {
  t.test(`--mode ${mode}: no configuration at all`, async (t) => {
    const { code, stdout, stderr } = await runBaton(t, { args: ['--mode', mode] });
    t.equal(code, 1);
    t.match(stderr, /\[critical\].*error initializing config/);
    t.match(stderr, /^At least one of --config-path or --config-yaml/m);
    t.equal(stdout, '');
  });

  t.test(`--mode ${mode}: a configuration file that does not exist`, async (t) => {
    const { code, stdout, stderr } = await runBaton(t, { args: ['--mode', mode, '-c', '/no/such/file.yaml'] });
    t.equal(code, 1);
    t.match(stderr, /\[critical\].*error initializing config.*'\/no\/such\/file\.yaml'/);
    t.match(stderr, /no such file/);
    t.equal(stdout, '');
    t.notMatch(stderr, STACK);
  });

  t.test(`--mode ${mode}: a mistake is told with file, line and column`, async (t) => {
    const { code, stdout, stderr } = await runBaton(t, { args: ['--mode', mode, '-c', notAListener] });
    t.equal(code, 1);
    t.match(stderr, `${notAListener}:3:5`);
    t.match(stderr, /nmae.*did you mean.*name/i);
    t.equal(stdout, '');
    t.notMatch(stderr, STACK);
  });
}

const STACK = /^\s+at .*:\d+:\d+/m;
