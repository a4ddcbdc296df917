// The bootstrap's settings of the process log, and what deprecated fields leave there and in the stats.

import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { packagePath } from '../../../src/common/package/package-root.js';
import { bootstrap, type Config, fileAccessLog, httpListener, startBaton, tempDir, waitFor } from '../harness/index.js';
import { runBaton } from './command-line/run.js';

const ANSWER: Config = {
  name: 'all',
  virtual_hosts: [
    { name: 'all', domains: ['*'], routes: [{ match: { prefix: '/' }, direct_response: { status: 204 } }] },
  ],
};

function withLog(logFormat: Config, accessLog: readonly Config[] = []): Config {
  const manager = { route_config: ANSWER, access_log: accessLog };
  const config = bootstrap({ listeners: [httpListener('web', 0, manager)], clusters: [] });
  return { ...config, application_log_config: { log_format: logFormat } };
}

t.test('application_log_config.json_format makes every line of every thread JSON', async (t) => {
  const directory = join(tempDir(t), 'logs');
  mkdirSync(directory);
  const config = withLog({ json_format: { thread: '%t', level: '%l', where: { component: '%n' }, message: '%j' } }, [
    fileAccessLog(join(directory, 'access.log'), '%REQ(:PATH)%\n'),
  ]);
  const baton = await startBaton(t, { config });
  // A worker logs that its access log cannot be reopened.
  rmSync(directory, { recursive: true });
  baton.child.kill('SIGUSR1');
  await waitFor(() => baton.stderr.includes(`${directory}/access.log`), { what: 'the line of a worker' });
  await baton.stop();
  const lines = baton.stderr.trimEnd().split('\n');
  const entries = lines.map((line) => JSON.parse(line) as { thread: string; message: string });
  t.ok(entries.some(({ message }) => message === 'starting main dispatch loop'));
  t.ok(new Set(entries.map(({ thread }) => thread)).size > 1, 'lines of a worker are included');
});

t.test('an empty json_format gives pino records, which pino-pretty formats', async (t) => {
  const directory = join(tempDir(t), 'logs');
  mkdirSync(directory);
  const log = fileAccessLog(join(directory, 'access.log'), '%REQ(:PATH)%\n');
  const baton = await startBaton(t, {
    config: bootstrap({
      listeners: [httpListener('web', 0, { route_config: ANSWER, access_log: [log] })],
      clusters: [],
    }),
    // As a user adds it to a configuration.
    args: ['--config-yaml', '{application_log_config: {log_format: {json_format: {}}}}'],
    env: { TZ: 'UTC' },
  });
  rmSync(directory, { recursive: true });
  baton.child.kill('SIGUSR1');
  await waitFor(() => baton.stderr.includes(`${directory}/access.log`), { what: 'the line of a worker' });
  await baton.stop();
  const records = baton.stderr
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  for (const record of records) t.equal(record['pid'], baton.pid);
  t.ok(
    records.some(({ thread }) => typeof thread === 'number' && thread !== baton.pid),
    'a worker names its thread',
  );
  const pretty = execFileSync(packagePath('node_modules/.bin/pino-pretty'), { encoding: 'utf8', input: baton.stderr });
  const place = '<src/[\\w/-]+\\.ts:\\d+>';
  const line = (level: string, text: string) =>
    new RegExp(`^\\[\\d\\d:\\d\\d:\\d\\d\\.\\d{3}\\] ${level} \\(main/${baton.pid}\\) ${place}: ${text}$`, 'm');
  t.match(pretty, line('INFO', 'starting main dispatch loop'));
  t.match(pretty, line('WARN', 'caught SIGTERM'));
  t.match(pretty, line('INFO', 'exiting'));
});

t.test('application_log_config.text_format has the syntax of --log-format', async (t) => {
  const baton = await startBaton(t, { config: withLog({ text_format: '<%L> %v' }) });
  await baton.stop();
  for (const line of baton.stderr.trimEnd().split('\n')) t.match(line, /^<[IW]> ./);
});

t.test('a format that contradicts the command line or is not JSON is refused', async (t) => {
  const cases: readonly (readonly [Config, readonly string[], string])[] = [
    [{ text_format: '%v' }, ['--log-format', '%v'], 'application_log_config.log_format: only one of'],
    [{ json_format: { m: '%v' } }, [], 'application_log_config.log_format.json_format: usage of %v is unavailable'],
    [{ json_format: { m: '%j' } }, ['--log-format-escaped'], 'would escape the quotes of JSON'],
  ];
  for (const [format, args, expected] of cases) {
    const { code, stderr } = await runBaton(t, { config: withLog(format), args: ['--mode', 'validate', ...args] });
    t.equal(code, 1);
    t.ok(stderr.includes(expected), stderr);
  }
});

t.test('deprecated fields are counted; --skip-deprecated-logs silences their warnings', async (t) => {
  const web = { ...httpListener('web', 0, { route_config: ANSWER }), reuse_port: true };
  const config = bootstrap({ listeners: [web], clusters: [] });
  for (const args of [[], ['--skip-deprecated-logs']]) {
    const baton = await startBaton(t, { config, args });
    await baton.waitForStat('runtime.deprecated_feature_use', 1);
    await baton.waitForStat('runtime.deprecated_feature_seen_since_process_start', 1);
    await baton.waitForStat('server.wip_protos', 0);
    await baton.stop();
    t.equal(baton.stderr.includes("field 'reuse_port' of"), args.length === 0);
  }
});
