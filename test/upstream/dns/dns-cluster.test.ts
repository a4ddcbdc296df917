import t from 'tap';
import { Random } from '../../../src/common/random.js';
import { addressText } from '../../../src/io/addresses/address.js';
import { TimingWheel } from '../../../src/io/time/timing-wheel.js';
import type { DiscoverySpec, DnsSettings } from '../../../src/upstream/discovery-config.js';
import { DnsCluster } from '../../../src/upstream/dns/dns-cluster.js';
import type { DnsResult } from '../../../src/upstream/dns/resolver.js';

const DNS: DnsSettings = {
  family: 'V4_ONLY',
  refreshMs: 5000,
  respectTtl: false,
  minRefreshMs: 0,
  jitterMs: 0,
  failureRefresh: undefined,
  resolver: undefined,
};
const TIMEOUT: DnsResult = { status: 'timeout' };
const found = (addresses: string, ttlMs = 0): DnsResult => ({
  status: 'found',
  addresses: addresses.split(' '),
  ttlMs,
});

/** A cluster whose answers and clock the test controls. */
function clusterOf(names: string[], dns: Partial<DnsSettings> = {}, type: DiscoverySpec['type'] = 'STRICT_DNS') {
  const wheel = new TimingWheel({
    nowMs: 0,
    onError: (error) => {
      throw error;
    },
  });
  const waiting = new Map<string, (result: DnsResult) => void>();
  const counts: Record<string, number> = {};
  const lists: string[] = [];
  const events: string[] = [];
  let nowMs = 0;
  const endpoints = names.map((host, i) => ({
    host,
    port: 80 + i,
    path: '',
    hostname: '',
    weight: 1,
    priority: 0,
    locality: { region: '', zone: '', subZone: '' },
    healthFlags: 0,
    isCanary: false,
  }));
  const cluster = new DnsCluster(
    { type, endpoints, dns: { ...DNS, ...dns } },
    {
      timers: wheel,
      random: new Random(1),
      resolve: (name) => new Promise((resolve) => waiting.set(name, resolve)),
      count: (stat) => {
        counts[stat] = (counts[stat] ?? 0) + 1;
      },
      onHosts: (hosts) => {
        lists.push(hosts.map((host) => `${host.key ?? ''}${addressText(host.address)}`).join(' '));
        events.push(`hosts of ${hosts[0]?.hostname}`);
      },
      onInitialized: () => events.push('initialized'),
    },
  );
  return {
    cluster,
    counts,
    lists,
    events,
    /** Names with a pending resolution. */
    asked: () => [...waiting.keys()],
    async answer(name: string, result: DnsResult) {
      waiting.get(name)!(result);
      waiting.delete(name);
      await new Promise(setImmediate);
    },
    pass(ms: number) {
      nowMs += ms;
      wheel.advance(nowMs);
    },
    nextInMs: () => wheel.nextWakeMs() - nowMs,
  };
}

t.test('STRICT_DNS: every address of every name is a host, in the order of the configuration', async (t) => {
  const c = clusterOf(['a', 'b']);
  c.cluster.start();
  t.same(c.asked(), ['a', 'b']);
  await c.answer('b', found('10.0.0.3'));
  t.same(c.events, ['hosts of b', 'initialized'], 'a silent name does not prevent the cluster from serving');
  await c.answer('a', found('10.0.0.1 10.0.0.2'));
  t.same(c.lists, ['10.0.0.3:81', '10.0.0.1:80 10.0.0.2:80 10.0.0.3:81']);
  t.same(c.counts, { update_attempt: 2, update_success: 2 });
  t.equal(c.events.filter((event) => event === 'initialized').length, 1);
});

t.test('names are resolved at the refresh rate, and only changed lists are reported', async (t) => {
  const c = clusterOf(['a']);
  c.cluster.start();
  await c.answer('a', found('10.0.0.1 10.0.0.2', 60_000));
  c.pass(4999);
  t.same(c.asked(), []);
  c.pass(1);
  t.same(c.asked(), ['a']);
  await c.answer('a', found('10.0.0.2 10.0.0.1', 60_000));
  t.equal(c.lists.length, 1, 'another order is not a change');
  t.equal(c.counts['update_no_rebuild'], 1);
  c.pass(5000);
  await c.answer('a', found('10.0.0.2'));
  t.same(c.lists, ['10.0.0.1:80 10.0.0.2:80', '10.0.0.2:80']);
});

t.test('respect_dns_ttl: the TTL is the refresh rate, unless it is 0', async (t) => {
  const c = clusterOf(['a'], { respectTtl: true });
  c.cluster.start();
  await c.answer('a', found('10.0.0.1', 30_000));
  c.pass(29_999);
  t.same(c.asked(), []);
  c.pass(1);
  await c.answer('a', found('10.0.0.1', 0));
  c.pass(5000);
  t.same(c.asked(), ['a']);
});

t.test('a short TTL does not go below the minimum, and a jitter delays the next resolution', async (t) => {
  const c = clusterOf(['a'], { respectTtl: true, minRefreshMs: 3000 });
  c.cluster.start();
  await c.answer('a', found('10.0.0.1', 1000));
  c.pass(2999);
  t.same(c.asked(), []);
  c.pass(1);
  t.same(c.asked(), ['a']);
  const jittered = clusterOf(['a'], { jitterMs: 1000 });
  jittered.cluster.start();
  let early = 0;
  for (let round = 0; round < 100; round++) {
    await jittered.answer('a', found('10.0.0.1'));
    jittered.pass(4999);
    t.same(jittered.asked(), []);
    jittered.pass(500);
    early += jittered.asked().length;
    jittered.pass(501);
    t.same(jittered.asked(), ['a']);
  }
  t.ok(early > 25 && early < 75, `${early} of 100 in the first half of the jitter`);
});

t.test('a failure keeps the hosts, and is retried at the refresh rate or with back-off', async (t) => {
  const c = clusterOf(['a']);
  c.cluster.start();
  await c.answer('a', found('10.0.0.1'));
  c.pass(5000);
  await c.answer('a', TIMEOUT);
  t.equal(c.lists.length, 1);
  t.equal(c.counts['update_failure'], 1);
  c.pass(5000);
  t.same(c.asked(), ['a']);

  const b = clusterOf(['b'], { failureRefresh: { baseMs: 100, maxMs: 1000 } });
  b.cluster.start();
  for (const most of [100, 200, 400, 800, 1000, 1000]) {
    await b.answer('b', TIMEOUT);
    b.pass(most / 2 - 1);
    t.same(b.asked(), [], `not before half of ${most} ms`);
    b.pass(most / 2 + 2);
    t.same(b.asked(), ['b'], `within ${most} ms`);
  }
  t.same(b.events, ['initialized'], 'a failing name does not hold the server up');
  await b.answer('b', found('10.0.0.1'));
  b.pass(5000);
  await b.answer('b', TIMEOUT);
  b.pass(101);
  t.same(b.asked(), ['b'], 'a success ends the back-off');
});

t.test('a name without addresses: a STRICT_DNS cluster loses its hosts, a logical host stays', async (t) => {
  const c = clusterOf(['a']);
  c.cluster.start();
  await c.answer('a', found('10.0.0.1'));
  c.pass(5000);
  await c.answer('a', { status: 'not_found' });
  t.same(c.lists, ['10.0.0.1:80', '']);
  t.equal(c.counts['update_empty'], 1);

  const logical = clusterOf(['a'], {}, 'LOGICAL_DNS');
  logical.cluster.start();
  await logical.answer('a', found('10.0.0.1'));
  logical.pass(5000);
  await logical.answer('a', { status: 'not_found' });
  t.same(logical.lists, ['a:8010.0.0.1:80']);
  t.match(logical.counts, { update_success: 1, update_failure: 1, update_empty: undefined });
});

t.test('a logical host whose name has no address is retried as after a failure', async (t) => {
  const c = clusterOf(['a'], { refreshMs: 60_000, failureRefresh: { baseMs: 100, maxMs: 1000 } }, 'LOGICAL_DNS');
  c.cluster.start();
  await c.answer('a', { status: 'not_found' });
  t.same(c.events, ['initialized']);
  c.pass(101);
  t.same(c.asked(), ['a']);
});

t.test('LOGICAL_DNS: one host, identified by its name, with all addresses of the answer', async (t) => {
  const c = clusterOf(['a'], {}, 'LOGICAL_DNS');
  c.cluster.start();
  await c.answer('a', found('10.0.0.1 10.0.0.2'));
  c.pass(5000);
  await c.answer('a', found('10.0.0.1 10.0.0.3'));
  c.pass(5000);
  await c.answer('a', found('10.0.0.3 10.0.0.1'));
  // Connects begin with the first address, so that the order counts.
  t.same(c.lists, ['a:8010.0.0.1:80', 'a:8010.0.0.1:80', 'a:8010.0.0.3:80']);
});

t.test('a new version keeps the known addresses of names that it cannot resolve', async (t) => {
  const former = clusterOf(['a', 'b', 'c', 'd']);
  former.cluster.start();
  for (const [index, name] of ['a', 'b', 'c', 'd'].entries()) await former.answer(name, found(`10.0.0.${index + 1}`));
  const hosts = (c: ReturnType<typeof clusterOf>) =>
    c.cluster.inheritFrom(former.cluster).map(({ address }) => addressText(address));

  const next = clusterOf(['d', 'c', 'b', 'a', 'e']);
  next.cluster.start();
  await next.answer('a', found('10.0.0.9'));
  await next.answer('b', TIMEOUT);
  await next.answer('c', { status: 'not_found' });
  t.same(hosts(next), ['10.0.0.4:80', '10.0.0.2:82', '10.0.0.9:83'], 'of d nothing has come, of b a failure');
  await next.answer('d', found('10.0.0.4'));
  t.equal(next.counts['update_no_rebuild'], 2, 'the answer changes nothing');

  const logical = clusterOf(['a'], {}, 'LOGICAL_DNS');
  t.same(hosts(logical), ['10.0.0.1:80']);
  t.same(hosts(clusterOf(['a'], { family: 'AUTO' })), [], 'addresses of another family may not be permitted');
});

t.test('an IP address is not refreshed', async (t) => {
  const c = clusterOf(['10.0.0.1']);
  c.cluster.start();
  await c.answer('10.0.0.1', found('10.0.0.1', Number.POSITIVE_INFINITY));
  t.equal(c.nextInMs(), Number.POSITIVE_INFINITY);
});

t.test('after stop() nothing is resolved and no answer is reported', async (t) => {
  const c = clusterOf(['a', 'b']);
  c.cluster.start();
  await c.answer('a', found('10.0.0.1'));
  c.cluster.stop();
  await c.answer('b', found('10.0.0.2'));
  c.pass(60_000);
  t.same(c.asked(), []);
  t.equal(c.lists.length, 1);
});

t.test('a cluster without endpoints is initialized at once', async (t) => {
  const c = clusterOf([]);
  c.cluster.start();
  t.same(c.events, ['initialized']);
});
