// The process log: destinations, levels and formats.

import { execFileSync } from 'node:child_process';
import { appendFileSync, closeSync, constants, openSync, readFileSync, readSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import { packagePath } from '../../../src/common/package/package-root.js';
import { COMPONENTS } from '../../../src/log/components.js';
import {
  type BatonProcess,
  bootstrap,
  connectRaw,
  fileAccessLog,
  freePort,
  httpListener,
  httpRequest,
  startBaton,
  startEchoUpstream,
  staticCluster,
  type Teardown,
  tempDir,
  waitFor,
  withDeadline,
} from '../harness/index.js';
import { runAll, runBaton } from './command-line/run.js';
import { startBreakableBaton } from './faults/fault-injection.js';

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
const LINE = /^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}\]\[\d+\]\[(\w+)\]\[(\w+)\] \[(\S+):(\d+)\] .+$/;

t.test('lines go to stderr from level info on, and report the milestones of start and exit', async (t) => {
  const baton = await serve(t, []);
  await baton.stop();
  const lines = baton.stderr.trimEnd().split('\n');
  for (const line of lines) {
    t.match(line, LINE);
    const [, , , file, number] = LINE.exec(line)!;
    t.match(sourceLine(file!, number!), /logger\.(info|warning)\(/, `${file}:${number} writes a line`);
  }
  let last = -1;
  for (const text of [
    'initializing epoch 0 (base id=0, hot restart version=',
    'statically linked extensions:',
    '  envoy.filters.http: ',
    '  envoy.filters.network: baton.filters.network.script',
    'loading 0 static secret(s)',
    'loading 0 cluster(s)',
    'loading 1 listener(s)',
    'cm init: all clusters initialized',
    'all clusters initialized. initializing init manager',
    'all dependencies initialized. starting workers',
    'admin address: 127.0.0.1:',
    'starting main dispatch loop',
    'caught',
    'shutting down server instance',
    'main dispatch loop exited',
    'exiting',
  ]) {
    const at = lines.findIndex((line) => line.includes(text));
    t.ok(at > last, `${text}: line ${at}, behind ${last}`);
    last = at;
  }
  t.same(new Set(lines.map((line) => LINE.exec(line)?.[1])), new Set(['info', 'warning']));
  t.equal(baton.stdout, '');
});

t.test('-l warning suppresses info lines', async (t) => {
  const baton = await serve(t, ['-l', 'warning']);
  await baton.stop();
  t.match(baton.stderr, /^\[.*\]\[warning\]\[main\] .*caught.*SIGTERM\n$/);
});

t.test('-l off is silent', async (t) => {
  const baton = await serve(t, ['-l', 'off']);
  await baton.stop();
  t.equal(baton.stderr, '');
});

t.test('--component-log-level sets the level of single components', async (t) => {
  const baton = await serve(t, ['-l', 'off', '--component-log-level', 'main:info']);
  await baton.stop();
  const components = baton.stderr
    .trimEnd()
    .split('\n')
    .map((line) => LINE.exec(line)?.[2]);
  t.same(new Set(components), new Set(['main']));
});

t.test('--log-format sets the line format', async (t) => {
  const baton = await serve(t, ['--log-format', '%L|%P|%n|%v']);
  await baton.stop();
  for (const line of baton.stderr.trimEnd().split('\n')) t.match(line, new RegExp(`^[IW]\\|${baton.pid}\\|\\w+\\|.`));
});

t.test('every flag of --log-format prints its value', async (t) => {
  const flags = [...'_jNtPnlLaAbBcCYDxmdHIMSefFprRTXz%@sg#!'];
  const before = Math.floor(Date.now() / 1000);
  const { code, stderr, pid } = await refused(t, ['--log-format', flags.map((flag) => `%${flag}`).join(' ~ ')], {
    TZ: 'Asia/Kolkata',
  });
  t.equal(code, 1);
  const texts = stderr.trimEnd().split(' ~ ');
  const printed = Object.fromEntries(flags.map((flag, index) => [flag, texts[index]!]));
  const of = (pattern: string) => pattern.replace(/%(.)/g, (_all, flag: string) => printed[flag]!);

  t.match(of('%_'), /^error initializing configuration '--config-yaml':\\n--config-yaml:1:2: /);
  t.equal(JSON.parse(`"${of('%j')}"`), of('%_').replaceAll('\\n', '\n'));
  t.match(of('%N'), /^([^/]+\/){4}OpenSSL$/);
  t.equal(of('%t %P'), `${pid} ${pid}`, 'the first thread has the process id');
  t.equal(of('%n %l %L %%'), 'main critical C %');
  const seconds = Date.parse(of('%Y-%m-%dT%H:%M:%S.%e%z')) / 1000;
  t.ok(seconds >= before && seconds <= Date.now() / 1000, of('%Y-%m-%dT%H:%M:%S.%e%z'));
  t.equal(of('%z'), '+05:30', 'times are local');
  const [weekday, month] = new Date(seconds * 1000)
    .toLocaleString('en-US', { timeZone: 'Asia/Kolkata', weekday: 'long', month: 'long' })
    .match(/\w+day|\w+/g)!
    .sort((a, b) => Number(b.endsWith('day')) - Number(a.endsWith('day')));
  t.same([of('%A'), of('%B')], [weekday, month]);
  t.same([of('%a'), of('%b')], [weekday!.slice(0, 3), month!.slice(0, 3)]);
  t.equal(of('%D'), of('%m/%d/%C'));
  t.equal(of('%x'), of('%D'));
  t.equal(of('%C'), of('%Y').slice(2));
  t.equal(of('%T'), of('%H:%M:%S'));
  t.equal(of('%X'), of('%T'));
  t.equal(of('%R'), of('%H:%M'));
  t.equal(of('%r'), of('%I:%M:%S %p'));
  t.equal(
    of('%I %p'),
    `${String(Number(of('%H')) % 12 || 12).padStart(2, '0')} ${Number(of('%H')) < 12 ? 'AM' : 'PM'}`,
  );
  t.match(of('%c'), new RegExp(of('^%a %b +%d %T %Y$').replace(' +0', ' +')));
  t.match(of('%f'), new RegExp(of('^%e\\d{3}$')));
  t.match(of('%F'), new RegExp(of('^%f\\d{3}$')));
  t.match(of('%g'), /^src\/cli\/\w+\.[jt]s$/);
  t.equal(of('%s'), of('%g').split('/').at(-1));
  t.equal(of('%@'), of('%g:%#'));
  t.match(of('%#'), /^[1-9]\d*$/);
  t.match(of('%!'), /^\w+$/);
});

t.test('--log-format-escaped keeps an entry on one line', async (t) => {
  const { stderr } = await refused(t, ['--log-format-escaped']);
  t.match(stderr, /^\[[^\n]*critical[^\n]* \\'--config-yaml\\':\\n--config-yaml:1:2: [^\n]*\n$/);
  const { stderr: plain } = await refused(t, []);
  t.ok(plain.split('\n').length > 2, 'otherwise it has several lines');
});

t.test('every level, and warn as an alias, is accepted as the log level', async (t) => {
  // This logs a line of each level without starting a server.
  const args = ['--enable-core-dump', '--allow-unknown-fields', '--log-format', '%l', '--config-yaml', 'a'];
  const levels = ['trace', 'debug', 'info', 'warn', 'warning', 'error', 'critical', 'off'];
  const outcomes = await runAll(
    t,
    levels.map((level) => ({ args: [...args, '-l', level] })),
  );
  const all = ['warning', 'info', 'critical'];
  const important = ['warning', 'critical'];
  const expected = [all, all, all, important, important, ['critical'], ['critical'], []];
  t.same(
    // Errors are printed even when nothing is logged.
    outcomes.map(({ stderr }) => stderr.split('\n').filter((line) => levels.includes(line))),
    expected,
  );
});

t.test('--component-log-level accepts every component', async (t) => {
  const list = COMPONENTS.map((component) => `${component}:debug`).join(',');
  const args = ['--mode', 'validate', '--config-yaml', '{}', '--component-log-level', list];
  t.match(await runBaton(t, { args }), { code: 0, stderr: '' });
});

t.test('level debug follows a request from the connection to the host and back', async (t) => {
  const [upstream, gone] = [await startEchoUpstream(t), await freePort()];
  const routes = [
    { match: { path: '/lost' }, route: { cluster: 'lost', retry_policy: { retry_on: 'connect-failure' } } },
    { match: { prefix: '/' }, route: { cluster: 'up' } },
  ];
  const route_config = { name: 'all', virtual_hosts: [{ name: 'all', domains: ['*'], routes }] };
  const baton = await startBaton(t, {
    config: bootstrap({
      listeners: [httpListener('web', 0, { route_config })],
      clusters: [staticCluster('up', upstream.port), staticCluster('lost', gone)],
    }),
    args: ['-l', 'off', '--component-log-level', 'connection:debug,http:debug,router:debug,pool:debug,upstream:debug'],
    env: { TZ: 'UTC' },
  });
  const port = await baton.listenerPort('web');
  await httpRequest(port, '/found?a');
  await httpRequest(port, '/lost');
  await baton.stop();
  const host = `127.0.0.1:${upstream.port}`;
  let rest = baton.stderr;
  for (const text of [
    '[debug][connection] [src/listener/downstream-connection.ts:',
    '] new connection from 127.0.0.1:',
    '] request GET /found?a\n',
    `] cluster 'up', try 1 on ${host}\n`,
    `cluster 'up': connecting to ${host}\n`,
    `cluster 'up', host ${host}: connected\n`,
    '] response 200 (via_upstream)\n',
    '] request GET /lost\n',
    `cluster 'lost', host 127.0.0.1:${gone}: connect failed: delayed connect error: Connection refused\n`,
    '] no response: remote connection failure\n',
    '] tries again in ',
    `] cluster 'lost', try 2 on 127.0.0.1:${gone}\n`,
    '] response 503 (upstream_reset_before_response_started{',
  ]) {
    const at = rest.indexOf(text);
    if (!t.ok(at >= 0, text)) break;
    rest = rest.slice(at);
  }
});

t.test('with --enable-fine-grain-logging loggers are files', async (t) => {
  const baton = await serve(t, ['--enable-fine-grain-logging', '--log-format', '%n|%g']);
  await baton.stop();
  for (const line of baton.stderr.trimEnd().split('\n')) {
    const [name, file] = line.split('|');
    t.match(name, /^src\/(?:[\w-]+\/)+[\w-]+\.ts$/);
    t.equal(name, file);
  }
});

t.test('a stack trace is one entry per frame, or a single one with --log-stacktrace-single-entry', async (t) => {
  const entries = async (args: string[]): Promise<string[]> => {
    const { baton, killWorker } = await startBreakableBaton(t, {
      config,
      args: [...args, '--log-format', '@%t[%l] %v'],
    });
    await killWorker('throw');
    await baton.stop();
    const all = baton.stderr.split('\n@').map((entry) => entry.replace('@', ''));
    const first = all.findIndex((entry) => entry.includes('injected exception'));
    const thread = /^\d+/.exec(all[first]!)![0];
    t.not(thread, String(baton.pid), 'a worker has a separate thread id');
    return all.slice(first).filter((entry) => entry.startsWith(thread) && /injected exception|^\S+ +at /m.test(entry));
  };
  const frames = await entries([]);
  t.ok(frames.length > 1, 'several entries');
  for (const frame of frames) t.notMatch(frame, '\n');
  const [whole, ...more] = await entries(['--log-stacktrace-single-entry']);
  t.match(whole, /injected exception\n +at .*\n +at /);
  t.same(more, []);
});

t.test('a stack trace names positions in the source', async (t) => {
  const directory = tempDir(t);
  const hook = join(directory, 'hook.mjs');
  const isBroken = join(directory, 'is-broken');
  writeFileSync(
    hook,
    `import { existsSync } from 'node:fs';
    import { isMainThread } from 'node:worker_threads';
    const { getInt32 } = DataView.prototype;
    if (!isMainThread) DataView.prototype.getInt32 = function (...at) {
      if (existsSync('${isBroken}')) throw new Error('injected exception');
      return getInt32.apply(this, at);
    };`,
  );
  const baton = await startBaton(t, { config, nodeArgs: ['--import', pathToFileURL(hook).href] });
  writeFileSync(isBroken, '');
  await t.rejects(httpRequest(await baton.listenerPort('web'), '/'));
  rmSync(isBroken);
  const frames = await waitFor(
    () => {
      const all = [...baton.stderr.matchAll(/ at \S+ \((src\/[\w/-]+\.ts):(\d+)\)$/gm)];
      return all.length > 2 && all;
    },
    { what: 'the stack' },
  );
  for (const [place, file, line] of frames) t.match(sourceLine(file!, line!), /\(|=/, place);
  t.notMatch(baton.stderr, 'dist/baton');
  await baton.stop();
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

t.test('--log-path /dev/stdout is the standard output, even where that is a socket', async (t) => {
  const baton = await serve(t, ['--log-path', '/dev/stdout']);
  t.equal((await baton.admin('/reopen_logs', { method: 'POST' })).status, 200);
  await baton.stop();
  const lines = baton.stdout.trimEnd().split('\n');
  for (const line of lines) t.match(line, LINE);
  t.match(lines.at(-1), /exiting$/);
  t.equal(baton.stderr, '');
});

t.test('a stalled or closed reader of the process log blocks nothing', async (t) => {
  const pipe = namedPipe(t);
  let reader = openPipe(pipe);
  // A few lines exceed the pipe's buffer.
  const baton = await serve(t, ['--log-path', pipe, '--log-format', `%v ${'x'.repeat(8000)}`]);
  const change = async () => t.equal((await baton.admin('/reset_counters', { method: 'POST' })).status, 200);
  for (let index = 0; index < 20; index++) await change();
  closeSync(reader);
  await change();
  t.equal((await baton.admin('/reopen_logs', { method: 'POST' })).status, 200);
  await change();

  reader = openPipe(pipe);
  const bytes = Buffer.alloc(65536);
  const read = () => {
    try {
      return bytes.toString('latin1', 0, readSync(reader, bytes));
    } catch {
      return '';
    }
  };
  await waitFor(() => read().includes('sent POST /reset_counters: 200'), { what: 'lines for the next reader' });
  closeSync(reader);
  await baton.stop();
});

t.test('a named pipe without a reader is refused as log: the start does not wait for one', async (t) => {
  const args = ['--config-yaml', '{}', '--log-path', namedPipe(t)];
  const { code, stderr } = await runBaton(t, { args });
  t.equal(code, 1);
  t.match(stderr, /^error: Failed to open log-file '.*': ENXIO/);
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
  t.ok(baton.stdout.includes('file /last\n'), 'buffered lines are written at exit');
});

t.test('a stalled reader of the access log blocks neither requests nor the exit', async (t) => {
  const baton = await serve(t, ['--file-flush-interval-msec', '20']);
  baton.child.stdout!.pause();
  const client = await connectRaw(t, await baton.listenerPort('web'));
  // Far more than a pipe's buffer.
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

function namedPipe(t: Teardown): string {
  const path = join(tempDir(t), 'pipe');
  execFileSync('mkfifo', [path]);
  return path;
}

/** Opens a non-blocking reader. */
function openPipe(path: string): number {
  return openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
}

/** Returns the source line at a position. */
function sourceLine(file: string, line: string): string {
  return readFileSync(packagePath(file), 'utf8').split('\n')[Number(line) - 1]!;
}

function serve(t: Teardown, args: string[]): Promise<BatonProcess> {
  return startBaton(t, { config, args });
}

/** Runs a configuration that is refused: the log is one entry of several lines, level critical. */
async function refused(t: Teardown, args: string[], env: Record<string, string> = {}) {
  const all = ['--mode', 'validate', '--config-yaml', '{nope: "x"}', ...args];
  const baton = await startBaton(t, { args: all, env, wait: 'spawned' });
  const { code } = await withDeadline(baton.exited, 'the exit of the run');
  return { code, stderr: baton.stderr, pid: baton.pid };
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
