// The process log: where it goes, from which level on, and in which form.

import { appendFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import {
  type BatonProcess,
  bootstrap,
  connectRaw,
  fileAccessLog,
  httpListener,
  httpRequest,
  startBaton,
  type Teardown,
  tempDir,
  waitFor,
  withDeadline,
} from '../harness/index.js';

const config = bootstrap({
  listeners: [
    httpListener('web', 0, {
      route_config: {
        name: 'all',
        virtual_hosts: [
          { name: 'all', domains: ['*'], routes: [{ match: { prefix: '/' }, direct_response: { status: 204 } }] },
        ],
      },
      access_log: [
        fileAccessLog('/dev/stdout', 'file %REQ(:PATH)%\n'),
        stream('Stdout', 'stdout %REQ(:PATH)%\n'),
        stream('Stderr', 'stderr %REQ(:PATH)%\n'),
      ],
    }),
  ],
  clusters: [],
});

/** `[date time][thread][level][component] [file:line] text` */
const LINE = /^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}\]\[\d+\]\[(\w+)\]\[(\w+)\] \[\S+:\d+\] .+$/;

t.test('lines go to stderr from level info on, and tell the milestones of a start and an end', async (t) => {
  const baton = await serve(t, []);
  await baton.stop();
  const lines = baton.stderr.trimEnd().split('\n');
  for (const line of lines) t.match(line, LINE);
  for (const text of [
    'initializing epoch 0',
    'admin address: 127.0.0.1:',
    'loading 0 cluster(s)',
    'loading 1 listener(s)',
    'starting main dispatch loop',
    'cm init: all clusters initialized',
    'all dependencies initialized. starting workers',
    'caught',
    'shutting down server instance',
    'main dispatch loop exited',
    'exiting',
  ]) {
    t.ok(
      lines.some((line) => line.includes(text)),
      text,
    );
  }
  t.same(new Set(lines.map((line) => LINE.exec(line)?.[1])), new Set(['info', 'warning']));
  t.equal(baton.stdout, '');
});

t.test('-l warning keeps information back', async (t) => {
  const baton = await serve(t, ['-l', 'warning']);
  await baton.stop();
  t.match(baton.stderr, /^\[.*\]\[warning\]\[main\] .*caught.*SIGTERM\n$/);
});

t.test('-l off is silent', async (t) => {
  const baton = await serve(t, ['-l', 'off']);
  await baton.stop();
  t.equal(baton.stderr, '');
});

t.test('--component-log-level sets single components', async (t) => {
  const baton = await serve(t, ['-l', 'off', '--component-log-level', 'main:info']);
  await baton.stop();
  const components = baton.stderr
    .trimEnd()
    .split('\n')
    .map((line) => LINE.exec(line)?.[2]);
  t.same(new Set(components), new Set(['main']));
});

t.test('--log-format says what a line looks like', async (t) => {
  const baton = await serve(t, ['--log-format', '%L|%P|%n|%v']);
  await baton.stop();
  for (const line of baton.stderr.trimEnd().split('\n')) t.match(line, new RegExp(`^[IW]\\|${baton.pid}\\|\\w+\\|.`));
});

t.test('--log-path appends to a file, and leaves stderr empty', async (t) => {
  const path = join(tempDir(t), 'log');
  appendFileSync(path, 'what was there before\n');
  const baton = await serve(t, ['--log-path', path]);
  await baton.stop();
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
  t.equal(lines.shift(), 'what was there before');
  for (const line of lines) t.match(line, LINE);
  t.match(lines.at(-1), /exiting$/);
  t.equal(baton.stderr, '');
});

t.test('access logs can go to stdout and stderr when these are pipes', async (t) => {
  const baton = await serve(t, ['--concurrency', '2', '-l', 'off', '--file-flush-interval-msec', '20']);
  const port = await baton.listenerPort('web');
  for (let index = 0; index < 10; index++) await httpRequest(port, `/${index}`);
  await waitFor(() => count(baton.stdout) === 20 && count(baton.stderr) === 10, { what: 'all lines' });
  for (let index = 0; index < 10; index++) {
    t.ok(baton.stdout.includes(`file /${index}\n`));
    t.ok(baton.stdout.includes(`stdout /${index}\n`));
    t.ok(baton.stderr.includes(`stderr /${index}\n`));
  }
  await httpRequest(port, '/last');
  await baton.stop();
  t.ok(baton.stdout.includes('file /last\n'), 'what is buffered at the end is written');
});

t.test('a reader of the access log that stands still holds up neither requests nor the end', async (t) => {
  const baton = await serve(t, ['--file-flush-interval-msec', '20']);
  baton.child.stdout!.pause();
  const client = await connectRaw(t, await baton.listenerPort('web'));
  // Far more than a pipe holds.
  const target = `/${'x'.repeat(2000)}`;
  for (let index = 0; index < 1000; index++) {
    client.write(`GET ${target} HTTP/1.1\r\nhost: a\r\n\r\n`);
    await client.readUntil('\r\n\r\n');
  }
  t.equal((await baton.admin('/ready')).status, 200);
  baton.child.kill('SIGTERM');
  const exited = new Promise((resolve) => baton.child.once('exit', resolve));
  t.equal(await withDeadline(exited, 'the end'), 0);
  baton.child.stdout!.resume();
});

function serve(t: Teardown, args: string[]): Promise<BatonProcess> {
  return startBaton(t, { config, args });
}

function stream(name: 'Stdout' | 'Stderr', format: string) {
  return {
    name: `envoy.access_loggers.${name.toLowerCase()}`,
    typed_config: {
      '@type': `type.googleapis.com/envoy.extensions.access_loggers.stream.v3.${name}AccessLog`,
      log_format: { text_format_source: { inline_string: format } },
    },
  };
}

function count(text: string): number {
  return text.split('\n').length - 1;
}
