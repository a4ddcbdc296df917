// Command lines that print something and exit, and unusable configurations: output streams and exit statuses.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { loopback, startBaton, tempDir } from '../../harness/index.js';
import { runBaton } from './run.js';

const nodeMajor = Number.parseInt(process.versions.node, 10);
const directory = tempDir(t);
const notAListener = join(directory, 'not-a-listener.yaml');
writeFileSync(notAListener, 'static_resources:\n  listeners:\n  - nmae: typo\n');

t.test('--version prints five parts to stdout', async (t) => {
  const { code, stdout, stderr } = await runBaton(t, { args: ['--version'] });
  t.equal(code, 0);
  t.match(stdout, /^\n\S+ {2}version: [^/\n]+\/\d+\.\d+\.\d+(-dev)?\/(Clean|Modified)\/(RELEASE|DEBUG)\/\S+\n\n$/);
  t.equal(stderr, '');
});

for (const option of ['--help', '-h']) {
  t.test(`${option} describes every option on stdout`, async (t) => {
    const { code, stdout, stderr } = await runBaton(t, { args: [option] });
    t.equal(code, 0);
    for (const each of ['--config-path', '--config-yaml', '--concurrency', '--mode', '--log-level', '--log-path']) {
      t.match(stdout, each);
    }
    t.equal(stderr, '');
  });
}

t.test('a closed stdout or stderr changes no exit status and prints no stack', async (t) => {
  const fine = ['--mode', 'validate', '--config-yaml', '{}'];
  const mistake = ['--mode', 'validate', '-c', '/no/such/file.yaml', '-l', 'off'];
  for (const [redirection, args, status] of [
    ['>/dev/full', ['--version'], 0],
    ['>/dev/full', ['--help'], 0],
    ['>/dev/full', ['--schema'], 0],
    ['>/dev/full', fine, 0],
    ['2>/dev/full', ['--hot-restart-version'], 0],
    ['2>/dev/full', ['--nonsense'], 1],
    ['2>/dev/full', mistake, 1],
  ] as const) {
    const wrapper = ['sh', '-c', `exec "$@" ${redirection}`, 'sh'];
    const { code, stderr } = await runBaton(t, { args, wrapper });
    t.equal(code, status, args.join(' '));
    t.equal(stderr, '');
  }
});

// A few more and Baton starts, a few fewer and Node itself does not.
for (const limit of nodeMajor < 22 ? [20, 21] : [24]) {
  t.test(`with only ${limit} file descriptors it reports the shortage in one line`, async (t) => {
    const wrapper = ['sh', '-c', `ulimit -n ${limit}; exec "$@"`, 'sh'];
    const { code, stderr } = await runBaton(t, { args: ['--config-yaml', '{}', '-l', 'off'], wrapper });
    t.equal(code, 1);
    t.match(
      stderr,
      /^error.*: this process cannot open more files: .*; raise the limit \(ulimit -n, LimitNOFILE=\)\n$/,
    );
  });
}

t.test('a missing configuration is reported even where another server uses the base ID', async (t) => {
  const names = ['--base-id', '0', '--socket-path', join(tempDir(t), 'socket')];
  const running = await startBaton(t, { config: { admin: { address: loopback(0) } }, args: names });
  const { code, stderr } = await runBaton(t, { args: names });
  t.equal(code, 1);
  t.match(stderr, 'At least one of --config-path or --config-yaml');
  t.notMatch(stderr, 'unable to bind');
  t.match(await running.kill('SIGTERM'), { code: 0 });
});

for (const mode of ['serve', 'validate']) {
  t.test(`--mode ${mode}: a missing configuration is reported`, async (t) => {
    const { code, stdout, stderr } = await runBaton(t, { args: ['--mode', mode] });
    t.equal(code, 1);
    const what = mode === 'serve' ? 'config' : 'configuration';
    t.match(stderr, `error initializing ${what} '': At least one of --config-path or --config-yaml`, 'in one line');
    const steps = /\nGive a configuration: +baton FILE\nAn example: +baton '?(.+?)'?\nAll options: +baton --help\n$/;
    t.ok(existsSync(steps.exec(stderr)?.[1] ?? ''), 'shows a command, whose example exists');
    t.equal(stdout, '');
  });

  t.test(`--mode ${mode}: a configuration file that does not exist is reported`, async (t) => {
    const { code, stdout, stderr } = await runBaton(t, { args: ['--mode', mode, '-c', '/no/such/file.yaml'] });
    t.equal(code, 1);
    t.match(stderr, /\[critical\].*error initializing config.*'\/no\/such\/file\.yaml'/);
    t.match(stderr, /no such file/);
    t.equal(stdout, '');
    t.notMatch(stderr, STACK);
  });

  t.test(`--mode ${mode}: all errors are printed, though they exceed a pipe's buffer`, async (t) => {
    const config = Object.fromEntries(Array.from({ length: 90 }, (_, index) => [`${'x'.repeat(5000)}${index}`, 1]));
    const args = ['--mode', mode, '-l', 'off'];
    const wrapper = ['sh', '-c', '"$@" 2>&1 | cat >&2', 'sh'];
    const { stderr } = await runBaton(t, { args, config, configName: 'long.json', wrapper });
    t.ok(stderr.length > 100_000, "more than a pipe's buffer");
    t.equal(stderr.match(/long\.json:\d+:\d+: /g)?.length, 90);
  });

  t.test(`--mode ${mode}: an error is printed to stderr even if the log is silent or goes elsewhere`, async (t) => {
    for (const log of [
      ['-l', 'off'],
      ['--log-path', join(directory, 'log')],
    ]) {
      const { code, stderr } = await runBaton(t, { args: ['--mode', mode, '-c', notAListener, ...log] });
      t.equal(code, 1);
      t.match(stderr, `${notAListener}:3:5`);
      t.notMatch(stderr, '[critical]');
    }
    t.match(readFileSync(join(directory, 'log'), 'utf8'), /\[critical\].*error initializing config/);
  });

  t.test(`--mode ${mode}: an error is reported with file, line and column`, async (t) => {
    const { code, stdout, stderr } = await runBaton(t, { args: ['--mode', mode, '-c', notAListener] });
    t.equal(code, 1);
    t.match(stderr, `${notAListener}:3:5`);
    t.match(stderr, /nmae.*did you mean.*name/i);
    t.equal(stdout, '');
    t.notMatch(stderr, STACK);
  });
}

const STACK = /^\s+at .*:\d+:\d+/m;
