// Erratic clients and hosts, many at once: afterwards all resources are released, other clients are served, and stats and logs
// agree.

import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import {
  bootstrap,
  type Config,
  freePort,
  httpListener,
  httpRequest,
  startBaton,
  startTcpUpstream,
  staticCluster,
  tcpListener,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { actAsErraticHost, pick, random, runErraticClient } from './erratic-peers.js';
import { managerOf, routeTo } from './proxy.js';
import { accountLog, hasFlag, type Line, readLines, readSamples, sumOf, sumOverHosts } from './stats-and-logs.js';

const CONVERSATIONS = 1500;
const AT_ONCE = 60;

// Sometimes it does not even read.
const upstream = await startTcpUpstream(t, (socket) => {
  socket.on('end', () => socket.end());
  socket.on('data', () => actAsErraticHost(socket));
  if (random() < 0.05) socket.pause();
});
const retry = {
  retry_policy: {
    retry_on: '5xx,reset,connect-failure',
    num_retries: 2,
    per_try_timeout: '0.05s',
    retry_back_off: { base_interval: '0.001s', max_interval: '0.01s' },
  },
};
const limits = {
  circuit_breakers: { thresholds: [{ max_connections: 20, max_pending_requests: 20, max_retries: 5 }] },
};
const buffer = {
  http_filters: [
    {
      name: 'buffer',
      typed_config: {
        '@type': 'type.googleapis.com/envoy.extensions.filters.http.buffer.v3.Buffer',
        max_request_bytes: 100_000,
      },
    },
    {
      name: 'router',
      typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' },
    },
  ],
};
const routes: Config[] = [
  routeTo({ prefix: '/retry' }, 'chaos', { timeout: '0.2s', ...retry }),
  routeTo({ prefix: '/upgrade' }, 'chaos', { timeout: '0.2s', upgrade_configs: [{ upgrade_type: 'websocket' }] }),
  routeTo({ prefix: '/closed' }, 'closed', retry),
  routeTo({ prefix: '/' }, 'chaos', { timeout: '0.2s', idle_timeout: '0.3s' }),
];
const timeouts = { stream_idle_timeout: '0.3s', request_timeout: '0.5s', delayed_close_timeout: '0.1s' };
const logs = tempDir(t);
const logOf = (name: string) => join(logs, name);
const logged = (name: string) => ({ access_log: [accountLog(logOf(name))] });
const tcp = { idle_timeout: '0.3s', max_downstream_connection_duration: '0.5s', max_connect_attempts: 2 };
const small = { per_connection_buffer_limit_bytes: 16_384 };
const baton = await startBaton(t, {
  config: bootstrap({
    listeners: [
      { ...httpListener('plain', 0, managerOf(routes, { ...timeouts, ...logged('plain') })), ...small },
      {
        ...httpListener('filtered', 0, managerOf(routes, { ...timeouts, ...buffer, ...logged('filtered') })),
        ...small,
      },
      { ...tcpListener('raw', 0, { cluster: 'raw', ...tcp, ...logged('raw') }), ...small },
      { ...tcpListener('refused', 0, { cluster: 'refused', ...tcp, ...logged('refused') }), ...small },
      httpListener('sane', 0, managerOf([routeTo({ prefix: '/' }, 'sane')])),
    ],
    clusters: [
      staticCluster('chaos', upstream.port, limits),
      staticCluster('closed', await freePort()),
      staticCluster('raw', upstream.port, limits),
      staticCluster('refused', await freePort()),
      staticCluster('sane', (await startTcpUpstream(t, answerEveryRequest)).port),
    ],
    extra: { stats_flush_interval: '0.1s' },
  }),
  args: ['-l', 'warning', '--concurrency', '2', '--file-flush-interval-msec', '50'],
});
const HTTP = ['plain', 'filtered'];
const TCP = ['raw', 'refused'];
const ports = new Map<string, number>();
for (const name of [...HTTP, ...TCP]) ports.set(name, await baton.listenerPort(name));
/** Number of clients of each listener. */
const conversations = new Map<string, number>();

t.test('broken conversations leave nothing behind', async (t) => {
  let started = 0;
  const worker = async () => {
    while (started++ < CONVERSATIONS) await converse(pick([...HTTP, ...HTTP, ...TCP]));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));

  const ofHttp = ['rq_active', 'cx_active', 'cx_upgrades_active', 'cx_rx_bytes_buffered', 'cx_tx_bytes_buffered'];
  const gauges = [
    ...HTTP.flatMap((name) => ofHttp.map((gauge) => `http.${name}.downstream_${gauge}`)),
    ...[...HTTP, ...TCP].map((name) => `${listener(name)}.downstream_cx_active`),
    ...['chaos', 'closed', 'raw', 'refused'].flatMap((name) => [
      `cluster.${name}.upstream_rq_active`,
      `cluster.${name}.upstream_rq_pending_active`,
      ...['cx_open', 'rq_pending_open', 'rq_open', 'rq_retry_open'].map(
        (breaker) => `cluster.${name}.circuit_breakers.default.${breaker}`,
      ),
    ]),
    ...['closed', 'refused'].map((name) => `cluster.${name}.upstream_cx_active`),
  ];
  const endUpstream = () => {
    for (const socket of upstream.sockets) socket.destroy();
  };
  endUpstream();
  const zeros = gauges.map((name) => [name, 0] as const);
  // Baton also accepts connections that had closed in the accept queue.
  const connections = [...conversations].map(
    ([name, count]) => [`${listener(name)}.downstream_cx_total`, count] as const,
  );
  await t.resolves(baton.waitForStats(Object.fromEntries([...zeros, ...connections])));
  // Includes connections opened for requests that were gone by then.
  const isAlone = async () => {
    endUpstream();
    return (await baton.stat('cluster.chaos.upstream_cx_active')) === 0;
  };
  await t.resolves(waitFor(isAlone, { what: 'the end of the last connection to the host' }));
});

for (const name of HTTP) {
  t.test(`each connection and request of '${name}' is counted once, and each request has a log line`, async (t) => {
    const stats = await baton.stats(`http.${name}.`);
    const ofListener = await baton.stats(`${listener(name)}.`);
    const count = (stat: string) => stats[`downstream_${stat}`] ?? 0;
    const lines = await linesOf(name, count('rq_total'));
    const linesWith = (is: (line: Line) => boolean) => lines.filter(is).length;

    t.ok(count('rq_total') > 100, 'enough requests to compare');
    t.equal(count('cx_destroy'), count('cx_total'));
    t.equal(count('cx_destroy_local') + count('cx_destroy_remote'), count('cx_destroy'));
    t.equal(count('cx_destroy_local_active_rq') + count('cx_destroy_remote_active_rq'), count('cx_destroy_active_rq'));
    t.equal(ofListener['downstream_cx_total'], count('cx_total'));
    t.equal(ofListener['downstream_cx_destroy'], count('cx_total'));
    const ofWorkers = [0, 1].map((index) => ofListener[`worker_${index}.downstream_cx_total`]!);
    t.equal(ofWorkers[0]! + ofWorkers[1]!, count('cx_total'));

    t.equal(lines.length, count('rq_total'));
    const classes = [1, 2, 3, 4, 5].map((each) => count(`rq_${each}xx`));
    t.equal(
      classes.reduce((sum, each) => sum + each, 0),
      count('rq_completed'),
    );
    for (const each of [2, 3, 4, 5]) {
      t.equal(
        linesWith(({ code }) => code.startsWith(`${each}`)),
        count(`rq_${each}xx`),
        `${each}xx`,
      );
      t.equal(ofListener[`http.${name}.downstream_rq_${each}xx`], count(`rq_${each}xx`), `${each}xx of the listener`);
    }
    t.equal(
      linesWith(({ flags, code }) => code === '0' && flags === '-'),
      0,
      'requests without a response were cancelled by their clients',
    );

    // Counted too: a response that a timeout breaks off, and a request that is answered before its end; but not one whose
    // host ends the response early. Of tunnels, whose requests never end, those that the host breaks off are counted.
    const isTimedOut = ({ details, code }: Line) => /_timeout$/.test(details) && !/^(408|504)$/.test(code);
    const isCutByHost = ({ details }: Line) => /^upstream_reset_after_response_started/.test(details);
    const isTunnel = ({ code }: Line) => code === '101';
    const isReset = (line: Line) =>
      hasFlag('DC')(line) || isTimedOut(line) || (line.requestDuration === '-' && isCutByHost(line) === isTunnel(line));
    t.equal(linesWith(isReset), count('rq_rx_reset'));
    t.equal(linesWith(hasFlag('DPE')), count('cx_protocol_error'));
    t.equal(linesWith(hasFlag('SI')), count('rq_idle_timeout'));
    t.equal(linesWith(hasFlag('NR')), stats['no_route']);
    t.equal(
      linesWith(({ details }) => details === 'request_overall_timeout'),
      count('rq_timeout'),
    );
    t.equal(
      linesWith(({ details }) => details === 'upgrade_failed'),
      count('rq_ws_on_non_ws_route'),
    );
    t.equal(stats['rq_reset_after_downstream_response_started'], 0, 'there are no gRPC calls');
    t.equal(
      linesWith(({ attempts }) => Number(attempts) > 0) + stats['no_route']!,
      stats['rq_total'],
      'requests that reached the router',
    );
    t.ok(sumOf(lines, 'received') <= count('cx_rx_bytes_total'));
    t.ok(sumOf(lines, 'sent') <= count('cx_tx_bytes_total'));

    const labels = `{envoy_http_conn_manager_prefix="${name}"}`;
    const brokenResponses = linesWith((line) => hasFlag('DPE')(line) && line.code !== '400');
    const endedTunnels = linesWith((line) => isTunnel(line) && !isReset(line));
    const answered =
      count('rq_total') - linesWith(hasFlag('DC')) - count('rq_tx_reset') - brokenResponses - endedTunnels;
    await haveSamples(t, `envoy_http_downstream_rq_time${labels}`, answered);
    await haveSamples(t, `envoy_http_downstream_cx_length_ms${labels}`, count('cx_total'));
  });
}

for (const name of TCP) {
  t.test(`each connection of '${name}' has a log line with the counted bytes`, async (t) => {
    const stats = await baton.stats(`tcp.${name}.`);
    const cluster = await baton.stats(`cluster.${name}.`);
    const lines = await linesOf(name, stats['downstream_cx_total']!);
    t.ok(lines.length > 50, 'enough connections to compare');
    t.equal(lines.length, stats['downstream_cx_total']);
    t.equal(sumOf(lines, 'received'), stats['downstream_cx_rx_bytes_total']);
    t.equal(sumOf(lines, 'sent'), stats['downstream_cx_tx_bytes_total']);
    t.equal(lines.filter((line) => line.termination === 'idle_timeout').length, stats['idle_timeout']);
    t.equal(lines.filter(hasFlag('DT')).length, stats['max_downstream_connection_duration']);
    t.equal(lines.filter(hasFlag('UF')).length, cluster['upstream_cx_connect_attempts_exceeded']);
    const overflows = cluster['upstream_cx_overflow']! + cluster['upstream_rq_pending_overflow']!;
    t.equal(lines.filter(hasFlag('UO')).length, overflows);
    t.equal(sumOf(lines, 'attempts'), cluster['upstream_cx_total']);
    const { upstream_rq_total, upstream_rq_cancelled, upstream_rq_pending_failure_eject } = cluster;
    t.equal(
      upstream_rq_total! + upstream_rq_cancelled! + upstream_rq_pending_failure_eject!,
      cluster['upstream_rq_pending_total'],
    );
  });
}

for (const name of ['chaos', 'closed', 'raw', 'refused']) {
  t.test(`cluster '${name}' counts each connection, attempt and response once`, async (t) => {
    const stats = await baton.stats(`cluster.${name}.`);
    const count = (stat: string) => stats[`upstream_${stat}`] ?? 0;
    t.equal(count('cx_destroy'), count('cx_total'));
    t.equal(count('cx_destroy_local') + count('cx_destroy_remote'), count('cx_destroy'));
    t.equal(
      count('cx_destroy_local_with_active_rq') + count('cx_destroy_remote_with_active_rq'),
      count('cx_destroy_with_active_rq'),
    );
    t.equal(await sumOverHosts(baton, name, 'cx_total'), count('cx_total'));
    t.equal(await sumOverHosts(baton, name, 'cx_connect_fail'), count('cx_connect_fail'));
    t.equal(await sumOverHosts(baton, name, 'rq_total'), count('rq_total'));
    const labels = `{envoy_cluster_name="${name}"}`;
    await haveSamples(t, `envoy_cluster_upstream_cx_length_ms${labels}`, count('cx_total'));
    if (count('cx_connect_fail') < count('cx_total')) {
      const connected = count('cx_total') - count('cx_connect_fail');
      await haveSamples(t, `envoy_cluster_upstream_cx_connect_ms${labels}`, connected);
    }
    if (TCP.includes(name)) return;

    const lines = HTTP.flatMap((each) => readLines(logOf(each))).filter(
      ({ attempts, cluster }) => cluster === name && Number(attempts) > 0,
    );
    const withoutConnection = count('rq_pending_overflow') + count('rq_pending_failure_eject') + count('rq_cancelled');
    t.equal(sumOf(lines, 'attempts'), count('rq_total') + withoutConnection, 'each attempt ends once');
    t.equal(
      lines.filter(hasFlag('UO')).length,
      count('rq_pending_overflow') + count('rq_retry_overflow'),
      'each overflow of a circuit breaker shows in a log line',
    );
    t.equal(lines.filter(hasFlag('URX')).length, count('rq_retry_limit_exceeded'));
    t.ok(sumOf(lines, 'attempts') - lines.length <= count('rq_retry'));
    for (const group of ['', 'internal.', 'external.', 'retry.']) {
      const sum = (each: string) => {
        const names = Object.keys(stats).filter((stat) => new RegExp(`^${group}upstream_rq_${each}$`).test(stat));
        return names.reduce((total, stat) => total + stats[stat]!, 0);
      };
      t.equal(sum('\\dxx'), stats[`${group}upstream_rq_completed`] ?? 0, `classes of '${group}'`);
      t.equal(sum('\\d{3}'), stats[`${group}upstream_rq_completed`] ?? 0, `codes of '${group}'`);
    }
    for (const code of ['200', '404', '502', '503']) {
      t.equal(lines.filter((line) => line.code === code).length, count(`rq_${code}`), `answers with ${code}`);
    }
    // A timeout between two attempts is not visible to the cluster.
    const timeouts = lines.filter(({ code, details }) => code === '504' && details !== 'stream_idle_timeout').length;
    t.ok(count('rq_504') <= timeouts && timeouts <= count('rq_504') + count('rq_retry'), 'answers with 504');
  });
}

t.test('other clients are served, and there were no internal errors', async (t) => {
  const port = await baton.listenerPort('sane');
  const answers = await Promise.all(Array.from({ length: 20 }, () => httpRequest(port)));
  t.ok(answers.every(({ status, body }) => status === 200 && body === 'ok'));
  t.equal(await baton.stat('server.envoy_bug_failures'), 0);
  t.equal(baton.stderr, '');
  await baton.stop();
});

/** Lines are written a little later than counted. */
async function linesOf(name: string, count: number): Promise<Line[]> {
  await waitFor(() => readLines(logOf(name)).length >= count, { what: `${count} lines of ${name}` });
  return readLines(logOf(name));
}

function listener(name: string): string {
  return `listener.${name}`;
}

/** Histograms show samples at the next flush. */
async function haveSamples(t: Test, histogram: string, count: number): Promise<void> {
  const isComplete = async () => ((await readSamples(baton)).get(histogram) ?? 0) === count;
  await t.resolves(waitFor(isComplete, { what: `${count} samples of ${histogram}` }));
}

function converse(name: string): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect({ port: ports.get(name)!, host: '127.0.0.1', allowHalfOpen: true });
    socket.on('error', () => {});
    socket.on('close', () => resolve());
    socket.on('end', () => socket.end());
    socket.on('connect', () => {
      conversations.set(name, (conversations.get(name) ?? 0) + 1);
      runErraticClient(socket);
    });
  });
}

function answerEveryRequest(socket: Socket): void {
  socket.on('data', () => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'));
  socket.on('end', () => socket.end());
}
