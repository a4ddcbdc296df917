import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { DnsResolver, type DnsResolverOptions } from '../../../src/upstream/dns/resolver.js';
import { resolverSettings } from '../../../src/upstream/dns/resolver-settings.js';
import { tempDir } from '../../e2e/harness/environment.js';
import { NameServer } from './name-server.js';

/** A resolver with its own files and name server. */
async function setUp(t: Test, options: DnsResolverOptions = {}, conf = '', hosts = '') {
  const directory = tempDir(t);
  const server = new NameServer();
  await server.start();
  const hostsFile = join(directory, 'hosts');
  const resolvConf = join(directory, 'resolv.conf');
  writeFileSync(hostsFile, hosts);
  writeFileSync(resolvConf, `nameserver ${server.address}\n${conf}`);
  const resolver = new DnsResolver({
    hostsFile,
    resolvConf,
    hostName: 'machine',
    queryTimeoutMs: 30_000,
    attempts: 1,
    ...options,
  });
  t.teardown(async () => {
    resolver.close();
    await server.stop();
  });
  const replace = (path: string, text: string) => {
    writeFileSync(`${path}.new`, text);
    renameSync(`${path}.new`, path);
  };
  return { server, resolver, hostsFile, resolvConf, replace };
}

const V6 = [[0x2001, 0xdb8, 0, 0, 0, 0, 0, 1]];

t.test('each lookup family returns its addresses, with the TTL of the answer', async (t) => {
  const { server, resolver } = await setUp(t);
  server.answers.set('both.test', { a: ['10.0.0.1', '10.0.0.2'], aaaa: V6, ttl: 7 });
  server.answers.set('four.test', { a: ['10.0.0.4'] });
  server.answers.set('six.test', { aaaa: V6 });
  const found = async (name: string, family: Parameters<DnsResolver['resolve']>[1]) => {
    const result = await resolver.resolve(name, family);
    return result.status === 'found' ? result.addresses.join() : result.status;
  };
  t.equal(await found('both.test', 'V4_ONLY'), '10.0.0.1,10.0.0.2');
  t.equal(await found('both.test', 'V6_ONLY'), '2001:db8::1');
  t.equal(await found('both.test', 'AUTO'), '2001:db8::1');
  t.equal(await found('both.test', 'V4_PREFERRED'), '10.0.0.1,10.0.0.2');
  t.equal(await found('both.test', 'ALL'), '10.0.0.1,10.0.0.2,2001:db8::1');
  t.equal(await found('four.test', 'AUTO'), '10.0.0.4');
  t.equal(await found('four.test', 'V6_ONLY'), 'not_found');
  t.equal(await found('six.test', 'V4_PREFERRED'), '2001:db8::1');
  t.equal(await found('six.test', 'V4_ONLY'), 'not_found');
  t.match(await resolver.resolve('both.test', 'ALL'), { ttlMs: 7000 });
  t.equal(resolver.counters.resolve_total, 10);
  t.equal(resolver.counters.not_found, 2);
  t.equal(resolver.counters.pending_resolutions, 0);
});

t.test('answers of any length have a TTL; one that RFC 2181 forbids counts as 0', async (t) => {
  const { server, resolver } = await setUp(t);
  const a = Array.from({ length: 600 }, (_, index) => `10.0.${index >> 8}.${index & 255}`);
  server.answers.set('many.test', { a, ttl: 7, truncated: true });
  server.answers.set('odd.test', { a: ['10.0.0.1'], ttl: 2 ** 31 });
  t.match(await resolver.resolve('many.test', 'V4_ONLY'), { addresses: a, ttlMs: 7000 });
  t.match(await resolver.resolve('odd.test', 'V4_ONLY'), { ttlMs: 0 });
});

t.test('each resolution queries the server: nothing is cached', async (t) => {
  const { server, resolver } = await setUp(t);
  server.answers.set('a.test', { a: ['10.0.0.1'], ttl: 3600 });
  t.match(await resolver.resolve('a.test', 'V4_ONLY'), { addresses: ['10.0.0.1'] });
  server.answers.set('a.test', { a: ['10.0.0.2'], ttl: 3600 });
  t.match(await resolver.resolve('a.test', 'V4_ONLY'), { addresses: ['10.0.0.2'] });
});

t.test('limits that are too large for Node are as large as it takes', async (t) => {
  const conf = resolverSettings({
    name: 'cares',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig',
      query_timeout_seconds: '10000000',
      query_tries: 2 ** 32 - 1,
    } as never,
  });
  const { server, resolver } = await setUp(t);
  server.answers.set('a.test', { a: ['10.0.0.1'], ttl: 1 });
  const own = resolver.withSettings(conf!);
  t.teardown(() => own.close());
  t.match(await own.resolve('a.test', 'V4_ONLY'), { addresses: ['10.0.0.1'] });
});

t.test('addresses and localhost need no server', async (t) => {
  const { server, resolver } = await setUp(t);
  t.match(await resolver.resolve('10.1.2.3', 'AUTO'), { addresses: ['10.1.2.3'], ttlMs: Number.POSITIVE_INFINITY });
  t.match(await resolver.resolve('::0:1', 'V4_ONLY'), { addresses: ['::1'] });
  t.match(await resolver.resolve('localhost', 'V4_ONLY'), { addresses: ['127.0.0.1'] });
  t.match(await resolver.resolve('x.LocalHost.', 'ALL'), { addresses: ['127.0.0.1', '::1'] });
  t.same(server.asked, []);
});

t.test('/etc/hosts takes precedence, and its changes take effect at once', async (t) => {
  const hosts = '# comment\n10.9.9.9 Box box.test # more\nbroken line\n127.0.0.1 localhost\n::9 box\n10.9.9.8\tbox';
  const { server, resolver, hostsFile, replace } = await setUp(t, {}, '', hosts);
  server.answers.set('box.test', { a: ['10.0.0.1'], aaaa: V6 });
  t.match(await resolver.resolve('BOX', 'V4_ONLY'), { addresses: ['10.9.9.9', '10.9.9.8'], ttlMs: 0 });
  t.match(await resolver.resolve('box', 'AUTO'), { addresses: ['::9'] });
  t.match(await resolver.resolve('box.test', 'AUTO'), { addresses: ['10.9.9.9'] }, 'an entry of the file is final');
  t.match(await resolver.resolve('localhost', 'AUTO'), { addresses: ['127.0.0.1'] });
  t.same(server.asked, []);
  t.match(await resolver.resolve('box.test', 'V6_ONLY'), { addresses: ['2001:db8::1'] });
  replace(hostsFile, '10.7.7.7 box.test');
  t.match(await resolver.resolve('box.test', 'V4_ONLY'), { addresses: ['10.7.7.7'] });
  rmSync(hostsFile);
  t.match(await resolver.resolve('box.test', 'V4_ONLY'), { addresses: ['10.0.0.1'] });
});

t.test('short names are looked up in the search domains, long ones unchanged first', async (t) => {
  const { server, resolver } = await setUp(t, {}, 'search one.test two.test\noptions ndots:2\n');
  server.answers.set('svc.two.test', { a: ['10.0.0.2'] });
  server.answers.set('a.b.c', { a: ['10.0.0.3'] });
  t.match(await resolver.resolve('svc', 'V4_ONLY'), { addresses: ['10.0.0.2'] });
  t.same(server.asked.splice(0), ['A svc.one.test', 'A svc.two.test']);
  t.match(await resolver.resolve('a.b.c', 'V4_ONLY'), { addresses: ['10.0.0.3'] });
  t.same(server.asked.splice(0), ['A a.b.c']);
  t.match(await resolver.resolve('svc.', 'V4_ONLY'), { status: 'not_found' });
  t.same(server.asked.splice(0), ['A svc']);
  t.match(await resolver.resolve('x.y', 'V4_ONLY'), { status: 'not_found' });
  t.same(server.asked, ['A x.y.one.test', 'A x.y.two.test', 'A x.y']);
});

t.test("without search domains short names are looked up in the machine's domain", async (t) => {
  const { server, resolver } = await setUp(t, { hostName: 'machine.corp.test' });
  server.answers.set('svc.corp.test', { a: ['10.0.0.2'] });
  t.match(await resolver.resolve('svc', 'V4_ONLY'), { addresses: ['10.0.0.2'] });
});

t.test('a new name server in resolv.conf is used at once', async (t) => {
  const { server, resolver, resolvConf, replace } = await setUp(t);
  const other = new NameServer();
  await other.start();
  t.teardown(() => other.stop());
  server.answers.set('a.test', { a: ['10.0.0.1'] });
  other.answers.set('a.test', { a: ['10.0.0.2'] });
  t.match(await resolver.resolve('a.test', 'V4_ONLY'), { addresses: ['10.0.0.1'] });
  replace(resolvConf, `nameserver ${other.address}\n`);
  t.match(await resolver.resolve('a.test', 'V4_ONLY'), { addresses: ['10.0.0.2'] });
});

t.test('missing names, failing servers and silent servers are distinguished', async (t) => {
  const { server, resolver } = await setUp(t, { queryTimeoutMs: 2000 }, 'search one.test\n');
  server.answers.set('broken.test', 'servfail');
  server.answers.set('silent.test', 'hang');
  t.match(await resolver.resolve('none.test', 'AUTO'), { status: 'not_found' });
  t.match(await resolver.resolve('broken.test', 'AUTO'), { status: 'failed', reason: 'ESERVFAIL' });
  t.match(await resolver.resolve('silent.test', 'AUTO'), { status: 'timeout' });
  t.match(resolver.counters, { resolve_total: 3, not_found: 1, timeouts: 1, get_addr_failure: 2 });
});

t.test('a failing server in a search domain does not hide an answer in a later one', async (t) => {
  const { server, resolver } = await setUp(t, {}, 'search one.test two.test\n');
  server.answers.set('svc.one.test', 'servfail');
  server.answers.set('svc.two.test', { a: ['10.0.0.2'] });
  t.match(await resolver.resolve('svc', 'V4_ONLY'), { addresses: ['10.0.0.2'] });
});

t.test('a silent server delays no other name, and times out at the deadline', async (t) => {
  const { server, resolver } = await setUp(t, { queryTimeoutMs: 60_000, deadlineMs: 2000 });
  server.answers.set('silent.test', 'hang');
  server.answers.set('quick.test', { a: ['10.0.0.1'] });
  const order: string[] = [];
  const silent = Array.from({ length: 50 }, (_, i) => {
    server.answers.set(`silent${i}.test`, 'hang');
    return resolver.resolve(`silent${i}.test`, 'ALL').then((result) => order.push(result.status));
  });
  t.match(await resolver.resolve('quick.test', 'V4_ONLY'), { addresses: ['10.0.0.1'] });
  order.push('quick');
  t.equal(resolver.counters.pending_resolutions, 50);
  await Promise.all(silent);
  t.equal(order[0], 'quick');
  t.same(new Set(order.slice(1)), new Set(['timeout']));
  t.equal(resolver.counters.pending_resolutions, 0);
});

t.test('the answer for one family is used although the other gets none', async (t) => {
  const { server, resolver } = await setUp(t, { queryTimeoutMs: 60_000, deadlineMs: 1000 });
  server.answers.set('four.test', { a: ['10.0.0.1'], silentFor: 'AAAA' });
  server.answers.set('six.test', { aaaa: V6, silentFor: 'A' });
  t.match(await resolver.resolve('four.test', 'AUTO'), { addresses: ['10.0.0.1'] });
  t.match(await resolver.resolve('four.test', 'ALL'), { addresses: ['10.0.0.1'] });
  t.match(await resolver.resolve('six.test', 'V4_PREFERRED'), { addresses: ['2001:db8::1'] });
  t.match(await resolver.resolve('four.test', 'V6_ONLY'), { status: 'timeout' });
});

t.test('the preferred family does not wait for the other', async (t) => {
  const { server, resolver } = await setUp(t, { queryTimeoutMs: 600_000, deadlineMs: 600_000 });
  server.answers.set('four.test', { a: ['10.0.0.1'], silentFor: 'AAAA' });
  server.answers.set('six.test', { aaaa: V6, silentFor: 'A' });
  t.match(await resolver.resolve('four.test', 'V4_PREFERRED'), { addresses: ['10.0.0.1'] });
  t.match(await resolver.resolve('six.test', 'AUTO'), { addresses: ['2001:db8::1'] });
});

t.test('concurrent resolutions of a name share one query', async (t) => {
  const { server, resolver } = await setUp(t);
  server.answers.set('a.test', { a: ['10.0.0.1'] });
  const results = await Promise.all(Array.from({ length: 20 }, () => resolver.resolve('a.test', 'V4_ONLY')));
  t.ok(results.every((result) => result.status === 'found'));
  t.same(server.asked, ['A a.test']);
});

t.test('a truncated answer is fetched over TCP', async (t) => {
  const { server, resolver } = await setUp(t, { queryTimeoutMs: 5000 });
  const a = Array.from({ length: 100 }, (_, i) => `10.0.1.${i}`);
  server.answers.set('many.test', { a, truncated: true });
  t.match(await resolver.resolve('many.test', 'V4_ONLY'), { status: 'found', addresses: a });
  t.same(server.asked, ['A many.test', 'tcp A many.test']);
});

t.test('close() cancels resolutions in flight', async (t) => {
  const { server, resolver } = await setUp(t, { queryTimeoutMs: 60_000, deadlineMs: 60_000 });
  server.answers.set('silent.test', 'hang');
  const pending = resolver.resolve('silent.test', 'ALL');
  resolver.close();
  t.match(await pending, { status: 'failed', reason: 'ECANCELLED' });
});

t.test('settings override the name servers, search domains, time limits of the machine', async (t) => {
  const { server, resolver } = await setUp(t, {}, 'search corp.test\n');
  const other = new NameServer();
  await other.start();
  t.teardown(() => other.stop());
  server.answers.set('a.corp.test', { a: ['10.0.0.1'] });
  other.answers.set('a.corp.test', { a: ['10.0.0.2'] });
  const settings = { servers: [other.address], isFallback: false, skipsSearch: false, timeoutMs: 5000, attempts: 1 };
  const addressOf = async (changes: Partial<typeof settings>) => {
    const own = resolver.withSettings({ ...settings, ...changes });
    const result = await own.resolve('a', 'V4_ONLY');
    own.close();
    return result.status === 'found' ? result.addresses.join() : result.status;
  };
  t.equal(await addressOf({}), '10.0.0.2');
  t.equal(await addressOf({ isFallback: true }), '10.0.0.1', 'the machine has name servers');
  t.equal(await addressOf({ servers: [] }), '10.0.0.1');
  t.equal(await addressOf({ skipsSearch: true }), 'not_found');
  t.equal(resolver.counters.resolve_total, 4, 'one count for all');
});
