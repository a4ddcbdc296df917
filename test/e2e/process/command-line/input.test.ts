// Where a configuration comes from: an argument, standard input, variables of the environment; and the report for programs.

import { execFileSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { loopback, startBaton, tempDir, waitFor } from '../../harness/index.js';
import { runBaton } from './run.js';

const VALIDATE = ['--mode', 'validate', '-l', 'off'];
const directory = tempDir(t);

/** Returns a reference to a variable in a configuration. */
const variable = (text: string): string => `\${${text}}`;

/** Runs a command with a file as its standard input. */
function withInput(text: string): string[] {
  const file = join(tempDir(t), 'input');
  writeFileSync(file, text);
  return ['sh', '-c', `exec "$@" < '${file}'`, 'sh'];
}

t.test('the file may be given without -c', async (t) => {
  const file = join(directory, 'argument.yaml');
  writeFileSync(file, 'node: {id: argument}\n');
  const { code, stdout } = await runBaton(t, { args: [file, ...VALIDATE] });
  t.equal(code, 0);
  t.equal(stdout, `configuration '${file}' OK\n`);
});

t.test('a dash serves the configuration that standard input has, also after a reload', async (t) => {
  const wrapper = withInput(`admin: {address: ${JSON.stringify(loopback(0))}}\nnode: {id: piped}\n`);
  const baton = await startBaton(t, { args: ['-'], wrapper });
  t.match((await baton.admin('/server_info')).body, '"id": "piped"');
  const { status, body } = await baton.admin('/config/reload', { method: 'POST' });
  t.equal(status, 200, body);
  t.match(await baton.kill('SIGTERM'), { code: 0 });
});

t.test('what is wrong with standard input is reported with its line', async (t) => {
  for (const [text, expected] of [
    ['a: 1\nnode: {idd: x}\n', /standard input:2:8: node\.idd: unknown field/],
    ['node: {id: "\xff"}', /^error initializing configuration 'standard input': .*it is not UTF-8 text/],
    ['', /^error initializing configuration 'standard input': unable to read standard input: it is empty/],
  ] as const) {
    const wrapper = withInput('');
    writeFileSync(/< '(.*)'/.exec(wrapper[2]!)![1]!, text, 'latin1');
    const { code, stderr } = await runBaton(t, { args: ['-', ...VALIDATE], wrapper });
    t.equal(code, 1);
    t.match(stderr, expected);
  }
});

t.test('a signal ends the wait for standard input', async (t) => {
  const pipe = join(directory, 'silent');
  execFileSync('mkfifo', [pipe]);
  const wrapper = ['sh', '-c', `exec "$@" <>'${pipe}'`, 'sh'];
  // Written once signals are handled, and before the configuration is read.
  const baseId = join(directory, 'base-id');
  const args = ['-', '--use-dynamic-base-id', '--base-id-path', baseId];
  const baton = await startBaton(t, { args, wrapper, wait: 'spawned' });
  await waitFor(() => existsSync(baseId), { what: 'the base ID' });
  t.match(await baton.kill('SIGTERM'), { code: 0 });
  t.match(baton.stderr, /caught SIGTERM/);
});

t.test('--expand-env replaces variables in values, and reports those that are not set', async (t) => {
  const config = (id: string, port: string): string[] => [
    '--config-yaml',
    `{node: {id: "${id}", cluster: "$${variable('x')}"}, admin: {address: {socket_address: {address: 127.0.0.1, port_value: "${port}"}}}}`,
  ];
  const wrapper = ['env', '-u', 'UNSET', 'ID=a: {b', 'EMPTY='];
  const baton = await startBaton(t, {
    args: ['--expand-env', ...config(`${variable('ID')}-$1-${variable('EMPTY:-e')}`, variable('UNSET:-0'))],
    wrapper,
  });
  const { node } = JSON.parse((await baton.admin('/server_info')).body);
  t.match(node, { id: 'a: {b-$1-e', cluster: variable('x') }, 'a variable is text, whatever it contains');
  const { code, stderr } = await runBaton(t, {
    args: ['--expand-env', ...VALIDATE, ...config(variable('UNSET'), variable('1'))],
    wrapper,
  });
  t.equal(code, 1);
  t.match(
    stderr,
    /node\.id: the environment variable UNSET is not set; set it, or give a default: \$\{UNSET:-default\}/,
  );
  t.match(stderr, /port_value: \$\{ begins a variable/);
  const literal = await runBaton(t, { args: [...VALIDATE, ...config(variable('UNSET'), '0')], wrapper });
  t.equal(literal.code, 0, 'without the option they are text');
});

t.test('messages do not show what long variables hold', async (t) => {
  const wrapper = ['env', 'TOKEN=s3cret-%-token', 'PORT=none'];
  const text = `{admin: {address: {socket_address: {address: 127.0.0.1, port_value: "${variable('PORT')}"}}}, stats_flush_interval: "${variable('TOKEN')}"}`;
  const { code, stderr, stdout } = await runBaton(t, {
    args: ['--expand-env', '--mode', 'validate', '--format', 'json', '--config-yaml', text],
    wrapper,
  });
  t.equal(code, 1);
  t.notMatch(stderr + stdout, 's3cret');
  const { errors } = JSON.parse(stdout);
  t.match(errors, [
    { path: /port_value/, message: /none/ },
    { path: 'stats_flush_interval', message: /redacted/ },
  ]);
});

t.test('--format json prints one object for programs', async (t) => {
  const file = join(directory, 'report.yaml');
  writeFileSync(file, 'node:\n  idd: x\nstats_flush_interval: 1\n');
  const refused = await runBaton(t, { args: [...VALIDATE, '--format', 'json', file] });
  t.equal(refused.code, 1);
  t.strictSame(JSON.parse(refused.stdout), {
    ok: false,
    configuration: file,
    errors: [
      {
        file,
        line: 2,
        column: 3,
        path: 'node.idd',
        message: "unknown field 'idd' of envoy.config.core.v3.Node; did you mean 'id'?",
      },
      {
        file,
        line: 3,
        column: 23,
        path: 'stats_flush_interval',
        message: "expected a duration, found the number 1; write it as '1s'",
      },
    ],
    warnings: [],
  });
  const fine = await runBaton(t, { args: [...VALIDATE, '--format', 'json', '--config-yaml', '{node: {id: x}}'] });
  t.strictSame(JSON.parse(fine.stdout), { ok: true, configuration: '--config-yaml', errors: [], warnings: [] });
  t.equal(fine.code, 0);
});
