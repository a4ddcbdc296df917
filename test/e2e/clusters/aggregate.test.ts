// Aggregate clusters. The expected results are those of Envoy 1.40.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { besideEnvoy, type ProxyProgram } from '../harness/envoy.js';
import {
  bootstrap,
  type Config,
  connectRaw,
  fileAccessLog,
  httpListener,
  httpRequest,
  startBaton,
  startUpstream,
  staticCluster,
  type Teardown,
  tcpListener,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { managerOf, routeTo } from '../http/proxy.js';

function aggregate(name: string, ...clusters: string[]): Config {
  return {
    name,
    lb_policy: 'CLUSTER_PROVIDED',
    connect_timeout: '2s',
    cluster_type: {
      name: 'envoy.clusters.aggregate',
      typed_config: {
        '@type': 'type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig',
        clusters,
      },
    },
  };
}

interface Hosts {
  readonly up?: number;
  readonly down?: number;
  readonly priority?: number;
}

/** Returns a cluster with healthy and unhealthy hosts. */
function cluster(name: string, port: number, ...groups: Hosts[]): Config {
  // Distinct addresses of the loopback interface.
  const endpoint = (octet: number, health_status: string) => ({
    health_status,
    endpoint: { address: { socket_address: { address: `127.0.0.${octet}`, port_value: port } } },
  });
  return {
    name,
    type: 'STATIC',
    connect_timeout: '2s',
    load_assignment: {
      cluster_name: name,
      endpoints: groups.map(({ down = 0, priority = 0, up = 0 }) => ({
        priority,
        lb_endpoints: [
          ...Array.from({ length: up }, (_, index) => endpoint(10 * priority + 1 + index, 'HEALTHY')),
          ...Array.from({ length: down }, (_, index) => endpoint(10 * priority + 100 + index, 'UNHEALTHY')),
        ],
      })),
    },
  };
}

async function start(t: Teardown, program: ProxyProgram, clustersOf: (one: number, two: number) => Config[]) {
  const one = await startUpstream(
    t,
    ({ headers }, response) => {
      // Not in the answer to a health check.
      if (headers['user-agent'] !== 'Envoy/HC') response.setHeader('x-envoy-immediate-health-check-fail', 'true');
      response.end('one');
    },
    0,
    '0.0.0.0',
  );
  const two = await startUpstream(t, (_, response) => void response.end('two'), 0, '0.0.0.0');
  const log = join(tempDir(t), 'log');
  const access_log = [fileAccessLog(log, '%UPSTREAM_CLUSTER% %RESPONSE_FLAGS%\n')];
  const baton = await startBaton(t, {
    ...program,
    args: ['-l', 'warning', '--concurrency', '1', '--file-flush-interval-msec', '20'],
    config: bootstrap({
      listeners: [
        httpListener('in', 0, managerOf([routeTo({ prefix: '/' }, 'all')], { access_log })),
        tcpListener('tcp', 0, { cluster: 'all' }),
      ],
      clusters: clustersOf(one.port, two.port),
    }),
  });
  const port = await baton.listenerPort('in');
  return {
    baton,
    log,
    tcp: await baton.listenerPort('tcp'),
    async ask(times: number) {
      const counts: Record<string, number> = {};
      for (let sent = 0; sent < times; sent++) {
        const { body, status } = await httpRequest(port);
        const answer = status === 200 ? body : `${status} ${body}`;
        counts[answer] = (counts[answer] ?? 0) + 1;
      }
      return counts;
    },
  };
}

besideEnvoy('requests go to the first cluster that has healthy hosts', async (t, program) => {
  const { ask, baton, log, tcp } = await start(t, program, (one, two) => [
    aggregate('all', 'missing', 'empty', 'down', 'first', 'second'),
    { name: 'empty', type: 'STATIC' },
    cluster('down', two, { down: 2 }),
    cluster('first', one, { up: 2 }),
    cluster('second', two, { up: 2 }),
  ]);
  t.same(await ask(6), { one: 6 });
  const raw = await connectRaw(t, tcp);
  raw.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
  await raw.readUntil('one');
  raw.destroy();
  await baton.waitForStats({
    'cluster.first.upstream_rq_total': 7,
    'cluster.all.upstream_rq_total': 0,
    'cluster.all.upstream_rq_200': 6,
    'cluster.all.membership_total': 0,
  });
  t.equal(await baton.stat('cluster.second.upstream_rq_total'), 0);
  await waitFor(() => readFileSync(log, 'utf8').split('\n').length > 6);
  t.equal(readFileSync(log, 'utf8').split('\n')[0], 'all -');
});

besideEnvoy('a part of the requests goes to the next cluster as hosts of the first fail', async (t, program) => {
  const { ask } = await start(t, program, (one, two) => [
    aggregate('all', 'first', 'second'),
    // A quarter of its hosts can bear 35 % of the load.
    cluster('first', one, { up: 1, down: 3 }),
    cluster('second', two, { up: 1 }),
  ]);
  const { one = 0, two = 0 } = await ask(300);
  t.equal(one + two, 300);
  t.ok(one > 60 && one < 160, `${one} to the first cluster`);
});

besideEnvoy('a cluster is used with all of its priorities before the next one', async (t, program) => {
  const { ask } = await start(t, program, (one, two) => [
    aggregate('all', 'first', 'second'),
    cluster('first', one, { down: 1 }, { up: 1, priority: 1 }),
    cluster('second', two, { up: 1 }),
  ]);
  t.same(await ask(10), { one: 10 });
});

besideEnvoy('requests fail without hosts', async (t, program) => {
  const { ask, baton } = await start(t, program, () => [
    aggregate('all', 'missing', 'empty'),
    { name: 'empty', type: 'STATIC' },
  ]);
  t.same(await ask(2), { '503 no healthy upstream': 2 });
  await baton.waitForStats({ 'cluster.all.upstream_cx_none_healthy': 2 });
  t.equal(await baton.stat('cluster.empty.upstream_cx_none_healthy'), 0);
});

besideEnvoy('a host of an aggregate reports that it fails', async (t, program) => {
  const { ask, baton } = await start(t, program, (one) => [
    aggregate('all', 'first'),
    {
      ...cluster('first', one, { up: 1 }),
      health_checks: [
        {
          ...{ timeout: '1s', interval: '600s', no_traffic_interval: '600s' },
          ...{ unhealthy_threshold: 1, healthy_threshold: 1, http_health_check: { path: '/' } },
        },
      ],
    },
  ]);
  await baton.waitForStats({ 'cluster.first.membership_healthy': 1 });
  t.same(await ask(1), { one: 1 });
  await baton.waitForStats({ 'cluster.first.membership_healthy': 0 });
});

t.test('an aggregate needs CLUSTER_PROVIDED', async (t) => {
  const baton = await startBaton(t, {
    args: ['--mode', 'validate'],
    wait: 'spawned',
    config: bootstrap({
      listeners: [],
      clusters: [{ ...aggregate('all', 'a'), lb_policy: 'RANDOM' }, staticCluster('a', 1)],
    }),
  });
  t.equal((await baton.exited).code, 1);
  t.match(baton.stderr, /LB policy RANDOM is not valid for a cluster of type AGGREGATE/);
});
