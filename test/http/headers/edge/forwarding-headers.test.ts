// The next hop gets the client's identity, and clients cannot impersonate proxies.

import t from 'tap';
import { Random } from '../../../../src/common/random.js';
import { headerKey } from '../../../../src/common/text/header-names.js';
import {
  type ForwardingConfig,
  ForwardingRules,
  type LocalIdentity,
} from '../../../../src/http/headers/edge/forwarding-headers.js';
import type { HeaderBlock } from '../../../../src/http/headers/header-block.js';
import { linesOf, requestHead, valuesOf } from '../../routing/heads.js';

const random = new Random(1);
const LOCAL: LocalIdentity = { ip: '192.0.2.1', cluster: 'front', node: 'front-1', zone: '' };
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const EDGE: ForwardingConfig = { use_remote_address: true };
const PRIVATE = { cidr_ranges: [{ address_prefix: '10.0.0.0', prefix_len: 8 }] };

/** Applies the rules to a request from `ip`; returns its headers and the client's address. */
function apply(
  config: ForwardingConfig,
  ip: string,
  lines: readonly string[] = [],
  scheme: 'http' | 'https' = 'http',
): { head: HeaderBlock; client: string } {
  const head = requestHead('GET /', ...lines);
  const client = new ForwardingRules(config, LOCAL).apply(
    head,
    { remoteIp: ip, scheme, localPort: '80', security: undefined },
    random,
  );
  return { head, client };
}

/** Returns the values of one header after the rules have run. */
function after(name: string, config: ForwardingConfig, ip: string, ...lines: string[]): string[] {
  return valuesOf(apply(config, ip, lines).head, name);
}

t.test('an edge proxy adds the client address, the scheme and a request id, and nothing else', async (t) => {
  const { head, client } = apply(EDGE, '203.0.113.7', ['Host: a', 'User-Agent: curl']);
  const lines = linesOf(head);
  t.same(lines.slice(0, 5), [
    'Host: a',
    'User-Agent: curl',
    'x-forwarded-for: 203.0.113.7',
    'x-forwarded-proto: http',
    'x-envoy-external-address: 203.0.113.7',
  ]);
  t.equal(lines.length, 6);
  t.match(valuesOf(head, 'x-request-id')[0], UUID);
  t.equal(client, '203.0.113.7');
});

t.test('behind another proxy the headers are trusted, and only missing ones are added', async (t) => {
  const given = ['x-forwarded-for: 203.0.113.7, 198.51.100.2', 'x-forwarded-proto: https', 'x-request-id: mine'];
  const { head, client } = apply({}, '10.0.0.9', given);
  t.same(linesOf(head), given);
  t.equal(client, '198.51.100.2');
  const plain = apply({}, '10.0.0.9', [], 'https');
  t.same(valuesOf(plain.head, 'x-forwarded-proto'), ['https']);
  t.same(valuesOf(plain.head, 'x-forwarded-for'), []);
  t.same(valuesOf(plain.head, 'x-envoy-external-address'), []);
  t.match(valuesOf(plain.head, 'x-request-id')[0], UUID);
  t.equal(plain.client, '10.0.0.9');
});

t.test('x-forwarded-for: the peer is appended to the existing value, in one field', async (t) => {
  const name = 'x-forwarded-for';
  t.same(after(name, EDGE, '203.0.113.7', 'X-Forwarded-For: 1.1.1.1'), ['1.1.1.1,203.0.113.7']);
  t.same(after(name, EDGE, '2001:db8::1', 'x-forwarded-for: a, b', 'x: y', 'x-forwarded-for: c'), [
    'a, b,c,2001:db8::1',
  ]);
  t.same(after(name, EDGE, '203.0.113.7', 'x-forwarded-for: '), ['203.0.113.7']);
  t.same(after(name, { ...EDGE, skip_xff_append: true }, '203.0.113.7', 'x-forwarded-for: a'), ['a']);
  t.same(after(name, EDGE, ''), [], 'a Unix socket has no address');
  t.same(after(name, EDGE, '127.0.0.1'), ['192.0.2.1'], 'a local client gets the address of the server');
  t.same(after(name, { ...EDGE, represent_ipv4_remote_address_as_ipv4_mapped_ipv6: true }, '203.0.113.7'), [
    '::ffff:203.0.113.7',
  ]);
});

t.test('x-forwarded-for is kept when the header section has left the receive window', async (t) => {
  const head = requestHead('GET /', 'Host: a', 'x-forwarded-for: 1.1.1.1');
  t.ok(head.retain());
  new ForwardingRules(EDGE, LOCAL).apply(
    head,
    { remoteIp: '203.0.113.7', scheme: 'http', localPort: '80', security: undefined },
    random,
  );
  t.same(valuesOf(head, 'x-forwarded-for'), ['1.1.1.1,203.0.113.7']);
  t.same(valuesOf(head, 'Host'.toLowerCase()), ['a']);
  head.clear();
});

t.test('the trusted client address is counted from the right', async (t) => {
  const xff = 'x-forwarded-for: 1.1.1.1, 2.2.2.2, 3.3.3.3';
  const client = (config: ForwardingConfig, line: string): string => apply(config, '9.9.9.9', [line]).client;
  t.equal(client(EDGE, xff), '9.9.9.9');
  t.equal(client({ ...EDGE, xff_num_trusted_hops: 1 }, xff), '3.3.3.3');
  t.equal(client({ ...EDGE, xff_num_trusted_hops: 2 }, xff), '2.2.2.2');
  t.equal(client({ ...EDGE, xff_num_trusted_hops: 4 }, xff), '9.9.9.9', 'fewer hops than configured');
  t.equal(client({}, xff), '3.3.3.3');
  t.equal(client({ xff_num_trusted_hops: 1 }, xff), '2.2.2.2');
  t.equal(client({}, 'x-forwarded-for: nonsense'), '9.9.9.9');
  t.equal(client({}, 'x-forwarded-for: 2001:DB8::0:1'), '2001:db8::1');
});

t.test('x-forwarded-proto is not accepted from a client, but from a trusted proxy', async (t) => {
  const name = 'x-forwarded-proto';
  t.same(after(name, EDGE, '9.9.9.9', 'x-forwarded-proto: https'), ['http']);
  t.same(after(name, { ...EDGE, xff_num_trusted_hops: 1 }, '9.9.9.9', 'x-forwarded-proto: https'), ['https']);
});

t.test('x-envoy-internal is only set for addresses that the configuration calls internal', async (t) => {
  const name = 'x-envoy-internal';
  const edge = { ...EDGE, internal_address_config: PRIVATE };
  t.same(after(name, EDGE, '10.1.2.3', 'x-envoy-internal: true'), [], 'no address is internal by default');
  t.same(after(name, edge, '10.1.2.3'), ['true']);
  t.same(after(name, edge, '11.1.2.3', 'x-envoy-internal: true'), []);
  t.same(after(name, edge, '10.1.2.3', 'x-forwarded-for: 10.0.0.1'), [], 'a second hop is not trusted');
  t.same(after(name, { internal_address_config: PRIVATE }, '9.9.9.9', 'x-forwarded-for: 10.0.0.1'), ['true']);
  t.same(after(name, { internal_address_config: PRIVATE }, '10.0.0.1'), [], 'unknown without x-forwarded-for');
  t.same(after(name, { ...EDGE, internal_address_config: { unix_sockets: true } }, ''), ['true']);
  const rules = new ForwardingRules(edge, LOCAL);
  rules.apply(
    requestHead('GET /'),
    { remoteIp: '10.1.2.3', scheme: 'http', localPort: '80', security: undefined },
    random,
  );
  t.equal(rules.isInternal, true);
  rules.apply(
    requestHead('GET /'),
    { remoteIp: '12.1.2.3', scheme: 'http', localPort: '80', security: undefined },
    random,
  );
  t.equal(rules.isInternal, false);
});

t.test('external requests lose the headers that control the proxy, internal ones keep them', async (t) => {
  const control = [
    'X-Envoy-Retry-On: 5xx',
    'x-envoy-retry-grpc-on: internal',
    'x-envoy-max-retries: 9',
    'x-envoy-retriable-status-codes: 400',
    'x-envoy-retriable-header-names: x',
    'x-envoy-upstream-rq-timeout-ms: 1',
    'x-envoy-upstream-stream-duration-ms: 1',
    'x-envoy-upstream-rq-per-try-timeout-ms: 1',
    'x-envoy-upstream-alt-stat-name: x',
    'X-ENVOY-FORCE-TRACE: 1',
    'x-envoy-expected-rq-timeout-ms: 1',
    'x-envoy-ip-tags: x',
    'x-envoy-original-url: x',
    'x-envoy-hedge-on-per-try-timeout: true',
  ];
  const edgeOnly = [
    'x-envoy-decorator-operation: x',
    'x-envoy-original-host: x',
    'x-envoy-original-path: /x',
    'X-Envoy-Downstream-Service-Cluster: x',
    'x-envoy-downstream-service-node: x',
  ];
  const harmless = ['x-envoy-other: 1', 'x-else: 1', 'x-forwarded-host: h'];
  const kept = (config: ForwardingConfig, ip: string): string[] =>
    linesOf(apply(config, ip, [...control, ...edgeOnly, ...harmless]).head);
  const added = (line: string): boolean =>
    !/^x-(request-id|forwarded-(for|proto)|envoy-(internal|external-address)):/.test(line);
  t.same(kept(EDGE, '9.9.9.9').filter(added), harmless);
  t.same(kept({}, '9.9.9.9').filter(added), [...edgeOnly, ...harmless]);
  t.same(kept({ ...EDGE, internal_address_config: PRIVATE }, '10.0.0.1').filter(added), [
    ...control,
    ...edgeOnly,
    ...harmless,
  ]);
});

t.test("a client's claims about its certificate are removed", async (t) => {
  t.same(after('x-forwarded-client-cert', {}, '9.9.9.9', 'X-Forwarded-Client-Cert: By=me'), []);
  const internal = { ...EDGE, internal_address_config: PRIVATE };
  t.same(after('x-forwarded-client-cert', internal, '10.0.0.1', 'x-forwarded-client-cert: By=me'), []);
});

t.test('internal_only_headers are removed from external requests', async (t) => {
  const rules = new ForwardingRules({ ...EDGE, internal_address_config: PRIVATE }, LOCAL);
  const debug = [headerKey('X-Debug')];
  const outside = requestHead('GET /', 'x-debug: 1');
  rules.apply(outside, { remoteIp: '9.9.9.9', scheme: 'http', localPort: '80', security: undefined }, random, debug);
  t.same(valuesOf(outside, 'x-debug'), []);
  const inside = requestHead('GET /', 'x-debug: 1');
  rules.apply(inside, { remoteIp: '10.0.0.1', scheme: 'http', localPort: '80', security: undefined }, random, debug);
  t.same(valuesOf(inside, 'x-debug'), ['1']);
});

t.test('x-request-id is generated at the edge, and kept from proxies', async (t) => {
  const name = 'x-request-id';
  const given = 'x-request-id: mine';
  t.match(after(name, EDGE, '9.9.9.9', given)[0], UUID);
  t.same(after(name, { ...EDGE, preserve_external_request_id: true }, '9.9.9.9', given), ['mine']);
  t.same(after(name, {}, '9.9.9.9', given), ['mine']);
  t.same(after(name, { ...EDGE, generate_request_id: false }, '9.9.9.9'), []);
  t.same(after(name, { ...EDGE, generate_request_id: false }, '9.9.9.9', given), ['mine']);
});

t.test('via is appended, in requests and responses', async (t) => {
  t.same(after('via', { via: '1.1 baton' }, '9.9.9.9'), ['1.1 baton']);
  t.same(after('via', { via: '1.1 baton' }, '9.9.9.9', 'Via: 1.0 a'), ['1.0 a, 1.1 baton']);
});

t.test('add_user_agent adds the service name', async (t) => {
  const named = apply({ add_user_agent: true }, '9.9.9.9', ['x-envoy-downstream-service-cluster: other']).head;
  t.same(valuesOf(named, 'user-agent'), ['front']);
  t.same(valuesOf(named, 'x-envoy-downstream-service-cluster'), ['front']);
  t.same(valuesOf(named, 'x-envoy-downstream-service-node'), ['front-1']);
  t.same(after('user-agent', { add_user_agent: true }, '9.9.9.9', 'User-Agent: curl'), ['curl']);
});
