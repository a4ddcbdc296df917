// adaptive_concurrency: the limit of requests in flight follows the latency of the hosts, with the answers and stats of Envoy 1.40.

import { createServer, type ServerResponse } from 'node:http';
import t from 'tap';
import { besideEnvoy, type ProxyProgram } from '../../harness/envoy.js';
import {
  bootstrap,
  type Config,
  connectRaw,
  ROUTER_FILTER,
  routeAllTo,
  startBaton,
  staticCluster,
  type Teardown,
  waitFor,
} from '../../harness/index.js';
import { type HttpProxy, startProxy } from '../proxy.js';

const held: ServerResponse[] = [];
/** Holds requests for /hold. */
const host = createServer((request, response) => {
  if (request.url === '/hold') held.push(response);
  else setTimeout(() => response.end('served'), 5);
});
await new Promise<void>((resolve) => host.listen(0, '127.0.0.1', resolve));
t.teardown(() => {
  host.closeAllConnections();
  host.close();
});
const { port } = host.address() as { port: number };

function filter(limit: Config, rtt: Config, more: Config = {}): Config {
  return {
    name: 'adaptive',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.filters.http.adaptive_concurrency.v3.AdaptiveConcurrency',
      gradient_controller_config: {
        concurrency_limit_params: { concurrency_update_interval: '0.1s', ...limit },
        min_rtt_calc_params: rtt,
      },
      ...more,
    },
  };
}

function start(t: Teardown, program: ProxyProgram, own: Config, concurrency = 1): Promise<HttpProxy> {
  return startProxy(t, {
    ...program,
    args: ['-l', 'error', '--concurrency', `${concurrency}`],
    listeners: { own: { http_filters: [own, ROUTER_FILTER], route_config: routeAllTo('host') } },
    clusters: [staticCluster('host', port)],
  });
}

const STAT = 'http.own.adaptive_concurrency.gradient_controller';

besideEnvoy('while the round trip is measured few requests are in flight', async (t, program) => {
  const own = filter({}, { interval: '60s', request_count: 3, min_concurrency: 1, jitter: {} });
  const { baton, get } = await start(t, program, own);
  await baton.waitForStats({ [`${STAT}.concurrency_limit`]: 1, [`${STAT}.min_rtt_calculation_active`]: 1 });
  const first = get('/hold');
  await waitFor(() => held.length === 1, { what: 'the first request' });
  const refused = await get('/');
  t.match(refused, { status: 503, body: 'reached concurrency limit' });
  t.equal(refused.headers['content-type'], 'text/plain');
  held.pop()!.end('served');
  t.match(await first, { status: 200 });
  for (const path of ['/', '/']) t.match(await get(path), { status: 200, body: 'served' });
  await baton.waitForStats({ [`${STAT}.min_rtt_calculation_active`]: 0, [`${STAT}.rq_blocked`]: 1 });
  t.ok((await baton.stat(`${STAT}.min_rtt_msecs`))! >= 4, 'the round trip is measured');
  for (let count = 0; count < 5; count++) t.match(await get('/'), { status: 200 });
  await waitFor(async () => (await baton.stat(`${STAT}.concurrency_limit`))! > 1, { what: 'a higher limit' });
  t.ok((await baton.stat(`${STAT}.gradient`))! >= 500);
  t.ok((await baton.stat(`${STAT}.sample_rtt_msecs`))! >= 4);
});

besideEnvoy(
  'the limit falls while hosts are slower than they should be, and is at least the minimum',
  async (t, program) => {
    const own = filter({ min_concurrency_limit: 2, max_concurrency_limit: 50 }, { fixed_value: '0.001s' });
    const { baton, get } = await start(t, program, own);
    await baton.waitForStats({
      [`${STAT}.concurrency_limit`]: 2,
      [`${STAT}.min_rtt_msecs`]: 1,
      [`${STAT}.min_rtt_calculation_active`]: 0,
    });
    await waitFor(
      async () => {
        await get('/');
        return (await baton.stat(`${STAT}.gradient`)) === 500;
      },
      { what: 'the least gradient' },
    );
    t.equal(await baton.stat(`${STAT}.concurrency_limit`), 2);
  },
);

besideEnvoy('the limit rises to the maximum while hosts are fast', async (t, program) => {
  const own = filter({ max_concurrency_limit: 20 }, { fixed_value: '10s' });
  const { baton, get } = await start(t, program, own);
  await waitFor(
    async () => {
      await get('/');
      return (await baton.stat(`${STAT}.concurrency_limit`)) === 20;
    },
    { what: 'the maximum' },
  );
  t.equal(await baton.stat(`${STAT}.gradient`), 2000);
});

besideEnvoy(
  'the status of rejected requests is configured, and aborted requests leave no trace',
  async (t, program) => {
    const rtt = { interval: '60s', min_concurrency: 1 };
    const own = filter({}, rtt, { concurrency_limit_exceeded_status: { code: 429 } });
    const { get, port } = await start(t, program, own);
    const client = await connectRaw(t, port);
    client.write('GET /hold HTTP/1.1\r\nhost: h\r\n\r\n');
    await waitFor(() => held.length === 1, { what: 'the request' });
    t.match(await get('/'), { status: 429 });
    client.destroy();
    await waitFor(async () => (await get('/')).status === 200, { what: 'a free place' });
    held.pop();
  },
);

besideEnvoy('runtime switches the filter off', async (t, program) => {
  const rtt = { interval: '60s', min_concurrency: 1 };
  const own = filter({}, rtt, { enabled: { default_value: false, runtime_key: 'adaptive.on' } });
  const { get } = await start(t, program, own);
  const first = get('/hold');
  await waitFor(() => held.length === 1, { what: 'the first request' });
  t.match(await get('/'), { status: 200 });
  held.pop()!.end();
  await first;
});

t.test('all workers have one limit together', async (t) => {
  const own = filter({}, { interval: '60s', min_concurrency: 2 });
  const { baton, get } = await start(t, { command: undefined }, own, 2);
  const first = [get('/hold'), get('/hold')];
  await waitFor(() => held.length === 2, { what: 'two requests' });
  for (let count = 0; count < 8; count++) t.match(await get('/'), { status: 503 });
  await baton.waitForStats({ [`${STAT}.concurrency_limit`]: 2, [`${STAT}.rq_blocked`]: 8 });
  for (const response of held.splice(0)) response.end();
  await Promise.all(first);
});

t.test('a controller without a round trip is refused', async (t) => {
  for (const [rtt, text] of [
    [{}, /min_rtt_calc_params: it needs an interval/],
    [{ fixed_value: '0.0001s' }, /fixed_value: it must be at least 0\.001s/],
  ] as const) {
    const listener = {
      name: 'l',
      address: { socket_address: { address: '127.0.0.1', port_value: 0 } },
      filter_chains: [
        {
          filters: [
            {
              name: 'http',
              typed_config: {
                '@type':
                  'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager',
                stat_prefix: 'l',
                http_filters: [filter({}, rtt), ROUTER_FILTER],
                route_config: routeAllTo('host'),
              },
            },
          ],
        },
      ],
    };
    const config = bootstrap({ listeners: [listener], clusters: [staticCluster('host', port)] });
    const baton = await startBaton(t, { args: ['--mode', 'validate'], wait: 'spawned', config });
    await baton.exited;
    t.match(baton.stderr, text);
  }
});
