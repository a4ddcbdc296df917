// A cache of names with a test resolver and clock: what is queried when, and what its users learn.

import t from 'tap';
import { Random } from '../../../src/common/random.js';
import { addressText } from '../../../src/io/addresses/address.js';
import { TimingWheel } from '../../../src/io/time/timing-wheel.js';
import { DnsCache } from '../../../src/upstream/dns/dns-cache.js';
import { dnsCacheSpec } from '../../../src/upstream/dns/dns-cache-spec.js';
import type { DnsResult } from '../../../src/upstream/dns/resolver.js';

const found = (ip: string, ttlMs = 0): DnsResult => ({ status: 'found', addresses: [ip, '9.9.9.9'], ttlMs });

function cacheOf(config: object = {}) {
  const clock = { ms: 1000 };
  const timers = new TimingWheel({
    nowMs: clock.ms,
    onError: (error) => {
      throw error;
    },
  });
  const answers = new Map<string, DnsResult | undefined>();
  const queries: string[] = [];
  const events: string[] = [];
  const counts: Record<string, number> = {};
  let used = false;
  const cache = new DnsCache(dnsCacheSpec({ name: 'cache', ...config }), {
    timers,
    random: new Random(),
    now: () => clock.ms,
    count: (what) => void (counts[what] = (counts[what] ?? 0) + 1),
    sized: (names) => void (counts['num_hosts'] = names),
    resolve: (name, family) => {
      queries.push(`${name} ${family}`);
      const answer = answers.get(name);
      return answer === undefined ? new Promise(() => {}) : Promise.resolve(answer);
    },
  });
  const changed = () =>
    void events.push([...cache.hosts()].map(({ address, key }) => `${key}=${addressText(address)}`).join());
  cache.add({
    changed,
    removed: changed,
    failed: (key, details) => void events.push(`${key}: ${details}`),
    isUsed: () => used,
  });
  return {
    ...{ answers, cache, counts, events, queries },
    use: (isUsed: boolean) => void (used = isUsed),
    async pass(ms: number) {
      clock.ms += ms;
      timers.advance(clock.ms);
      await new Promise(setImmediate);
    },
  };
}

t.test('a name is queried once, and again when its TTL is over', async (t) => {
  const { answers, cache, counts, events, pass, queries, use } = cacheOf({ dns_min_refresh_rate: '2s' });
  answers.set('a.test', found('1.1.1.1', 10_000));
  cache.request('a.test:80');
  cache.request('a.test:80');
  await pass(0);
  t.same(events, ['a.test:80=1.1.1.1:80']);
  use(true);
  await pass(9900);
  t.equal(queries.length, 1);
  answers.set('a.test', found('1.1.1.2', 1));
  await pass(200);
  t.equal(queries.length, 2);
  t.equal(events.at(-1), 'a.test:80=1.1.1.2:80');
  // A name keeps its address when the answer fails.
  answers.set('a.test', { status: 'failed', reason: 'ESERVFAIL' });
  await pass(2100);
  t.equal(queries.length, 3);
  t.equal(events.length, 2);
  t.match(counts, { dns_query_attempt: 3, dns_query_success: 2, dns_query_failure: 1, host_address_changed: 2 });
});

t.test('an unused name is removed', async (t) => {
  const { answers, cache, counts, events, pass, use } = cacheOf({ host_ttl: '8s' });
  answers.set('a.test', found('1.1.1.1'));
  cache.request('a.test:80');
  use(true);
  await pass(0);
  await pass(5100);
  use(false);
  await pass(5100);
  t.equal(counts['num_hosts'], 1);
  await pass(5100);
  t.equal(counts['num_hosts'], 0);
  t.equal(events.at(-1), '');
});

t.test('an unused name is removed however long its answer is valid', async (t) => {
  const { answers, cache, counts, pass, queries, use } = cacheOf({ host_ttl: '10s' });
  answers.set('a.test', found('1.1.1.1', 2 ** 41));
  cache.request('a.test:80');
  await pass(0);
  use(true);
  await pass(10_100);
  t.equal(counts['num_hosts'], 1);
  use(false);
  await pass(10_100);
  t.equal(counts['num_hosts'], 0);
  t.equal(queries.length, 1);
});

t.test('a query that takes too long fails', async (t) => {
  const { cache, counts, events, pass } = cacheOf({ dns_query_timeout: '1s' });
  cache.request('slow.test:80');
  await pass(900);
  t.same(events, []);
  await pass(200);
  t.same(events, ['slow.test:80: dns_resolution_failure{dns_query_timeout}']);
  t.match(counts, { dns_query_timeout: 1, dns_query_failure: 1 });
});

t.test('a failed name is refused until it is queried again, or forgotten', async (t) => {
  const kept = cacheOf({ dns_failure_refresh_rate: { base_interval: '4s', max_interval: '4s' } });
  kept.answers.set('a.test', { status: 'not_found' });
  kept.cache.request('a.test:80');
  await kept.pass(0);
  kept.cache.request('a.test:80');
  t.equal(kept.events.length, 2);
  t.equal(kept.queries.length, 1);
  kept.answers.set('a.test', found('1.1.1.1'));
  await kept.pass(4100);
  t.equal(kept.events.at(-1), 'a.test:80=1.1.1.1:80');
  const forgetful = cacheOf({ disable_dns_refresh_on_failure: true });
  forgetful.answers.set('a.test', { status: 'not_found' });
  forgetful.cache.request('a.test:80');
  await forgetful.pass(0);
  forgetful.cache.request('a.test:80');
  t.equal(forgetful.queries.length, 2);
  t.equal(forgetful.counts['host_removed'], 1);
});

t.test('no name server is asked for what cannot be a name', async (t) => {
  const { cache, counts, events, pass, queries } = cacheOf({ dns_lookup_family: 'V4_ONLY' });
  const odd = [
    '',
    ':',
    ':80',
    'a',
    'a:',
    'a:x',
    'a:99999',
    'a:-1',
    '..:80',
    '[::1:80',
    '[x]:80',
    '[::1]:80',
    'a b:1',
    'é:1',
    '::1:80',
  ];
  for (const key of [...odd, `${'a.'.repeat(200)}b:80`, `${'a'.repeat(64)}:80`, `${'x'.repeat(60_000)}:80`]) {
    cache.request(key);
    await pass(0);
    t.match(events.at(-1), /dns_resolution_failure/, key.slice(0, 30));
  }
  t.same(queries, []);
  t.equal(counts['num_hosts'], odd.length + 1, 'long ones are not kept');
});
