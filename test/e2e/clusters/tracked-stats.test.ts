// track_cluster_stats: histograms of the sizes of messages and of the used share of timeouts. All numbers are Envoy's.

import t from 'tap';
import { besideEnvoy } from '../harness/envoy.js';
import { type BatonProcess, type Config, freePort, staticCluster, waitFor } from '../harness/index.js';
import { managerOf, routeTo, startProxy } from '../http/proxy.js';
import { response, startRawUpstream } from '../http/raw-upstream.js';

const host = await startRawUpstream(t, ({ path, socket }) => {
  if (path === '/slow') return;
  if (path === '/cut') socket.destroy();
  else if (path === '/chunks')
    socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nx-a: b\r\n\r\n3\r\nabc\r\n0\r\n\r\n');
  else if (path === '/early') socket.write(`HTTP/1.1 103 Early\r\nx-e: 1\r\n\r\n${response(200, 'hello')}`);
  else socket.write(response(path === '/503' ? 503 : 200, 'hello'));
});
const ALL = { timeout_budgets: true, request_response_sizes: true };
const RETRY = { retry_on: '5xx', num_retries: 1, retry_back_off: { base_interval: '0.001s', max_interval: '0.001s' } };

/** What the histograms of a cluster have gained: number of samples and their sum, rounded down, by name. */
type Gains = Readonly<Record<string, readonly [count: number, sum: number]>>;

const REQUEST = { rq_headers_count: 1, rq_headers_size: 1, rq_body_size: 1 };
const RESPONSE = { rs_headers_count: 1, rs_headers_size: 1, rs_body_size: 1 };

besideEnvoy('each try is measured', async (t, program) => {
  const dead = await freePort();
  const { baton, on } = await startProxy(t, {
    ...program,
    listeners: {
      main: managerOf([
        routeTo({ path: '/slow' }, 'host', { timeout: '0.1s' }),
        routeTo({ path: '/503' }, 'host', { timeout: '5s', retry_policy: RETRY }),
        routeTo({ path: '/dead' }, 'dead'),
        routeTo({ prefix: '/' }, 'host'),
      ]),
    },
    clusters: [tracked('host', host.port, ALL), tracked('dead', dead, ALL)],
    extra: { stats_flush_on_admin: true },
  });
  let cluster = 'host';
  const gained = async (path: string, counts: Readonly<Record<string, number>>): Promise<Gains> => {
    const before = await histograms(baton, cluster);
    await on('main', path, { method: 'POST', body: 'twelve bytes', headers: { 'x-request-id': 'one' } });
    return waitFor(
      async () => {
        const after = await histograms(baton, cluster);
        const gains = Object.entries(after).map(([name, [count, sum]]): [string, [number, number]] => {
          const [countBefore, sumBefore] = before[name] ?? [0, 0];
          return [name, [count - countBefore, Math.floor(sum - sumBefore)]];
        });
        const changed: Gains = Object.fromEntries(gains.filter(([, [count]]) => count > 0));
        const isComplete = Object.entries(counts).every(([name, count]) => changed[name]?.[0] === count);
        return isComplete ? changed : undefined;
      },
      { what: `the samples of ${path}` },
    );
  };

  const plain = await gained('/', { ...REQUEST, ...RESPONSE, ...BUDGETS });
  t.same(sizes(plain), {
    rq_body_size: [1, 12],
    rq_headers_count: [1, 8],
    rs_body_size: [1, 5],
    rs_headers_count: [1, 2],
    rs_headers_size: [1, 25],
  });
  const chunks = await gained('/chunks', { ...REQUEST, ...RESPONSE, ...BUDGETS });
  t.same(sizes(chunks), {
    rq_body_size: [1, 12],
    rq_headers_count: [1, 8],
    rs_body_size: [1, 3],
    rs_headers_count: [1, 3],
    rs_headers_size: [1, 38],
  });
  const early = await gained('/early', { ...REQUEST, ...RESPONSE, ...BUDGETS });
  t.same(sizes(early), {
    rq_body_size: [1, 12],
    rq_headers_count: [1, 8],
    rs_body_size: [1, 5],
    rs_headers_count: [1, 4],
    rs_headers_size: [1, 39],
  });
  const tries = await gained('/503', { rq_body_size: 2, rs_body_size: 2, [PER_TRY]: 2, [WHOLE]: 1 });
  t.same(tries['rq_body_size'], [2, 24], 'a retry sends the body again');
  const cut = await gained('/cut', { ...REQUEST, [PER_TRY]: 1 });
  t.same(
    Object.keys(cut).sort(),
    [...Object.keys(REQUEST), PER_TRY].sort(),
    'without a response, and no timeout ended',
  );
  const slow = await gained('/slow', { ...REQUEST, [WHOLE]: 1 });
  t.ok(slow[WHOLE]![1] >= 90, 'the whole timeout was used');
  t.notOk('rs_headers_size' in slow);
  t.notOk(PER_TRY in slow);
  cluster = 'dead';
  const none = await gained('/dead', { ...REQUEST, [PER_TRY]: 1 });
  t.same(none['rq_body_size'], [1, 0], 'nothing was sent');
});

besideEnvoy('a cluster has only the histograms that it asks for', async (t, program) => {
  const { baton } = await startProxy(t, {
    ...program,
    listeners: { main: managerOf([routeTo({ prefix: '/' }, 'none')]) },
    clusters: [
      tracked('none', host.port, {}),
      tracked('budgets', host.port, { timeout_budgets: true }),
      tracked('sizes', host.port, { request_response_sizes: true }),
      { ...staticCluster('old', host.port), track_timeout_budgets: true },
    ],
  });
  const { body } = await baton.admin('/stats?filter=upstream_.*_(budget|body|headers)_');
  t.same(
    body
      .trim()
      .split('\n')
      .map((line) => line.split(':')[0])
      .sort(),
    [
      'cluster.budgets.upstream_rq_timeout_budget_per_try_percent_used',
      'cluster.budgets.upstream_rq_timeout_budget_percent_used',
      'cluster.old.upstream_rq_timeout_budget_per_try_percent_used',
      'cluster.old.upstream_rq_timeout_budget_percent_used',
      'cluster.sizes.upstream_rq_body_size',
      'cluster.sizes.upstream_rq_headers_count',
      'cluster.sizes.upstream_rq_headers_size',
      'cluster.sizes.upstream_rs_body_size',
      'cluster.sizes.upstream_rs_headers_count',
      'cluster.sizes.upstream_rs_headers_size',
    ],
  );
});

const WHOLE = 'rq_timeout_budget_percent_used';
const PER_TRY = 'rq_timeout_budget_per_try_percent_used';
const BUDGETS = { [WHOLE]: 1, [PER_TRY]: 1 };

function tracked(name: string, port: number, track: Config): Config {
  return { ...staticCluster(name, port), track_cluster_stats: track };
}

/** Without the size of the request's head, which depends on the port. */
function sizes(gains: Gains): Gains {
  return Object.fromEntries(Object.entries(gains).filter(([name]) => /body|^rs_|headers_count/.test(name)));
}

/** Returns the samples of a cluster's tracked histograms, as of the last flush, which this request triggers. */
async function histograms(baton: BatonProcess, cluster: string): Promise<Record<string, [number, number]>> {
  await baton.admin('/stats?filter=none');
  const { body } = await baton.admin('/stats/prometheus?filter=_(budget|body|headers)_');
  const found: Record<string, [number, number]> = {};
  for (const line of body.split('\n')) {
    const [, name, part, value] =
      new RegExp(`^envoy_cluster_upstream_(.*)_(count|sum){envoy_cluster_name="${cluster}"} (.*)$`).exec(line) ?? [];
    if (name !== undefined) (found[name] ??= [0, 0])[part === 'count' ? 0 : 1] = Number(value);
  }
  return found;
}
