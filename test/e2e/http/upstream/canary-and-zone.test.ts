// Canary and zone stats: responses of canary hosts, and requests by source and destination zone.

import t from 'tap';
import { type Config, loopback, startUpstream, staticCluster } from '../../harness/index.js';
import { managerOf, routeTo, startProxy } from '../proxy.js';

const stable = await startUpstream(t, (_request, answer) => void answer.end('stable'));
const canary = await startUpstream(t, (_request, answer) => void answer.writeHead(404).end('canary'));
const silent = await startUpstream(t, () => {});
const sayingSo = await startUpstream(t, (_request, answer) => {
  answer.writeHead(200, { 'x-envoy-upstream-canary': 'true' }).end('canary');
});

const proxy = await startProxy(t, {
  listeners: {
    main: managerOf([
      ...['stable', 'next', 'says-so', 'nobody'].map((name) => routeTo({ path: `/${name}` }, name)),
      routeTo({ path: '/silent' }, 'silent', { timeout: '0.05s' }),
    ]),
  },
  clusters: [
    clusterOf('stable', stable.port, {}, 'b:c'),
    clusterOf('next', canary.port, { canary: true, stage: 'test' }, 'b'),
    clusterOf('silent', silent.port, { canary: true }, 'b'),
    clusterOf('says-so', sayingSo.port, { canary: 'true' }),
    { ...staticCluster('nobody', []), load_assignment: { cluster_name: 'nobody' } },
  ],
  args: ['-l', 'warning', '--service-zone', 'a'],
});

t.test('/clusters shows which hosts are canaries', async (t) => {
  const { body } = await proxy.baton.admin('/clusters');
  for (const [name, port, isCanary] of [
    ['stable', stable.port, false],
    ['next', canary.port, true],
    ['says-so', sayingSo.port, false],
  ] as const) {
    t.match(body, `${name}::127.0.0.1:${port}::canary::${isCanary}\n`, name);
  }
});

t.test('a canary response is also counted under canary., by host metadata or response header', async () => {
  for (const path of ['/stable', '/next', '/next', '/says-so', '/silent', '/nobody']) await proxy.get(path);
  await proxy.baton.waitForStats({
    'cluster.next.upstream_rq_completed': 2,
    'cluster.next.canary.upstream_rq_completed': 2,
    'cluster.next.canary.upstream_rq_404': 2,
    'cluster.next.canary.upstream_rq_4xx': 2,
    'cluster.says-so.canary.upstream_rq_200': 1,
    'cluster.silent.canary.upstream_rq_504': 1,
    'cluster.nobody.upstream_rq_503': 1,
  });
});

t.test('requests are counted by zone pair where both zones are known', async () => {
  await proxy.baton.waitForStats({
    'cluster.stable.zone.a.b_c.upstream_rq_completed': 1,
    'cluster.stable.zone.a.b_c.upstream_rq_200': 1,
    'cluster.stable.zone.a.b_c.upstream_rq_2xx': 1,
    'cluster.next.zone.a.b.upstream_rq_404': 2,
    'cluster.silent.zone.a.b.upstream_rq_504': 1,
  });
});

t.test('request durations are recorded by zone pair too', async (t) => {
  const { body } = await proxy.baton.admin('/stats?filter=\\.(canary|zone\\..*)\\.upstream_rq_(time|completed)$');
  t.strictSame(body.match(/^[^ ]+(?=:)/gm), [
    'cluster.next.canary.upstream_rq_completed',
    'cluster.next.zone.a.b.upstream_rq_completed',
    'cluster.says-so.canary.upstream_rq_completed',
    'cluster.silent.canary.upstream_rq_completed',
    'cluster.silent.zone.a.b.upstream_rq_completed',
    'cluster.stable.zone.a.b_c.upstream_rq_completed',
    'cluster.next.canary.upstream_rq_time',
    'cluster.next.zone.a.b.upstream_rq_time',
    'cluster.says-so.canary.upstream_rq_time',
    'cluster.stable.zone.a.b_c.upstream_rq_time',
  ]);
});

function clusterOf(name: string, port: number, metadata: Config, zone?: string): Config {
  const host = {
    endpoint: { address: loopback(port) },
    metadata: { filter_metadata: { 'envoy.lb': metadata } },
  };
  const group = { lb_endpoints: [host], ...(zone !== undefined && { locality: { zone } }) };
  return { ...staticCluster(name, []), load_assignment: { cluster_name: name, endpoints: [group] } };
}
