// The network filter ratelimit: a service decides about connections. The expected results are those of Envoy 1.40.

import { besideEnvoy, type ProxyProgram } from '../harness/envoy.js';
import {
  bootstrap,
  type Config,
  fileAccessLog,
  HTTP2_CLUSTER,
  logLines,
  loopback,
  rawExchange,
  startBaton,
  startTcpUpstream,
  staticCluster,
  type Teardown,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { startRateLimitService } from '../http/extensions/ratelimit-service.js';
import { openStream } from './stream.js';

const NETWORK = 'type.googleapis.com/envoy.extensions.filters.network';
const ANSWERS = {
  ok: { overall_code: 'OK', dynamic_metadata: { a: 'b' } },
  over: { overall_code: 'OVER_LIMIT', dynamic_metadata: { a: 'c' } },
};

/** Returns a filter whose service answers in this way. */
function limits(answer: string, fields: Config = {}): Config {
  return {
    name: 'limits',
    typed_config: {
      '@type': `${NETWORK}.ratelimit.v3.RateLimit`,
      stat_prefix: answer,
      domain: 'connections',
      timeout: '10s',
      descriptors: [
        {
          entries: [
            { key: 'answer', value: answer },
            { key: 'k%PROTOCOL%', value: 'of-%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%-%PROTOCOL%' },
          ],
          limit: { requests_per_unit: 3, unit: 'HOUR' },
          hits_addend: 4,
        },
        { entries: [{ key: 'second', value: '' }] },
      ],
      rate_limit_service: { transport_api_version: 'V3', grpc_service: { envoy_grpc: { cluster_name: 'limits' } } },
      ...fields,
    },
  };
}

const LISTENERS: Readonly<Record<string, Config>> = {
  ok: limits('ok'),
  over: limits('over'),
  failing: limits('failing'),
  silent: limits('silent', { timeout: '0.1s' }),
  waiting: limits('silent', { stat_prefix: 'waiting', timeout: '60s' }),
  closed: limits('failing', { stat_prefix: 'closed', failure_mode_deny: true }),
};

async function start(t: Teardown, program: ProxyProgram) {
  const service = await startRateLimitService(t, ANSWERS);
  const host = await startTcpUpstream(t, (socket) => void socket.end('served'));
  const log = `${tempDir(t)}/log`;
  const format =
    '%RESPONSE_FLAGS% %DOWNSTREAM_LOCAL_CLOSE_REASON% %DYNAMIC_METADATA(envoy.filters.network.ratelimit)%\n';
  const proxy = {
    name: 'tcp',
    typed_config: {
      '@type': `${NETWORK}.tcp_proxy.v3.TcpProxy`,
      stat_prefix: 'tcp',
      cluster: 'host',
    },
  };
  const baton = await startBaton(t, {
    ...program,
    args: ['--file-flush-interval-msec', '20'],
    config: bootstrap({
      listeners: Object.entries(LISTENERS).map(([name, filter]) => ({
        name,
        address: loopback(0),
        access_log: [fileAccessLog(log, format)],
        filter_chains: [{ filters: [filter, proxy] }],
      })),
      clusters: [staticCluster('host', host.port), staticCluster('limits', service.port, HTTP2_CLUSTER)],
    }),
  });
  const connect = async (listener: string) => (await rawExchange(await baton.listenerPort(listener), '')).text;
  return { baton, connect, log, service };
}

besideEnvoy('a connection is served or closed as the service says', async (t, program) => {
  const { baton, connect, log, service } = await start(t, program);
  t.equal(await connect('ok'), 'served');
  t.equal(await connect('over'), '');
  t.equal(await connect('failing'), 'served');
  t.equal(await connect('silent'), 'served');
  t.equal(await connect('closed'), '');
  await waitFor(() => logLines(log).length === 5, { what: 'five lines' });
  const [ok, over, failing, silent, closed] = logLines(log);
  t.match(ok, /^- .* \{"a":"b"\}$/);
  t.equal(over, '- ratelimit_close_over_limit {"a":"c"}');
  t.match([failing, silent], [/ -$/, / -$/]);
  t.equal(closed, '- ratelimit_error_failure_mode_connection_close -');
  t.same(service.questions[0], {
    domain: 'connections',
    descriptors: [
      {
        entries: [
          { key: 'answer', value: 'ok' },
          { key: 'k%PROTOCOL%', value: 'of-127.0.0.1--' },
        ],
      },
      { entries: [{ key: 'second' }] },
    ],
  });
  const none = { total: 1, ok: 0, over_limit: 0, error: 0, failure_mode_allowed: 0, cx_closed: 0, active: 0 };
  const stats = {
    ok: { ...none, ok: 1 },
    over: { ...none, over_limit: 1, cx_closed: 1 },
    failing: { ...none, error: 1, failure_mode_allowed: 1 },
    closed: { ...none, error: 1, cx_closed: 1 },
  };
  for (const [name, counts] of Object.entries(stats)) t.same(await baton.stats(`ratelimit.${name}.`), counts, name);

  // Envoy does not observe the reset before it has an answer.
  if (program.command !== undefined) return;
  const client = await openStream(t, await baton.listenerPort('waiting'));
  await baton.waitForStats({ 'ratelimit.waiting.active': 1 });
  client.reset();
  await baton.waitForStats({
    'ratelimit.waiting.active': 0,
    'ratelimit.waiting.error': 0,
    'cluster.limits.upstream_rq_active': 0,
  });
});
