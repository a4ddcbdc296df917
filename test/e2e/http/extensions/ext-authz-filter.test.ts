// The external authorization filter: no request reaches a host unless the authorization service allows it.

import type { IncomingMessage } from 'node:http';
import t from 'tap';
import {
  bootstrap,
  type Config,
  connectRaw,
  type EchoedRequest,
  httpListener,
  startBaton,
  startEchoUpstream,
  startUpstream,
  staticCluster,
  waitFor,
} from '../../harness/index.js';
import { answering, managerOf, routeTo, startProxy } from '../proxy.js';

const PACKAGE = 'type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3';
const ROUTER = 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router';

/** Requests that the service received, in order. */
const asked: IncomingMessage[] = [];
const service = await startUpstream(t, (question, answer) => {
  asked.push(question);
  // A request about /wait is not answered.
  const { pathname, searchParams } = new URL(question.url!, 'http://service');
  if (pathname.endsWith('/wait')) return;
  if (pathname.endsWith('/broken')) return void question.socket.destroy();
  if (pathname.endsWith('/torn')) {
    answer.writeHead(200, { 'x-user': 'ann', 'content-length': 9 }).write('torn');
    return void setImmediate(() => question.socket.destroy());
  }
  const fields = searchParams.getAll('field').map((field) => field.split('='));
  answer.writeHead(Number(searchParams.get('status') ?? 200), fields as never);
  answer.end(searchParams.get('body') ?? '');
});
const host = await startEchoUpstream(t);

const rest = {
  allowed_headers: { patterns: [{ prefix: 'x-' }] },
  disallowed_headers: { patterns: [{ exact: 'x-secret' }] },
};
const proxy = await startProxy(t, {
  listeners: {
    plain: filtered({}),
    lists: filtered(
      { ...rest, stat_prefix: 'lists' },
      {
        path_prefix: '/check',
        authorization_request: { headers_to_add: [{ key: 'x-caller', value: 'baton' }] },
        authorization_response: {
          allowed_upstream_headers: { patterns: [{ exact: 'x-user' }] },
          allowed_upstream_headers_to_append: { patterns: [{ safe_regex: { regex: 'x-group.*' } }] },
          allowed_client_headers: { patterns: [{ exact: 'x-reason' }] },
          allowed_client_headers_on_success: { patterns: [{ exact: 'x-quota' }] },
        },
      },
    ),
    // The configuration from before gRPC services were supported.
    older: filtered({}, { authorization_request: { allowed_headers: { patterns: [{ exact: 'x-user' }] } } }),
    soon: filtered({ status_on_error: { code: 'ServiceUnavailable' } }, {}, '0.2s'),
    lenient: filtered({ failure_mode_allow: true, failure_mode_allow_header_add: true }, {}, '0.2s'),
    torn: filtered(
      { failure_mode_allow: true },
      { authorization_response: { allowed_upstream_headers: { patterns: [{ exact: 'x-user' }] } } },
    ),
    off: filtered({ filter_enabled: { default_value: { numerator: 0 } } }),
    few: filtered({}, {}, '5s', [routeTo({ path: '/known' }, 'host'), answering({ path: '/direct' }, 'direct')]),
    fewAndOff: filtered({ filter_enabled: { default_value: { numerator: 0 } } }, {}, '5s', []),
  },
  clusters: [staticCluster('host', host.port), staticCluster('service', service.port)],
});
t.beforeEach(() => {
  asked.length = 0;
});

t.test('a request that the service allows is forwarded unchanged', async (t) => {
  const answer = await proxy.on('plain', '/a?status=200', {
    method: 'POST',
    body: 'x'.repeat(200_000),
    headers: { authorization: 'Bearer 1', 'x-more': '1' },
  });
  t.match(answer, { status: 200 });
  const { body, headers, method } = JSON.parse(answer.body) as EchoedRequest;
  t.match({ method, length: body.length }, { method: 'POST', length: 200_000 }, 'with a body larger than any buffer');
  t.match(headers, { authorization: 'Bearer 1', 'x-more': '1' });
  t.equal(asked.length, 1);
  t.match(asked[0], { method: 'POST', url: '/a?status=200' });
  t.match(asked[0]!.headers, { authorization: 'Bearer 1', 'content-length': '0', host: /^127\.0\.0\.1:/ });
  t.notOk('x-more' in asked[0]!.headers, 'the service gets no further headers');
});

t.test('a request that it denies is answered with its response, and reaches no host', async (t) => {
  const answer = await proxy.on(
    'plain',
    '/a?status=401&body=who?&field=content-type=a/b&field=www-authenticate=Basic&field=x-why=none',
  );
  t.match(answer, { status: 401, body: 'who?' });
  t.match(answer.headers, {
    'www-authenticate': 'Basic',
    'x-why': 'none',
    'content-length': '4',
    'content-type': 'a/b',
  });
  for (const listener of ['plain', 'lenient']) {
    const odd = await proxy.on(listener, '/a?status=600&body=never&field=x-why=none');
    t.match(odd, { status: 600, body: 'never', headers: { 'x-why': 'none' } }, 'only 5xx is an error of the service');
  }
  t.equal(host.accepted(), 1, 'only the connection of the previous test');
});

t.test('header lists determine which headers are sent where', async (t) => {
  const fields =
    'field=x-user=ann&field=x-group=b&field=x-quota=9&field=x-other=1&field=x-envoy-auth-headers-to-remove=x-old';
  const answer = await proxy.on('lists', `/a?${fields}`, {
    headers: { 'X-User': 'mallory', 'x-group': 'a', 'x-secret': 's', 'x-old': '1', authorization: 'me' },
  });
  t.match(asked[0], { url: `/check/a?${fields}` });
  t.match(asked[0]!.headers, { 'x-user': 'mallory', 'x-group': 'a', 'x-caller': 'baton', authorization: 'me' });
  t.notOk('x-secret' in asked[0]!.headers);
  const { headers } = JSON.parse(answer.body) as EchoedRequest;
  t.match(headers, { 'x-user': 'ann', 'x-group': 'a, b', 'x-secret': 's' });
  t.notOk('x-old' in headers);
  t.notOk('x-other' in headers);
  t.equal(answer.headers['x-quota'], '9');
  t.notOk('x-user' in answer.headers);
  const refused = await proxy.on('lists', '/a?status=403&field=x-reason=r&field=x-user=u&field=location=/login');
  t.match(refused, { status: 403, headers: { 'x-reason': 'r', location: '/login' } });
  t.notOk('x-user' in refused.headers);
});

t.test('the headers sent to the service may be listed in the deprecated field', async (t) => {
  await proxy.on('older', '/a', { headers: { 'x-user': 'ann', 'x-secret': 's', authorization: 'me' } });
  t.match(asked[0]!.headers, { 'x-user': 'ann', authorization: 'me' });
  t.notOk('x-secret' in asked[0]!.headers);
  t.match(proxy.baton.stderr, /allowed_headers: field 'allowed_headers' of .*AuthorizationRequest is deprecated/);
});

t.test('an allowing response that breaks off does not count', async (t) => {
  const answer = await proxy.on('torn', '/torn', { headers: { 'x-user': 'bob' } });
  t.match(
    JSON.parse(answer.body).headers,
    { 'x-user': 'bob' },
    'it is handled like a missing response, and forwarded unchanged',
  );
});

t.test('a HEAD request is checked as HEAD', async (t) => {
  t.match(await proxy.on('plain', '/head', { method: 'HEAD' }), { status: 200, body: '' });
  t.match(asked[0], { method: 'HEAD', url: '/head' });
});

t.test('without a response of the service a request is denied', async (t) => {
  t.match(await proxy.on('plain', '/broken'), { status: 403, body: '' });
  t.match(await proxy.on('plain', '/a?status=500&body=oops'), { status: 403, body: '' });
  t.match(await proxy.on('soon', '/wait'), { status: 503, body: '' }, 'after the timeout');
});

t.test('with failure_mode_allow a request without a response is forwarded', async (t) => {
  const answer = await proxy.on('lenient', '/wait');
  t.match(answer, { status: 200 });
  t.match(JSON.parse(answer.body).headers, { 'x-envoy-auth-failure-mode-allowed': 'true' });
});

t.test('a client that disconnects cancels its check', async (t) => {
  const client = await connectRaw(t, proxy.ports['plain']!);
  client.write('GET /wait HTTP/1.1\r\nhost: a\r\n\r\n');
  await waitFor(() => asked.length === 1, { what: 'the question' });
  let isCancelled = false;
  asked[0]!.socket.once('close', () => {
    isCancelled = true;
  });
  client.destroy();
  await waitFor(() => isCancelled, { what: 'the end of the question' });
});

t.test('disabled routes and a fraction of the requests are not checked', async (t) => {
  t.match(await proxy.on('plain', '/free?status=401'), { status: 200 });
  t.match(await proxy.on('off', '/a?status=401'), { status: 200 });
  t.equal(asked.length, 0);
});

t.test('each outcome is counted', async () => {
  await proxy.baton.waitForStats({
    'http.plain.ext_authz.ok': 2,
    'http.plain.ext_authz.denied': 2,
    'http.plain.ext_authz.error': 2,
    'http.lists.ext_authz.lists.ok': 1,
    'http.lists.ext_authz.lists.denied': 1,
    'http.soon.ext_authz.error': 1,
    'http.lenient.ext_authz.error': 1,
    'http.lenient.ext_authz.failure_mode_allowed': 1,
    'http.off.ext_authz.disabled': 1,
    'cluster.service.upstream_rq_timeout': 2,
    'cluster.host.ext_authz.ok': 3,
    'cluster.host.ext_authz.denied': 3,
    'cluster.host.ext_authz.error': 5,
    'cluster.host.ext_authz.failure_mode_allowed': 2,
    'cluster.host.ext_authz.lists.ok': 1,
    'cluster.host.ext_authz.lists.denied': 1,
    'cluster.host.internal.upstream_rq_401': 1,
    'cluster.host.upstream_rq_403': 1,
  });
});

t.test('a request without a route is not checked', async (t) => {
  t.match(await proxy.on('few', '/unknown?status=401'), { status: 404 });
  t.match(await proxy.on('fewAndOff', '/unknown'), { status: 404 });
  t.equal(asked.length, 0);
  t.match(await proxy.on('few', '/known?status=401'), { status: 401 });
  t.match(await proxy.on('few', '/direct?status=401'), { status: 401 }, 'a direct response is a route too');
  t.equal(asked.length, 2);
  await proxy.baton.waitForStats({ 'http.few.ext_authz.denied': 2, 'http.few.ext_authz.ok': 0 });
  t.equal(await proxy.baton.stat('http.fewAndOff.ext_authz.disabled'), 0);
});

t.test('invalid configurations are refused with their position', async (t) => {
  const wrong = filtered(
    { allowed_headers: { patterns: [{ safe_regex: { regex: '(' } }] }, failure_mode_allow_header_add: true },
    {
      server_uri: { uri: 'https://service', cluster: 'servise', timeout: '0s' },
      path_prefix: 'check',
      authorization_request: {
        headers_to_add: [
          { key: 'a b', value: 'c' },
          { key: 'Host', value: 'd' },
        ],
        allowed_headers: { patterns: [{ safe_regex: { regex: ')' } }] },
      },
    },
  );
  const undecided = filtered(
    { ...rest, failure_mode_allow: true, status_on_error: { code: 'ServiceUnavailable' } },
    { authorization_request: { allowed_headers: rest.allowed_headers } },
  );
  const baton = await startBaton(t, {
    config: bootstrap({
      listeners: [httpListener('web', 0, wrong), httpListener('lenient', 0, undecided)],
      clusters: [staticCluster('service', 1), staticCluster('host', 1)],
    }),
    args: ['--mode', 'validate'],
    wait: 'spawned',
  });
  t.match(await baton.exited, { code: 1 });
  const at = 'http_filters\\[0\\]\\.typed_config\\.';
  for (const expected of [
    'allowed_headers\\.patterns\\[0\\]\\.safe_regex\\.regex: ',
    'http_service\\.authorization_request\\.allowed_headers: allowed_headers of the filter is also set',
    'http_service\\.authorization_request\\.allowed_headers\\.patterns\\[0\\]\\.safe_regex\\.regex: ',
    "http_service\\.server_uri\\.cluster: unknown cluster 'servise'; did you mean 'service'\\?",
    'http_service\\.server_uri\\.timeout: must be above 0',
    'http_service\\.path_prefix: it must begin with',
    'failure_mode_allow_header_add: it has no effect without failure_mode_allow',
    "http_service\\.authorization_request\\.headers_to_add\\[0\\]\\.key: 'a b'",
    "http_service\\.authorization_request\\.headers_to_add\\[1\\]\\.key: the service gets the request's own 'host'",
  ]) {
    t.match(baton.stderr, new RegExp(`config\\.yaml:\\d+:\\d+: .*${at}${expected}`));
  }
});

/** Returns a connection manager whose filter checks everything but /free, unless other routes are given. */
function filtered(config: Config, call: Config = {}, timeout = '5s', routes?: Config[]): Config {
  const server_uri = { uri: '127.0.0.1:10003', cluster: 'service', timeout };
  const typed_config = { '@type': `${PACKAGE}.ExtAuthz`, ...config, http_service: { server_uri, ...call } };
  const free = { typed_per_filter_config: { authz: { '@type': `${PACKAGE}.ExtAuthzPerRoute`, disabled: true } } };
  return managerOf(routes ?? [routeTo({ prefix: '/free' }, 'host', {}, free), routeTo({ prefix: '/' }, 'host')], {
    http_filters: [
      { name: 'authz', typed_config },
      { name: 'router', typed_config: { '@type': ROUTER } },
    ],
  });
}
