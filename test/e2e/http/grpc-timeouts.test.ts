// grpc-timeout: the client's timeout where a route respects it, and the timeout that is forwarded to the host.

import t from 'tap';
import { type EchoedRequest, type HttpAnswer, startUpstream, staticCluster } from '../harness/index.js';
import { managerOf, routeTo, startProxy } from './proxy.js';

const GRPC = { 'content-type': 'application/grpc' };

/** Echoes requests, except for paths with /hang. */
const upstream = await startUpstream(t, ({ method, url, headers, rawHeaders }, answer) => {
  if (url!.includes('/hang')) return;
  const account: EchoedRequest = { method: method!, url: url!, headers, rawHeaders, body: '' };
  answer.end(JSON.stringify(account));
});

const stream = (max_stream_duration: object) => ({ max_stream_duration });
const routes = [
  routeTo({ prefix: '/capped' }, 'host', stream({ grpc_timeout_header_max: '1s' })),
  routeTo(
    { prefix: '/less' },
    'host',
    stream({ grpc_timeout_header_max: '0s', grpc_timeout_header_offset: '0.5s', max_stream_duration: '3s' }),
  ),
  routeTo({ prefix: '/lasting' }, 'host', stream({ max_stream_duration: '60s' })),
  routeTo({ prefix: '/endless' }, 'host', stream({ max_stream_duration: '0s' })),
  routeTo({ prefix: '/old/capped' }, 'host', { max_grpc_timeout: '1s', timeout: '15s' }),
  routeTo({ prefix: '/old/less' }, 'host', { max_grpc_timeout: '0s', grpc_timeout_offset: '0.5s' }),
  routeTo({ prefix: '/' }, 'host'),
];
const inside = { cidr_ranges: [{ address_prefix: '127.0.0.1', prefix_len: 32 }] };
const common = { use_remote_address: true, internal_address_config: inside };
const proxy = await startProxy(t, {
  listeners: {
    main: managerOf(routes, common),
    limited: managerOf(routes, { ...common, common_http_protocol_options: { max_stream_duration: '40s' } }),
  },
  clusters: [staticCluster('host', upstream.port)],
});

t.test('grpc-timeout limits the stream up to grpc_timeout_header_max, and is forwarded', async (t) => {
  t.equal(await forwarded('/capped', '5S'), '1000m');
  t.equal(await forwarded('/capped', '200m'), '200m');
  t.equal(await forwarded('/capped', undefined), undefined, 'no header, no limit');
  t.equal(await forwarded('/less', '2S'), '1500m');
  t.equal(await forwarded('/less', undefined), '3000m', 'without the header the default applies');
  t.match(await call('/capped/hang', '100m'), { headers: { 'grpc-status': '4' } });
  t.match(await call('/less/hang', '400m'), { headers: { 'grpc-status': '4' } }, 'no time is left: it ends at once');
});

t.test('all units are accepted, and invalid values are ignored', async (t) => {
  const long = { '2H': '7199500m', '2M': '119500m', '200000S': '199999S', '1500001u': '1001m', '99999999n': '100m' };
  for (const [timeout, seen] of Object.entries(long)) t.equal(await forwarded('/old/less', timeout), seen, timeout);
  for (const wrong of ['5', '5x', 'S', '123456789S', '-1S', '1.5S']) t.equal(await forwarded('/capped', wrong), wrong);
});

t.test('the maximum stream duration is forwarded to gRPC calls as grpc-timeout', async (t) => {
  t.equal(await forwarded('/lasting', '5S'), '60000m');
  t.equal(await forwarded('/endless', '5S'), '5S');
  t.equal(await forwarded('/usual', '5S'), '5S');
  t.equal(await forwarded('/capped', undefined, 'limited'), '40000m');
  t.equal(await forwarded('/endless', '5S', 'limited'), undefined);
});

t.test('other requests get no grpc-timeout, though their duration is limited too', async (t) => {
  for (const path of ['/capped', '/lasting', '/old/capped'])
    t.equal(await forwarded(path, '5S', 'main', {}), '5S', path);
  t.match(await call('/capped/hang', '100m', 'main', {}), { status: 504, body: 'downstream duration timeout' });
});

t.test('the deprecated fields set the request timeout', async (t) => {
  t.equal(await forwarded('/old/capped', '5S'), '1000m');
  t.equal(await forwarded('/old/capped', '300m'), '300m');
  t.equal(await forwarded('/old/capped', undefined), '1000m');
  t.equal(await forwarded('/old/less', '2S'), '1500m');
  t.equal(await forwarded('/old/less', '300m'), '300m', 'the offset never makes it negative');
  t.equal(await forwarded('/old/less', undefined), undefined);
  const { headers } = seenBy(await call('/old/capped', '300m'));
  t.equal(headers['x-envoy-expected-rq-timeout-ms'], '300');
  const asking = { ...GRPC, 'x-envoy-upstream-rq-timeout-ms': '700', 'x-envoy-upstream-rq-per-try-timeout-ms': '600' };
  t.equal(
    await forwarded('/old/capped', '300m', 'main', asking),
    '600m',
    'x-envoy-upstream-rq-timeout-ms takes precedence',
  );
  t.match(await call('/old/capped/hang', '100m'), { headers: { 'grpc-status': '14' } });
});

/** Returns grpc-timeout as the host receives it. */
async function forwarded(path: string, timeout: string | undefined, listener = 'main', headers: object = GRPC) {
  return seenBy(await call(path, timeout, listener, headers)).headers['grpc-timeout'];
}

function call(
  path: string,
  timeout: string | undefined,
  listener = 'main',
  headers: object = GRPC,
): Promise<HttpAnswer> {
  const own = timeout === undefined ? {} : { 'grpc-timeout': timeout };
  return proxy.on(listener, path, { method: 'POST', headers: { ...headers, ...own }, body: 'call' });
}

function seenBy({ body }: HttpAnswer): EchoedRequest {
  return JSON.parse(body) as EchoedRequest;
}
