// The header fields in which a proxy describes clients to hosts, and hosts to clients.

import { randomUUID } from 'node:crypto';
import { networkInterfaces } from 'node:os';
import t from 'tap';
import {
  type EchoedRequest,
  type HttpAnswer,
  rawExchange,
  startEchoUpstream,
  startUpstream,
  staticCluster,
} from '../../harness/index.js';
import { headerOption, managerOf, routeTo, startProxy } from '../proxy.js';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

const echo = await startEchoUpstream(t);
const named = await startUpstream(t, (request, answer) => {
  if (request.url !== '/unnamed') answer.setHeader('server', 'the-host');
  answer.setHeader('x-envoy-upstream-service-time', 'mine');
  answer.setHeader('date', 'Thu, 01 Jan 1970 00:00:00 GMT');
  answer.end();
});
const routes = [routeTo({ prefix: '/echo' }, 'echo'), routeTo({ prefix: '/' }, 'named')];
const routerWithout = {
  http_filters: [
    {
      name: 'router',
      typed_config: {
        '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router',
        suppress_envoy_headers: true,
      },
    },
  ],
};
const clientHeaders = [
  headerOption('x-client', '%DOWNSTREAM_REMOTE_ADDRESS%'),
  headerOption('x-client-ip', '%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%'),
];
const proxy = await startProxy(t, {
  listeners: {
    inner: managerOf(routes),
    trusting: managerOf(routes, {
      use_remote_address: true,
      internal_address_config: { cidr_ranges: [{ address_prefix: '127.0.0.1', prefix_len: 32 }] },
    }),
    edge: managerOf(routes, { use_remote_address: true }),
    behindTwo: managerOf(routes, { use_remote_address: true, xff_num_trusted_hops: 2 }),
    quiet: managerOf(routes, { use_remote_address: true, skip_xff_append: true, ...routerWithout }),
    preserving: managerOf(routes, { use_remote_address: true, preserve_external_request_id: true }),
    returning: managerOf(routes, { always_set_request_id_in_response: true }),
    named: managerOf(routes, {
      request_id_extension: {
        typed_config: {
          '@type': 'type.googleapis.com/envoy.extensions.request_id.uuid.v3.UuidRequestIdConfig',
          pack_trace_reason: false,
          use_request_id_for_trace_sampling: false,
        },
      },
    }),
    default: managerOf(routes, { request_id_extension: {} }),
    idless: managerOf(routes, { generate_request_id: false }),
    overwriting: managerOf(routes, { server_name: 'front' }),
    appending: managerOf(routes, { server_name: 'front', server_header_transformation: 'APPEND_IF_ABSENT' }),
    passing: managerOf(routes, { server_name: 'front', server_header_transformation: 'PASS_THROUGH' }),
    telling: managerOf(routes.map((route) => ({ ...route, response_headers_to_add: clientHeaders }))),
    via: managerOf(routes, { via: '1.1 front', add_user_agent: true }),
  },
  clusters: [staticCluster('echo', echo.port), staticCluster('named', named.port)],
  args: ['-l', 'warning', '--service-cluster', 'our-cluster', '--service-node', 'our-node'],
});

t.test('an invalid referer is removed', async (t) => {
  for (const kept of [
    'http://a.test/b?c=d@e',
    'https://a.test',
    '/b/c?d',
    'about:blank',
    'android-app://a.b',
    'a@b',
    '',
  ]) {
    t.equal((await seen('edge', { referer: kept })).referer, kept, kept);
  }
  for (const lost of ['http://a.test/b#c', '/b#c', 'http://me:secret@a.test/', 'https://me@a.test', 'ftp://me@a?b']) {
    for (const listener of ['inner', 'edge'])
      t.equal((await seen(listener, { referer: lost })).referer, undefined, lost);
  }
  t.equal((await seen('edge', { referer: ['http://a.test/', 'http://b.test/'] })).referer, undefined, 'two');
});

t.test('an edge listener refuses an https URL received in clear text', async (t) => {
  const ask = (listener: string, url: string) =>
    rawExchange(proxy.ports[listener]!, `GET ${url} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`);
  for (const listener of ['edge', 'quiet']) {
    t.match(await ask(listener, 'https://a.test/echo'), {
      text: /^HTTP\/1.1 403 Forbidden\r\n[\s\S]*\r\n\r\nForbidden$/,
      closed: 'end',
    });
    t.match(await ask(listener, 'http://a.test/echo'), { text: /^HTTP\/1.1 200 / });
  }
  for (const listener of ['inner', 'behindTwo'])
    t.match(
      await ask(listener, 'https://a.test/echo'),
      { text: /^HTTP\/1.1 200 / },
      'an internal proxy may have terminated TLS',
    );
});

t.test('x-forwarded-for identifies the client', async (t) => {
  const [former] = ['203.0.113.7'];
  t.equal((await seen('inner'))['x-forwarded-for'], undefined, 'an internal listener leaves it unchanged');
  t.equal((await seen('inner', { 'x-forwarded-for': former }))['x-forwarded-for'], former);
  t.equal((await seen('edge'))['x-forwarded-for'], ownAddress(), 'the edge adds the client');
  t.equal((await seen('edge', { 'x-forwarded-for': former }))['x-forwarded-for'], `${former},${ownAddress()}`);
  t.equal(
    (await seen('edge', { 'x-forwarded-for': ['1.2.3.4', former] }))['x-forwarded-for']?.replaceAll(' ', ''),
    `1.2.3.4,${former},${ownAddress()}`,
    'several fields become one',
  );
  t.equal((await seen('quiet', { 'x-forwarded-for': former }))['x-forwarded-for'], former, 'skip_xff_append');
});

t.test('x-envoy-external-address is the client address that trusted hops report', async (t) => {
  const chain = '198.51.100.1, 198.51.100.2, 203.0.113.7, 203.0.113.8';
  t.equal((await seen('edge', { 'x-forwarded-for': chain }))['x-envoy-external-address'], '127.0.0.1');
  t.equal((await seen('behindTwo', { 'x-forwarded-for': chain }))['x-envoy-external-address'], '203.0.113.7');
  t.equal((await seen('inner'))['x-envoy-external-address'], undefined);
});

t.test("x-forwarded-proto is the client's scheme, and cannot be forged at the edge", async (t) => {
  t.equal((await seen('inner'))['x-forwarded-proto'], 'http');
  t.equal((await seen('inner', { 'x-forwarded-proto': 'https' }))['x-forwarded-proto'], 'https');
  t.equal((await seen('edge', { 'x-forwarded-proto': 'https' }))['x-forwarded-proto'], 'http');
});

t.test('x-request-id is generated where it is missing, and always at the edge', async (t) => {
  const first = (await seen('inner'))['x-request-id'];
  const second = (await seen('inner'))['x-request-id'];
  t.match(first, UUID);
  t.match(second, UUID);
  t.not(first, second);
  const own = randomUUID();
  t.equal((await seen('inner', { 'x-request-id': own }))['x-request-id'], own, 'an internal listener keeps it');
  const replaced = (await seen('edge', { 'x-request-id': own }))['x-request-id'];
  t.match(replaced, UUID);
  t.not(replaced, own, 'external clients cannot set it');
  t.equal((await seen('preserving', { 'x-request-id': own }))['x-request-id'], own);
  t.match((await seen('preserving'))['x-request-id'], UUID);
  t.equal((await seen('idless'))['x-request-id'], undefined);
  for (const listener of ['named', 'default']) {
    t.match((await seen(listener))['x-request-id'], UUID, 'the UUID extension can be configured explicitly');
    t.equal(
      (await seen(listener, { 'x-request-id': own }))['x-request-id'],
      own,
      'and leaves an existing ID unchanged',
    );
  }
  const returned = await proxy.on('returning', '/echo', { headers: { 'x-request-id': own } });
  t.equal(returned.headers['x-request-id'], own);
  t.equal((await proxy.on('inner', '/echo')).headers['x-request-id'], undefined);
  const traced = { headers: { 'x-request-id': own, 'x-envoy-force-trace': '1' } };
  t.equal((await proxy.on('trusting', '/echo', traced)).headers['x-request-id'], own, 'an internal client asks for it');
  t.equal((await proxy.on('edge', '/echo', traced)).headers['x-request-id'], undefined, 'an external client cannot');
});

t.test('a client address from x-forwarded-for has no port', async (t) => {
  for (const [ip, address] of [
    ['203.0.113.7', '203.0.113.7:0'],
    ['2001:db8::1', '[2001:db8::1]:0'],
  ] as const) {
    const { headers } = await proxy.on('telling', '/', { headers: { 'x-forwarded-for': ip } });
    t.match(headers, { 'x-client': address, 'x-client-ip': ip });
  }
});

t.test('fields that only proxies may send are removed from external requests', async (t) => {
  const forged = {
    'x-envoy-internal': 'true',
    'x-envoy-retry-on': '5xx',
    'x-envoy-max-retries': '9',
    'x-envoy-upstream-rq-timeout-ms': '1',
    'x-envoy-external-address': '1.2.3.4',
    'x-envoy-downstream-service-cluster': 'theirs',
    'x-envoy-original-path': '/admin',
    'x-envoy-expected-rq-timeout-ms': '1',
    'x-envoy-upstream-alt-stat-name': 'theirs',
    'x-envoy-upstream-rq-timeout-alt-response': '1',
    'x-envoy-retriable-header-names': 'x-theirs',
    'x-envoy-force-trace': 'true',
  };
  const headers = await seen('edge', forged);
  for (const [name, value] of Object.entries(forged)) t.not(headers[name], value, name);
});

t.test('x-envoy-upstream-service-time and x-envoy-expected-rq-timeout-ms are set', async (t) => {
  const { headers } = await proxy.on('inner', '/');
  t.match(headers['x-envoy-upstream-service-time'], /^\d+$/, "in place of the host's own");
  t.equal((await proxy.on('quiet', '/')).headers['x-envoy-upstream-service-time'], 'mine');
  t.match(await seen('inner'), { 'x-envoy-expected-rq-timeout-ms': '15000' }, "the host gets the proxy's timeout");
  t.equal((await seen('quiet'))['x-envoy-expected-rq-timeout-ms'], undefined, 'suppress_envoy_headers');
});

t.test('the server header follows server_header_transformation', async (t) => {
  const server = async (name: string, path = '/') => (await proxy.on(name, path)).headers.server;
  t.equal(await server('inner'), 'baton');
  t.equal(await server('overwriting'), 'front');
  t.equal(await server('appending'), 'the-host');
  t.equal(await server('appending', '/unnamed'), 'front');
  t.equal(await server('passing'), 'the-host');
  t.equal(await server('passing', '/unnamed'), undefined);
});

t.test("the host's date is kept", async (t) => {
  t.equal((await proxy.on('inner', '/')).headers.date, 'Thu, 01 Jan 1970 00:00:00 GMT');
});

t.test('via and user-agent are added when configured', async (t) => {
  const answer = await proxy.on('via', '/echo', { headers: { via: '1.0 first' } });
  t.equal(answer.headers['via'], '1.1 front');
  const { headers } = account(answer);
  t.equal(headers['via'], '1.0 first, 1.1 front');
  t.match(headers, {
    'user-agent': 'our-cluster',
    'x-envoy-downstream-service-cluster': 'our-cluster',
    'x-envoy-downstream-service-node': 'our-node',
  });
  t.match(await seen('via', { 'user-agent': 'browser' }), { 'user-agent': 'browser' });
});

async function seen(listener: string, headers: Record<string, string | string[]> = {}): Promise<NodeJS.Dict<string>> {
  return account(await proxy.on(listener, '/echo', { headers })).headers as NodeJS.Dict<string>;
}

function account({ body }: HttpAnswer): EchoedRequest {
  return JSON.parse(body);
}

/** Returns an address that represents a client on this machine: the machine's own address. */
function ownAddress(): string {
  const addresses = Object.values(networkInterfaces()).flatMap((entries) => entries ?? []);
  return addresses.find(({ family, internal }) => family === 'IPv4' && !internal)?.address ?? '127.0.0.1';
}
