// ext_authz: bodies, mutations that rules forbid, shadow mode, and per-route settings.

import t from 'tap';
import { besideEnvoy } from '../../harness/envoy.js';
import { connectRaw, httpRequest, logLines, startUpstream, waitFor } from '../../harness/index.js';
import { FILTER, startAuthzProxy, startAuthzService } from './ext-authz-service.js';

const DENIED = {
  status: { code: 7 },
  denied_response: {
    status: { code: 'Unauthorized' },
    headers: [{ header: { key: 'x-why', value: 'no' } }],
    body: '0123456789',
  },
};
const ANSWERS = {
  '/denied': DENIED,
  '/failing': 'failing',
  '/denied-badly': {
    status: { code: 7 },
    denied_response: { headers: [{ header: { key: 'x-why', value: 'a\nb' } }], body: 'no' },
  },
  '/changed': {
    ok_response: {
      headers: [
        { header: { key: 'x-new', value: '1' } },
        { header: { key: 'x-envoy-new', value: '1' } },
        { header: { key: 'host', value: 'other' } },
      ],
      headers_to_remove: ['x-old', 'x-envoy-old'],
    },
  },
} as const;

const body = (length: number) => ({ method: 'POST', body: 'x'.repeat(length) });
const echoed = (text: string) => JSON.parse(text) as { headers: Record<string, string>; body: string };

besideEnvoy('the service receives the body, or as much of it as the settings allow', async (t, program) => {
  const { port: authz, questions } = await startAuthzService(t, ANSWERS);
  const route = (path: string, settings: object) => ({
    match: { prefix: path },
    route: { cluster: 'host' },
    typed_per_filter_config: { authz: { '@type': `${FILTER}.ExtAuthzPerRoute`, check_settings: settings } },
  });
  const { baton, ports } = await startAuthzProxy(
    t,
    program,
    { authz },
    {
      whole: {
        filter: { with_request_body: { max_request_bytes: 10 } },
        routes: [
          route('/none', { disable_request_body_buffering: true }),
          route('/few', { with_request_body: { max_request_bytes: 3, allow_partial_message: true } }),
          route('/', { context_extensions: { a: 'b' } }),
        ],
      },
      partial: {
        filter: { with_request_body: { max_request_bytes: 10, allow_partial_message: true, pack_as_bytes: true } },
      },
      raw: {
        filter: { with_request_body: { max_request_bytes: 10, allow_partial_message: true }, encode_raw_headers: true },
      },
    },
  );
  const last = () => questions.at(-1)!.request.http;
  t.match(await httpRequest(ports['whole']!, '/', body(10)), { status: 200, body: /"body":"x{10}"/ });
  t.match(last(), { body: 'x'.repeat(10), size: 10, headers: { 'x-envoy-auth-partial-body': 'false' } });
  t.same(questions.at(-1)!.context_extensions, { a: 'b' });
  t.match(await httpRequest(ports['whole']!, '/', body(11)), { status: 413, body: 'Payload Too Large' });
  t.equal(questions.length, 1, 'a longer body is refused before the service is asked');
  t.match(await httpRequest(ports['whole']!, '/none', body(20)), { status: 200, body: /"body":"x{20}"/ });
  t.equal(last().body, undefined);
  t.match(await httpRequest(ports['whole']!, '/few', body(20)), { status: 200, body: /"body":"x{20}"/ });
  t.match(last(), { body: 'xxx', headers: { 'x-envoy-auth-partial-body': 'true' } });
  t.match(await httpRequest(ports['whole']!, '/'), { status: 200 });
  t.equal(last().headers!['x-envoy-auth-partial-body'], undefined, 'a request without a body');
  t.match(await httpRequest(ports['partial']!, '/', body(200_000)), { status: 200, body: /"body":"x{200000}"/ });
  t.same(last().raw_body?.toString(), 'x'.repeat(10));
  t.equal(last().body, undefined);
  t.match(await httpRequest(ports['partial']!, '/denied', body(200_000)), { status: 401 });
  await httpRequest(ports['raw']!, '/', body(20));
  const partial = last().header_map!.headers.find(({ key }) => key === 'x-envoy-auth-partial-body');
  t.equal(partial?.raw_value.toString(), 'true');
  await httpRequest(ports['whole']!, '/', { method: 'POST', body: Buffer.from('a\xffb', 'latin1') });
  t.equal(last().body, 'a!b', 'a service could not decode a text that is not UTF-8');
  await httpRequest(ports['whole']!, '/few', { method: 'POST', body: Buffer.from('abé') });
  t.equal(last().body, 'ab!', 'nor one that is cut off within a character');
  await baton.waitForStats({ 'http.whole.ext_authz.ok': 6, 'http.partial.ext_authz.ok': 1 });
});

besideEnvoy('the service receives metadata, labels and raw fields', async (t, program) => {
  const { port: authz, questions } = await startAuthzService(t, ANSWERS);
  const metadata = {
    name: 'metadata',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.filters.http.set_metadata.v3.Config',
      metadata: [{ metadata_namespace: 'own', value: { a: 'x' } }],
    },
  };
  const { ports } = await startAuthzProxy(
    t,
    program,
    { authz },
    {
      main: {
        before: [metadata],
        filter: {
          metadata_context_namespaces: ['own', 'absent'],
          route_metadata_context_namespaces: ['of-route'],
          bootstrap_metadata_labels_key: 'labels',
          encode_raw_headers: true,
        },
        routes: [
          {
            match: { prefix: '/' },
            route: { cluster: 'host' },
            metadata: { filter_metadata: { 'of-route': { b: 'y' }, other: { c: 'z' } } },
          },
        ],
      },
    },
  );
  await httpRequest(ports['main']!, '/', { headers: { 'x-a': 'é' } });
  const [question] = questions;
  t.same(Object.keys(question!.metadata_context.filter_metadata!), ['own']);
  t.same(Object.keys(question!.route_metadata_context.filter_metadata!), ['of-route']);
  t.same(question!.destination.labels, { zone: 'a', rank: '' });
  t.equal(question!.request.http.headers, undefined);
  const field = question!.request.http.header_map!.headers.find(({ key }) => key === 'x-a');
  t.equal(field?.raw_value.toString('latin1'), 'é');
});

besideEnvoy('mutation rules decide which request headers the service may change', async (t, program) => {
  const { port: authz } = await startAuthzService(t, ANSWERS);
  const rules = (decoder_header_mutation_rules: object) => ({ filter: { decoder_header_mutation_rules } });
  const { ports } = await startAuthzProxy(
    t,
    program,
    { authz },
    {
      usual: rules({}),
      all: rules({ allow_all_routing: true, allow_envoy: true }),
      none: rules({ disallow_all: true }),
      one: rules({ disallow_all: true, allow_expression: { regex: 'x-envoy-n.*' } }),
      strict: rules({ disallow_expression: { regex: 'x-new' }, disallow_is_error: true }),
    },
  );
  const changed = async (listener: string) => {
    const headers = { host: 'a', 'x-old': '1', 'x-envoy-old': '1' };
    const answer = await httpRequest(ports[listener]!, '/changed', { headers });
    if (answer.status !== 200) return answer.status;
    const { headers: received } = echoed(answer.body);
    const names = ['x-new', 'x-envoy-new', 'x-old', 'x-envoy-old'].filter((name) => name in received);
    return [received['host'], ...names];
  };
  t.same(await changed('usual'), ['a', 'x-new', 'x-envoy-old']);
  t.same(await changed('all'), ['other', 'x-new', 'x-envoy-new']);
  t.same(await changed('none'), ['a', 'x-old', 'x-envoy-old']);
  t.same(await changed('one'), ['a', 'x-envoy-new', 'x-old', 'x-envoy-old']);
  t.equal(await changed('strict'), 500);
});

besideEnvoy('in shadow mode decisions are recorded but not enforced', async (t, program) => {
  const { port: authz } = await startAuthzService(t, ANSWERS);
  const { baton, log, ports } = await startAuthzProxy(
    t,
    program,
    { authz },
    {
      main: { filter: { shadow_mode: true, failure_mode_allow: true } },
      off: {
        filter: {
          shadow_mode: true,
          filter_enabled: { default_value: { numerator: 0 } },
          deny_at_disable: { default_value: true, runtime_key: 'deny' },
        },
      },
    },
  );
  for (const path of ['/', '/denied', '/failing']) t.equal((await httpRequest(ports['main']!, path)).status, 200);
  t.equal((await httpRequest(ports['off']!, '/off')).status, 200);
  await waitFor(() => logLines(log).length === 4, { what: 'four lines' });
  t.same(logLines(log), [
    '/ 200 - via_upstream {"checkResult":"OK","statusCode":200} OK -',
    '/denied 200 - via_upstream {"checkResult":"DENIED","statusCode":401,"responseHeaders":[{"key":"x-why","value":"no"}]} DENIED -',
    '/failing 200 - via_upstream {"checkResult":"ERROR","statusCode":403} ERROR -',
    '/off 200 UAEX via_upstream {"checkResult":"DENIED","statusCode":403} DENIED -',
  ]);
  await baton.waitForStats({
    'http.main.ext_authz.ok': 1,
    'http.main.ext_authz.denied': 1,
    'http.main.ext_authz.shadow_denied': 1,
    'http.main.ext_authz.shadow_error': 1,
    'http.main.ext_authz.failure_mode_allowed': 0,
    'http.off.ext_authz.shadow_denied': 1,
    'http.off.ext_authz.disabled': 1,
  });
});

besideEnvoy('metadata selects the checked requests, and deny_at_disable refuses the others', async (t, program) => {
  const { port: authz, questions } = await startAuthzService(t, ANSWERS);
  const metadata = (value: object) => ({
    name: 'metadata',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.filters.http.set_metadata.v3.Config',
      metadata: [{ metadata_namespace: 'own', value }],
    },
  });
  const filter_enabled_metadata = {
    filter: 'own',
    path: [{ key: 'check' }, { key: 'it' }],
    value: {
      list_match: {
        one_of: {
          or_match: { value_matchers: [{ double_match: { range: { start: 1, end: 2 } } }, { null_match: {} }] },
        },
      },
    },
  };
  const { baton, log, ports } = await startAuthzProxy(
    t,
    program,
    { authz },
    {
      checked: { before: [metadata({ check: { it: [5, 1] } })], filter: { filter_enabled_metadata } },
      free: { before: [metadata({ check: { it: [5, 2] } })], filter: { filter_enabled_metadata } },
      off: { filter: { filter_enabled_metadata, deny_at_disable: { default_value: true, runtime_key: 'deny' } } },
    },
  );
  t.equal((await httpRequest(ports['checked']!, '/denied')).status, 401);
  t.equal((await httpRequest(ports['free']!, '/denied')).status, 200);
  t.equal((await httpRequest(ports['off']!, '/')).status, 403);
  t.equal(questions.length, 1);
  await waitFor(() => logLines(log).length === 3, { what: 'three lines' });
  t.equal(logLines(log)[2], '/ 403 UAEX ext_authz_error - - -');
  await baton.waitForStats({ 'http.free.ext_authz.disabled': 1, 'http.off.ext_authz.disabled': 1 });
});

besideEnvoy('denied responses are truncated, validated and counted as configured', async (t, program) => {
  const { port: authz } = await startAuthzService(t, ANSWERS);
  const { baton, log, ports } = await startAuthzProxy(
    t,
    program,
    { authz },
    {
      main: {
        filter: { max_denied_response_body_bytes: 4, validate_mutations: true, charge_cluster_response_stats: false },
      },
    },
  );
  t.match(await httpRequest(ports['main']!, '/denied'), { status: 401, body: '0123', headers: { 'x-why': 'no' } });
  t.match(await httpRequest(ports['main']!, '/denied-badly'), { status: 500, body: '' });
  await waitFor(() => logLines(log).length === 2, { what: 'two lines' });
  t.equal(logLines(log)[1], '/denied-badly 500 UAEX ext_authz_invalid - - -');
  await baton.waitForStats({ 'http.main.ext_authz.denied': 2, 'http.main.ext_authz.invalid': 1 });
  t.notOk((await baton.stat('cluster.host.upstream_rq_401')) ?? 0);
});

besideEnvoy('the route is selected again only after a change of a listed header', async (t, program) => {
  const { port: authz } = await startAuthzService(t, ANSWERS);
  const routes = [
    { match: { prefix: '/', headers: [{ name: 'x-new', present_match: true }] }, direct_response: { status: 202 } },
    { match: { prefix: '/' }, route: { cluster: 'host' } },
  ];
  const listed = (name: string) => ({ filter: { clear_route_cache: true, clear_route_cache_headers: [name] }, routes });
  const { ports } = await startAuthzProxy(t, program, { authz }, { new: listed('X-New'), other: listed('x-other') });
  t.equal((await httpRequest(ports['new']!, '/changed')).status, 202);
  t.equal((await httpRequest(ports['other']!, '/changed')).status, 200);
});

besideEnvoy('an HTTP service receives the body, and its response headers become metadata', async (t, program) => {
  const asked: { url: string | undefined; body: string; partial: unknown }[] = [];
  const service = await startUpstream(t, (request, answer) => {
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('end', () => {
      const partial = request.headers['x-envoy-auth-partial-body'];
      asked.push({ url: request.url, body: Buffer.concat(pieces).toString(), partial });
      answer.setHeader('x-md', ['1', '2']);
      answer.setHeader('x-new', '1');
      answer.statusCode = request.url === '/denied' ? 401 : 200;
      answer.end('0123456789');
    });
  });
  const { port: authz } = await startAuthzService(t, ANSWERS);
  const http_service = {
    server_uri: { uri: 'http://service', cluster: 'http-authz', timeout: '5s' },
    authorization_response: {
      dynamic_metadata_from_headers: { patterns: [{ exact: 'x-md' }] },
      allowed_upstream_headers: { patterns: [{ exact: 'x-new' }] },
    },
  };
  const { log, ports } = await startAuthzProxy(
    t,
    program,
    { authz, http: service.port },
    {
      main: {
        filter: {
          http_service,
          with_request_body: { max_request_bytes: 5, allow_partial_message: true },
          max_denied_response_body_bytes: 3,
          clear_route_cache: true,
        },
        routes: [
          {
            match: { prefix: '/again', headers: [{ name: 'x-new', present_match: true }] },
            direct_response: { status: 202 },
          },
          { match: { prefix: '/' }, route: { cluster: 'host' } },
        ],
      },
      override: { filter: { http_service: { ...http_service, path_override: '/fixed?a=b' } } },
      ruled: { filter: { http_service, decoder_header_mutation_rules: { disallow_all: true } } },
      strict: {
        filter: { http_service, decoder_header_mutation_rules: { disallow_all: true, disallow_is_error: true } },
      },
    },
  );
  t.match(await httpRequest(ports['main']!, '/', body(10)), { status: 200, body: /"body":"x{10}"/ });
  t.same(asked.at(-1), { url: '/', body: 'xxxxx', partial: 'true' });
  t.match(await httpRequest(ports['main']!, '/again', body(5)), { status: 202 });
  t.same(asked.at(-1), { url: '/again', body: 'xxxxx', partial: 'false' });
  t.match(await httpRequest(ports['main']!, '/denied'), { status: 401, body: '012' });
  t.match(await httpRequest(ports['override']!, '/path?c=d'), { status: 200 });
  t.same(asked.at(-1), { url: '/fixed?a=b', body: '', partial: undefined });
  await waitFor(() => logLines(log).length === 4, { what: 'four lines' });
  t.same(
    logLines(log).map((line) => line.split(' ').at(-1)),
    ['2', '2', '2', '2'],
  );
  const ruled = await httpRequest(ports['ruled']!, '/');
  t.same([ruled.status, echoed(ruled.body).headers['x-new']], [200, undefined]);
  t.equal((await httpRequest(ports['strict']!, '/')).status, 500);
});

t.test('a body that has not ended is partial, even if the service has received all of it so far', async (t) => {
  const { port: authz, questions } = await startAuthzService(t, ANSWERS);
  const filter = { with_request_body: { max_request_bytes: 5, allow_partial_message: true } };
  const { ports } = await startAuthzProxy(t, { command: undefined }, { authz }, { main: { filter } });
  const client = await connectRaw(t, ports['main']!);
  client.write('POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n5\r\nabcde\r\n');
  await waitFor(() => questions.length === 1, { what: 'a question' });
  t.match(questions[0]!.request.http, { body: 'abcde', headers: { 'x-envoy-auth-partial-body': 'true' } });
  client.write('1\r\nf\r\n0\r\n\r\n');
  t.match(await client.readUntil('"body":"abcdef"'), /^HTTP\/1.1 200 /);
});

t.test('the body of an upgrade request is sent to the service and to the host', async (t) => {
  const { port: authz, questions } = await startAuthzService(t, ANSWERS);
  const routes = [
    { match: { prefix: '/' }, route: { cluster: 'host', upgrade_configs: [{ upgrade_type: 'websocket' }] } },
  ];
  const filter = { with_request_body: { max_request_bytes: 5 } };
  const { ports } = await startAuthzProxy(t, { command: undefined }, { authz }, { main: { filter, routes } });
  const ask = async (path: string, body: string) => {
    const client = await connectRaw(t, ports['main']!);
    const fields = `host: a\r\nconnection: upgrade\r\nupgrade: websocket\r\ncontent-length: ${body.length}`;
    client.write(`POST ${path} HTTP/1.1\r\n${fields}\r\n\r\n${body}`);
    return (await client.readUntil('\r\n')).split(' ')[1];
  };
  t.equal(await ask('/', 'abcde'), '200');
  t.match(questions[0]!.request.http, { body: 'abcde', headers: { 'x-envoy-auth-partial-body': 'false' } });
  t.equal(await ask('/denied', 'abc'), '401');
  t.equal(await ask('/', 'abcdef'), '413');
  t.equal(await ask('/', ''), '200');
  t.equal(questions.at(-1)!.request.http.body, undefined);
});

besideEnvoy('a route can use another service than the filter', async (t, program) => {
  const { port: authz, questions } = await startAuthzService(t, ANSWERS);
  const heads: string[] = [];
  const service = await startUpstream(t, (request, answer) => {
    heads.push(String(request.headers['x-a']));
    answer.setHeader('x-user', 'me');
    answer.end();
  });
  const route = (path: string, settings: object) => ({
    match: { prefix: path },
    route: { cluster: 'host' },
    typed_per_filter_config: { authz: { '@type': `${FILTER}.ExtAuthzPerRoute`, check_settings: settings } },
  });
  const server_uri = { uri: 'http://service', cluster: 'http-authz', timeout: '5s' };
  const { ports } = await startAuthzProxy(
    t,
    program,
    { authz, http: service.port },
    {
      grpc: {
        filter: {},
        routes: [
          route('/http', {
            http_service: {
              server_uri,
              authorization_response: { allowed_upstream_headers: { patterns: [{ exact: 'x-user' }] } },
            },
          }),
          route('/gone', { grpc_service: { envoy_grpc: { cluster_name: 'gone' } } }),
          route('/', {}),
        ],
      },
      http: {
        filter: { http_service: { server_uri } },
        routes: [route('/', { grpc_service: { envoy_grpc: { cluster_name: 'authz' } } })],
      },
    },
  );
  const headers = { 'x-a': '1' };
  const answered = await httpRequest(ports['grpc']!, '/http', { headers });
  t.equal(echoed(answered.body).headers['x-user'], 'me');
  t.same(heads, ['1'], 'it receives all fields');
  t.equal((await httpRequest(ports['grpc']!, '/gone')).status, 403);
  t.equal((await httpRequest(ports['grpc']!, '/denied')).status, 401);
  t.equal((await httpRequest(ports['http']!, '/denied', { headers })).status, 401);
  t.notOk('x-a' in questions.at(-1)!.request.http.headers!);
});
