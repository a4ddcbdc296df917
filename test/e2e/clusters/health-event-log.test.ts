// Event logs of health checks (event_logger, event_log_path): the same lines as Envoy's, and files that follow the configuration.

import { existsSync, readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { ResourceFile } from '../dynamic/resource-file.js';
import { besideEnvoy } from '../harness/envoy.js';
import { bootstrap, type Config, freePort, startBaton, tempDir, waitFor } from '../harness/index.js';
import { managerOf, routeTo, startProxy } from '../http/proxy.js';
import { CheckedUpstream, http } from './checked-upstream.js';

const SINK = 'envoy.extensions.health_check.event_sinks.file.v3.HealthCheckEventFileSink';
const FAST: Config = { interval: '0.05s', no_traffic_interval: '0.05s', timeout: '5s' };

besideEnvoy('each change of the health of a host is an event', async (t, program) => {
  const directory = tempDir(t);
  const changes = join(directory, 'changes');
  const all = join(directory, 'all');
  const a = await CheckedUpstream.start(t, 'a');
  const dead = await freePort();
  const logged = { always_log_health_check_failures: true, always_log_health_check_success: true };
  const thresholds = { healthy_threshold: 2, unhealthy_threshold: 1 };
  const { on } = await startProxy(t, {
    ...program,
    listeners: { main: managerOf([routeTo({ prefix: '/' }, 'a')]) },
    clusters: [
      cluster('a', a.port, { ...http(), ...FAST, ...thresholds, event_logger: [sink(changes)] }),
      cluster('all', a.port, { ...http(), ...FAST, ...thresholds, ...logged, event_logger: [sink(all)] }),
      cluster('dead', dead, { ...FAST, tcp_health_check: {}, ...thresholds, event_log_path: join(directory, 'dead') }),
    ],
    args: ['--file-flush-interval-msec', '10'],
  });
  await waitFor(() => events(changes).length === 1 && events(all).length > 2, { what: 'the first checks' });
  a.answer = { status: 503 };
  await waitFor(() => events(changes).length === 2 && names(all).filter((name) => name === FAILURE).length > 2);
  a.answer = { status: 200 };
  await waitFor(
    () => events(changes).length === 3 && collapsed(names(all)).slice(-2).join() === `add_healthy_event,${SUCCESS}`,
  );
  a.answer = { status: 200, headers: { 'x-envoy-degraded': '' } };
  await waitFor(() => events(changes).length === 4 && names(all).includes('degraded_healthy_host'));
  a.answer = { status: 200 };
  await waitFor(() => events(changes).length === 5 && names(all).includes('no_longer_degraded_host'));
  a.headers = { 'x-envoy-immediate-health-check-fail': 'true' };
  await on('main', '/');
  await waitFor(() => events(changes).length >= 6);
  t.same(
    events(changes)
      .slice(0, 6)
      .map(({ timestamp, host, metadata, locality, ...rest }) => rest),
    [
      { add_healthy_event: { first_check: true } },
      { eject_unhealthy_event: { failure_type: 'ACTIVE', http_status_code: 503 } },
      { add_healthy_event: { first_check: false } },
      { degraded_healthy_host: {} },
      { no_longer_degraded_host: {} },
      { eject_unhealthy_event: { failure_type: 'PASSIVE', http_status_code: 0 } },
    ].map((event) => ({ health_checker_type: 'HTTP', cluster_name: 'a', ...event })),
  );
  const inAll = collapsed(names(all));
  t.same(inAll.slice(0, inAll.indexOf('no_longer_degraded_host') + 1), [
    'add_healthy_event',
    SUCCESS,
    'eject_unhealthy_event',
    FAILURE,
    SUCCESS,
    'add_healthy_event',
    SUCCESS,
    'degraded_healthy_host',
    SUCCESS,
    'no_longer_degraded_host',
  ]);
  const [first] = readFileSync(changes, 'utf8').split('\n');
  t.match(first, /"timestamp":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"/);
  t.equal(
    first!.replace(/"timestamp":"[^"]*"/, '"timestamp":""'),
    `{"health_checker_type":"HTTP","host":{"socket_address":{"protocol":"TCP","address":"127.0.0.1","port_value":${a.port},` +
      '"resolver_name":"","ipv4_compat":false,"network_namespace_filepath":""}},"cluster_name":"a",' +
      '"add_healthy_event":{"first_check":true},"timestamp":"",' +
      '"metadata":{"filter_metadata":{"envoy.lb":{"stage":"blue"}},"typed_filter_metadata":{}},' +
      '"locality":{"region":"north","zone":"n1","sub_zone":""}}',
  );
  t.match(await waitFor(() => events(join(directory, 'dead'))[0]), {
    health_checker_type: 'TCP',
    health_check_failure_event: { failure_type: 'NETWORK', first_check: true, http_status_code: 0 },
  });
});

t.test('files are rotated, and a cluster whose file cannot be opened is refused', async (t) => {
  const directory = tempDir(t);
  const path = join(directory, 'events');
  const a = await CheckedUpstream.start(t, 'a');
  const check = {
    ...http(),
    ...FAST,
    healthy_threshold: 1,
    unhealthy_threshold: 1,
    always_log_health_check_success: true,
  };
  const clusters = new ResourceFile(directory, 'clusters');
  const set = (log: string) =>
    clusters.write('envoy.config.cluster.v3.Cluster', cluster('a', a.port, { ...check, event_logger: [sink(log)] }));
  set(path);
  const baton = await startBaton(t, {
    config: bootstrap({
      listeners: [],
      clusters: [],
      extra: { node: { id: 'n', cluster: 'c' }, dynamic_resources: { cds_config: clusters.source } },
    }),
    args: ['--file-flush-interval-msec', '10'],
  });
  await waitFor(() => events(path).length > 1);
  renameSync(path, `${path}.1`);
  await baton.admin('/reopen_logs', { method: 'POST' });
  await waitFor(() => events(path).length > 1, { what: 'the new file' });
  set(join(directory, 'absent/events'));
  await baton.waitForStat('cluster_manager.cds.update_rejected', 1);
  await waitFor(() => baton.stderr.includes('absent/events'));
  const other = join(directory, 'other');
  set(other);
  await waitFor(() => existsSync(other) && events(other).length > 1, { what: 'the file of a new version' });
});

const SUCCESS = 'successful_health_check_event';
const FAILURE = 'health_check_failure_event';

function sink(path: string): Config {
  const typed_config = { '@type': `type.googleapis.com/${SINK}`, event_log_path: path };
  return { name: 'envoy.health_check.event_sink.file', typed_config };
}

function cluster(name: string, port: number, check: Config): Config {
  const address = { socket_address: { address: '127.0.0.1', port_value: port } };
  const endpoint = { endpoint: { address }, metadata: { filter_metadata: { 'envoy.lb': { stage: 'blue' } } } };
  const endpoints = [{ locality: { region: 'north', zone: 'n1' }, lb_endpoints: [endpoint] }];
  return { name, type: 'STATIC', health_checks: [check], load_assignment: { cluster_name: name, endpoints } };
}

/** Returns the complete lines of a log; none if it does not exist. */
function events(path: string): Record<string, unknown>[] {
  if (!existsSync(path)) return [];
  const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

/** Returns the kinds of the events of a log. */
function names(path: string): string[] {
  return events(path).map((event) => Object.keys(event).find((key) => /_event$|_host$/.test(key))!);
}

/** Returns a list without elements that equal the one before. */
function collapsed(list: readonly string[]): string[] {
  return list.filter((name, index) => name !== list[index - 1]);
}
