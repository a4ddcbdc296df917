// The documents and shell completions match the option table.

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import t from 'tap';
import { optionDocuments } from '../../scripts/document-options.js';
import { LOG_FLAGS } from '../../scripts/options/log-flags.js';
import { OPTION_ROWS } from '../../src/cli/options.js';
import { packagePath } from '../../src/common/package/package-root.js';
import { compileLogFormat } from '../../src/log/log-format.js';

for (const [path, text] of optionDocuments()) {
  t.test(`${path} is up to date, and names every option`, async (t) => {
    const same = readFileSync(packagePath(path), 'utf8') === text;
    t.ok(same, 'npm run build && node dist/scripts/document-options.js brings it up to date');
    const plain = text.replaceAll('\\-', '-');
    for (const [name] of OPTION_ROWS) t.match(plain, new RegExp(`(--|-l )${name}\\b`), name);
  });
}

t.test('every documented flag of --log-format prints something', async (t) => {
  const source = { file: 'a.js', line: 1, function: 'run' };
  const record = { epochMs: 0, level: 'info' as const, logger: 'main', message: 'text', source };
  for (const flag of LOG_FLAGS.flatMap(([flags]) => flags)) {
    const printed = compileLogFormat(flag, { version: '1' }).format(record);
    if (flag !== '%%') t.not(printed, `${flag}\n`, flag);
  }
});

t.test('mandoc reports no problem in the man page', { skip: !has('mandoc', '-h') }, async (t) => {
  const { stdout } = spawnSync('mandoc', ['-T', 'lint', packagePath('docs/baton.1')], { encoding: 'utf8' });
  t.equal(stdout, '');
  const { stdout: shown } = spawnSync('mandoc', ['-T', 'ascii', packagePath('docs/baton.1')], { encoding: 'utf8' });
  t.match(shown.replace(/.\x08/g, ''), 'baton --mode validate -c path');
});

/** A command line up to the cursor, and the completions of its last word. */
const COMPLETIONS: readonly (readonly [line: string, bash: string[], fish: string[]])[] = [
  [
    'baton --disable-',
    ['--disable-extensions', '--disable-hot-restart'],
    ['--disable-extensions', '--disable-hot-restart'],
  ],
  ['baton --mode v', ['validate'], ['validate']],
  ['baton --mode=v', ['validate'], ['--mode=validate']],
  ['baton -l wa', ['warning'], ['warning']],
  ['baton --drain-strategy g', ['gradual'], ['gradual']],
  ['baton --component-log-level rou', ['router:'], ['router:']],
  ['baton --component-log-level http:debug,router:cr', ['critical'], ['http:debug,router:critical']],
  ['baton --component-log-level=http:debug,rou', ['debug,router:'], ['--component-log-level=http:debug,router:']],
  ['baton -c quick', ['quickstart.yaml'], ['quickstart.yaml']],
  ['baton quick', ['quickstart.yaml'], ['quickstart.yaml']],
  ['baton --log-path=quick', ['quickstart.yaml'], ['--log-path=quickstart.yaml']],
  ['baton --service-node q', [], []],
  ['baton --version --versi', [], []],
  ['baton --stats-tag a:b --stats-t', ['--stats-tag'], ['--stats-tag']],
];

t.test('bash completes options, their values, components and files', async (t) => {
  for (const [line, expected] of COMPLETIONS) t.same(bashReplies(line).sort(), expected, line);
});

t.test('fish completes options, their values, components and files', { skip: !has('fish') }, async (t) => {
  const source = `source ${packagePath('completions/baton.fish')}`;
  for (const [line, , expected] of COMPLETIONS) {
    const { stdout } = inExamples('fish', ['--no-config', '-c', `${source}; complete -C '${line}'`]);
    const replies = stdout.split('\n').filter((reply) => reply !== '');
    t.same(
      replies.map((reply) => reply.replace(/\t.*$/, '')),
      expected,
      line,
    );
  }
});

t.test('zsh can parse its completion file', { skip: !has('zsh') }, async (t) => {
  const { status, stderr } = spawnSync('zsh', ['-n', packagePath('completions/_baton')], { encoding: 'utf8' });
  t.equal(status, 0, stderr);
});

/** Returns bash's completions, in the order of the file. Words are split like readline does, also at '=' and ':'. */
function bashReplies(line: string): string[] {
  const words = line.match(/[=:]+|[^\s=:]+/g)!;
  if (/[\s=:]$/.test(line)) words.push('');
  const setUp = `COMP_LINE='${line}' COMP_POINT=${line.length} COMP_CWORD=${words.length - 1} COMP_WORDS=(${words
    .map((word) => `'${word}'`)
    .join(' ')})`;
  const script = `source '${packagePath('completions/baton.bash')}'; ${setUp}; _baton; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout, stderr } = inExamples('bash', ['--noprofile', '--norc', '-c', script]);
  if (stderr !== '') throw new Error(stderr);
  return stdout.split('\n').filter((reply) => reply !== '');
}

function inExamples(command: string, args: readonly string[]) {
  return spawnSync(command, args, { cwd: packagePath('examples'), encoding: 'utf8' });
}

function has(command: string, harmless = '--version'): boolean {
  return spawnSync(command, [harmless]).error === undefined;
}
