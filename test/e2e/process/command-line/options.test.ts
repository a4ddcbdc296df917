// The effect of each option as seen from outside: in /server_info, in the log, in written files, in the process.

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import {
  type BatonProcess,
  bootstrap,
  type Config,
  fileAccessLog,
  httpListener,
  httpRequest,
  loopback,
  ROUTER_FILTER,
  routeAllTo,
  startBaton,
  startUpstream,
  staticCluster,
  tempDir,
  waitFor,
} from '../../harness/index.js';
import { runAll, runBaton } from './run.js';

const EMPTY: Config = { admin: { address: loopback(0) } };
const FORMAT = '[%Y-%m-%d %T.%e][%t][%l][%n] [%g:%#] %v';

/** command_line_options of a server that has only the options that the test needs. */
const DEFAULTS = {
  base_id: '0',
  use_dynamic_base_id: false,
  skip_hot_restart_on_no_parent: false,
  skip_hot_restart_parent_stats: false,
  base_id_path: '',
  concurrency: 1,
  config_path: '',
  config_yaml: '',
  allow_unknown_static_fields: false,
  reject_unknown_dynamic_fields: false,
  ignore_unknown_dynamic_fields: false,
  skip_deprecated_logs: false,
  admin_address_path: '',
  local_address_ip_version: 'v4',
  log_level: 'info',
  component_log_level: '',
  log_format: FORMAT,
  log_format_escaped: false,
  enable_fine_grain_logging: false,
  log_path: '',
  log_stacktrace_single_entry: false,
  hot_restart_version: false,
  service_cluster: '',
  service_node: '',
  service_zone: '',
  mode: 'Serve',
  file_flush_interval: '10s',
  file_flush_min_size: 64,
  drain_time: '600s',
  drain_strategy: 'Gradual',
  parent_shutdown_time: '900s',
  disable_hot_restart: false,
  enable_mutex_tracing: false,
  cpuset_threads: false,
  restart_epoch: 0,
  disabled_extensions: [],
  socket_path: '@proxy_domain_socket',
  socket_mode: 0,
  enable_core_dump: false,
  stats_tag: [],
};

t.test('/server_info shows the default of every option, and no other member', async (t) => {
  const baton = await startBaton(t, { config: EMPTY });
  const shown = await commandLineOptions(baton);
  t.same(shown, {
    ...DEFAULTS,
    config_path: baton.configPath,
    admin_address_path: join(baton.directory, 'admin-address'),
    disable_hot_restart: true,
  });
  await baton.stop();
});

t.test('/server_info shows every given option', async (t) => {
  const directory = tempDir(t);
  const [log, id, socket] = [join(directory, 'log'), join(directory, 'id'), join(directory, 'socket')];
  const yaml = '{node: {id: one, cluster: two, locality: {zone: three}}}';
  const args = [
    ...['--base-id', '7', '--base-id-path', id, '--concurrency', '2', '--config-yaml', yaml],
    ...['--skip-hot-restart-on-no-parent', '--skip-hot-restart-parent-stats', '--restart-epoch', '3'],
    ...['--allow-unknown-static-fields', '--reject-unknown-dynamic-fields', '--ignore-unknown-dynamic-fields'],
    ...[
      '--skip-deprecated-logs',
      '--local-address-ip-version',
      'v6',
      '-l',
      'warn',
      '--component-log-level',
      'main:info',
    ],
    ...['--log-format', '%l %v', '--log-format-escaped', '--log-path', log, '--log-stacktrace-single-entry'],
    ...['--service-cluster', 'c', '--service-node', 'n', '--service-zone', 'z', '--file-flush-interval-msec', '1500'],
    ...['--file-flush-min-size-kb', '1', '--drain-time-s', '5', '--drain-strategy', 'immediate'],
    ...['--parent-shutdown-time-s', '6', '--enable-mutex-tracing', '--cpuset-threads', '--enable-core-dump'],
    ...['--disable-extensions', 'envoy.filters.http/envoy.filters.http.buffer', '--socket-path', socket],
    ...['--socket-mode', '644', '--stats-tag', 'a:b', '--stats-tag', 'c:d e'],
  ];
  const baton = await startBaton(t, { config: EMPTY, args });
  t.same(await commandLineOptions(baton), {
    ...DEFAULTS,
    base_id: '7',
    base_id_path: id,
    concurrency: 2,
    config_path: baton.configPath,
    config_yaml: yaml,
    skip_hot_restart_on_no_parent: true,
    skip_hot_restart_parent_stats: true,
    restart_epoch: 3,
    allow_unknown_static_fields: true,
    reject_unknown_dynamic_fields: true,
    ignore_unknown_dynamic_fields: true,
    skip_deprecated_logs: true,
    admin_address_path: join(baton.directory, 'admin-address'),
    local_address_ip_version: 'v6',
    log_level: 'warning',
    component_log_level: 'main:info',
    log_format: '%l %v',
    log_format_escaped: true,
    log_path: log,
    log_stacktrace_single_entry: true,
    service_cluster: 'c',
    service_node: 'n',
    service_zone: 'z',
    file_flush_interval: '1.500s',
    file_flush_min_size: 1,
    drain_time: '5s',
    drain_strategy: 'Immediate',
    parent_shutdown_time: '6s',
    enable_mutex_tracing: true,
    cpuset_threads: true,
    disabled_extensions: ['envoy.filters.http/envoy.filters.http.buffer'],
    socket_path: socket,
    socket_mode: 0o644,
    enable_core_dump: true,
    stats_tag: ['a:b', 'c:d e'],
  });
  const { node } = JSON.parse((await baton.admin('/server_info')).body);
  t.match(node, { id: 'n', cluster: 'c', locality: { zone: 'z' } }, '--service-… override the node');
  t.equal(readFileSync(id, 'utf8'), '7', 'the base ID is in its file without a line break');
  await baton.stop();
  t.equal(baton.stderr, '');

  const logged = readFileSync(log, 'utf8');
  t.match(logged, 'info core dump enabled\n');
  t.match(logged, 'warning Both --concurrency and --cpuset-threads options are set; not applying --cpuset-threads.\n');
});

t.test('/server_info shows flags that exclude those above', async (t) => {
  const args = ['--enable-fine-grain-logging', '--use-dynamic-base-id', '--allow-unknown-fields'];
  const baton = await startBaton(t, { config: EMPTY, args });
  t.match(await commandLineOptions(baton), {
    enable_fine_grain_logging: true,
    use_dynamic_base_id: true,
    allow_unknown_static_fields: true,
    disable_hot_restart: false,
  });
  await baton.stop();
  t.match(baton.stderr, '--allow-unknown-fields is deprecated, use --allow-unknown-static-fields instead.');
});

t.test('informational options print to their stream with exit status 0', async (t) => {
  const file = join(tempDir(t), 'id');
  const config = { node: { id: 'a' } };
  const [version, hotRestart, initOnly, validate, yaml] = await runAll(t, [
    { args: ['--version'] },
    { args: ['--hot-restart-version'] },
    { config, args: ['--mode', 'init_only', '--base-id', '1', '--base-id-path', file] },
    { config, args: ['--mode=validate', '-l', 'error'] },
    { args: ['--mode', 'validate', '--config-yaml', '{node: {id: a}}', '-l', 'error'] },
  ]);
  t.match(version, { code: 0, stderr: '', stdout: /^\nbaton {2}version: ([^/\n]+\/){4}OpenSSL\n\n$/ });
  t.match(hotRestart, { code: 0, stdout: '', stderr: /^\S+$/ }, 'without a line break');
  t.match(initOnly, { code: 0, stdout: '' });
  t.notMatch(initOnly!.stderr, 'starting main dispatch loop');
  t.match(validate, { code: 0, stderr: '', stdout: /^configuration '\S+\/config\.yaml' OK\n$/ });
  t.match(yaml, { code: 0, stderr: '', stdout: /^configuration '.*' OK\n$/ });

  const baton = await startBaton(t, { config: EMPTY });
  t.equal((await baton.admin('/hot_restart_version')).body, hotRestart!.stderr, 'a running server reports the same');
  await baton.stop();
});

t.test(
  '--base-id-path: ignored with --disable-hot-restart; a file that cannot be written is reported, and the server starts',
  async (t) => {
    const [disabled, unwritable] = [join(tempDir(t), 'id'), join(tempDir(t), 'missing', 'id')];
    const without = await startBaton(t, { config: EMPTY, args: ['--disable-hot-restart', '--base-id-path', disabled] });
    await without.stop();
    t.throws(() => readFileSync(disabled), { code: 'ENOENT' });
    const baton = await startBaton(t, { config: EMPTY, args: ['--base-id', '2', '--base-id-path', unwritable] });
    t.match(baton.stderr, `[critical]`);
    t.match(baton.stderr, `cannot open base id output file ${unwritable} for writing.`);
    await baton.stop();
  },
);

t.test('a named pipe without a reader, which cannot be written to, does not stop a server from serving', async (t) => {
  const directory = tempDir(t);
  const [id, address] = [join(directory, 'id'), join(directory, 'address')];
  spawnSync('mkfifo', [id, address]);
  const baton = await startBaton(t, {
    config: EMPTY,
    args: ['--use-dynamic-base-id', '--base-id-path', id, '--admin-address-path', address],
    wait: 'spawned',
  });
  await waitFor(() => baton.stderr.includes(`cannot open admin address output file ${address} for writing.`));
  t.match(baton.stderr, `cannot open base id output file ${id} for writing.`);
  t.match(baton.stderr, 'all dependencies initialized. starting workers');
  await baton.stop();
});

const hasTaskset = spawnSync('taskset', ['--version']).status === 0;

t.test('the default concurrency follows the affinity mask', { skip: !hasTaskset }, async (t) => {
  const allowed = /^Cpus_allowed_list:\s*(\d+)/m.exec(readFileSync('/proc/self/status', 'utf8'))![1]!;
  const baton = await startBaton(t, {
    config: EMPTY,
    plain: true,
    args: ['--use-dynamic-base-id'],
    wrapper: ['taskset', '-c', allowed],
  });
  t.equal((await commandLineOptions(baton)).concurrency, 1);
  t.equal(await baton.stat('server.concurrency'), 1);
  await baton.stop();
});

t.test('--local-address-ip-version v6 selects the address that represents clients on this machine', async (t) => {
  const upstream = await startUpstream(t, (request, answer) => {
    answer.end(request.headers['x-forwarded-for']);
  });
  const manager = { route_config: routeAllTo('up'), use_remote_address: true };
  const parts = { listeners: [httpListener('web', 0, manager)], clusters: [staticCluster('up', upstream.port)] };
  const baton = await startBaton(t, { config: bootstrap(parts), args: ['--local-address-ip-version', 'v6'] });
  t.equal((await httpRequest(await baton.listenerPort('web'), '/')).body, ownAddress6());
  await baton.stop();
});

t.test(
  '--disable-extensions: a configuration that uses one is refused, and an unknown one causes a warning',
  async (t) => {
    const buffer = {
      name: 'buffer',
      typed_config: {
        '@type': 'type.googleapis.com/envoy.extensions.filters.http.buffer.v3.Buffer',
        max_request_bytes: 1,
      },
    };
    const manager = { route_config: { name: 'none' }, http_filters: [buffer, ROUTER_FILTER] };
    const config = bootstrap({ listeners: [httpListener('web', 0, manager)], clusters: [] });
    const name = 'envoy.filters.http/envoy.filters.http.buffer';
    const [refused, mistyped] = await runAll(t, [
      { config, args: ['--mode', 'validate', '--disable-extensions', `envoy.clusters/static,${name}`] },
      { config, args: ['--mode', 'validate', '--disable-extensions', `${name.replace('buffer', 'bufer')},x`] },
    ]);
    t.equal(refused!.code, 1);
    t.match(refused!.stderr, /envoy\.filters\.http\.buffer.*disabled|disabled.*envoy\.filters\.http\.buffer/i);
    t.match(refused!.stderr, '[warning]');
    t.match(refused!.stderr, "failed to disable unknown extension 'envoy.clusters/static'");
    t.equal(mistyped!.code, 0, 'a missing one causes a warning');
    t.match(
      mistyped!.stderr,
      `failed to disable unknown extension '${name.replace('buffer', 'bufer')}'; did you mean '${name}'?`,
    );
    t.match(mistyped!.stderr, "failed to disable invalid extension name 'x'");
  },
);

t.test('--allow-unknown-static-fields and its old name: a warning, a counter, and the server starts', async (t) => {
  const config = { ...EMPTY, node: { id: 'a', colour: 'red' } };
  const refused = await runBaton(t, { config });
  t.equal(refused.code, 1);
  t.match(refused.stderr, /node.*colour/);
  for (const option of ['--allow-unknown-static-fields', '--allow-unknown-fields']) {
    const baton = await startBaton(t, { config, args: [option] });
    t.match(baton.stderr, /\[warning\].*colour/);
    t.equal(await baton.stat('server.static_unknown_fields'), 1);
    await baton.stop();
  }
});

t.test('--file-flush-min-size-kb: a full buffer is written before the flush interval', async (t) => {
  const path = join(tempDir(t), 'access');
  const manager = {
    route_config: {
      name: 'all',
      virtual_hosts: [
        { name: 'all', domains: ['*'], routes: [{ match: { prefix: '/' }, direct_response: { status: 204 } }] },
      ],
    },
    access_log: [fileAccessLog(path, '%REQ(:PATH)%\n')],
  };
  const config = bootstrap({ listeners: [httpListener('web', 0, manager)], clusters: [] });
  const args = ['--file-flush-interval-msec', '3600000', '--file-flush-min-size-kb', '1'];
  const baton = await startBaton(t, { config, args });
  const port = await baton.listenerPort('web');
  const target = `/${'x'.repeat(400)}`;
  await httpRequest(port, target);
  t.equal(readFileSync(path, 'utf8'), '', 'one line stays in the buffer');
  for (let index = 0; index < 3; index++) await httpRequest(port, target);
  await waitFor(() => readFileSync(path, 'utf8') !== '', { what: 'the full buffer to be written' });
  await baton.stop();
});

async function commandLineOptions(baton: BatonProcess): Promise<Record<string, unknown>> {
  const { body } = await baton.admin('/server_info');
  return (JSON.parse(body) as { command_line_options: Record<string, unknown> }).command_line_options;
}

/** Returns the first non-loopback IPv6 address of this machine; the loopback address where there is none. */
function ownAddress6(): string {
  const all = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  const isOwn = ({ internal, family, address }: (typeof all)[number]) =>
    !internal && family === 'IPv6' && !address.startsWith('fe80:');
  return all.find(isOwn)?.address ?? '::1';
}
