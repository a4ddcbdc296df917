// ext_authz with a gRPC service: what it is asked, and what its answers do.

import { createServer, type IncomingHttpHeaders } from 'node:http2';
import type { AddressInfo } from 'node:net';
import t from 'tap';
import { encodeJson, loadMessages } from '../../../../src/config/schema/messages.js';
import { Decision, decodeAnswer } from '../../../../src/extensions/filters/http/ext-authz/check-response.js';
import { framed, MessageReader } from '../../../../src/grpc/message-reader.js';
import { Authority } from '../../harness/certificates.js';
import { besideEnvoy, type ProxyProgram } from '../../harness/envoy.js';
import {
  bootstrap,
  type Config,
  fileAccessLog,
  HTTP2_CLUSTER,
  httpListener,
  httpRequest,
  logLines,
  rawExchange,
  startBaton,
  startUpstream,
  staticCluster,
  type Teardown,
  tempDir,
  waitFor,
} from '../../harness/index.js';
import { httpsGet, serverTls, trustedCa } from '../../tls/contexts.js';

const FILTER = 'type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3';
const QUESTION = 'envoy.service.auth.v3.CheckRequest';
const ANSWER = 'envoy.service.auth.v3.CheckResponse';
const types = loadMessages(QUESTION, ANSWER);

interface Question {
  readonly attributes: {
    readonly source: { readonly principal?: string; readonly certificate?: string };
    readonly destination: { readonly principal?: string };
    readonly request: { readonly http: { readonly path: string; readonly headers: Record<string, string> } };
    readonly context_extensions?: Record<string, string>;
    readonly tls_session?: { readonly sni: string };
  };
}

/** Answers by path; without one the request is allowed. `failing`: the call fails; `silent`: it has no end. */
const ANSWERS: { readonly [path: string]: object | 'failing' | 'silent' } = {
  '/changed': {
    status: { code: 0 },
    ok_response: {
      headers: [
        { header: { key: 'x-set', value: 'new' } },
        { header: { key: 'x-append', value: 'more' }, append: true },
        { header: { key: 'x-absent', value: 'no' }, append_action: 'ADD_IF_ABSENT' },
        { header: { key: 'x-present', value: 'yes' }, append_action: 'OVERWRITE_IF_EXISTS' },
        { header: { key: 'x-nowhere', value: 'no' }, append_action: 'OVERWRITE_IF_EXISTS' },
      ],
      headers_to_remove: ['x-removed', 'host', ':path'],
      response_headers_to_add: [
        { header: { key: 'x-answer', value: 'added' } },
        { header: { key: 'x-host', value: 'replaced' }, append_action: 'OVERWRITE_IF_EXISTS_OR_ADD' },
        { header: { key: 'x-host', value: 'no' }, append_action: 'ADD_IF_ABSENT' },
        { header: { key: 'x-nothing', value: 'no' }, append_action: 'OVERWRITE_IF_EXISTS' },
      ],
      query_parameters_to_set: [
        { key: 'q', value: 'v' },
        { key: 'new', value: 'n' },
      ],
      query_parameters_to_remove: ['gone'],
    },
    dynamic_metadata: { user: 'me' },
  },
  '/denied': {
    status: { code: 7 },
    denied_response: {
      status: { code: 'Conflict' },
      headers: [
        { header: { key: 'x-why', value: 'one' } },
        { header: { key: 'x-why', value: 'two' } },
        { header: { key: 'content-type', value: 'text/html' } },
      ],
      body: '<b>no</b>',
    },
  },
  '/denied-briefly': { status: { code: 16 } },
  '/appending': {
    status: { code: 0 },
    ok_response: {
      headers: [
        { header: { key: 'x-both', value: 'behind' }, append: true },
        { header: { key: 'x-both', value: 'set' } },
        { header: { key: 'x-absent', value: 'no' }, append: true },
        { header: { key: 'x-twice', value: 'more' }, append: true },
      ],
    },
  },
  '/moved': {
    status: { code: 0 },
    ok_response: {
      headers: [
        { header: { key: ':path', value: '/elsewhere?r=1' } },
        { header: { key: ':authority', value: 'b.test:1' } },
      ],
      query_parameters_to_set: [{ key: 'a%20b', value: 'c%2Cd,e' }],
    },
  },
  '/bad-field': { status: { code: 0 }, ok_response: { headers: [{ header: { key: 'x bad', value: 'v' } }] } },
  '/bad-path': { status: { code: 0 }, ok_response: { headers: [{ header: { key: ':path', value: '/a b' } }] } },
  '/denied-badly': {
    status: { code: 7 },
    denied_response: {
      status: { code: 'Unauthorized' },
      headers: [{ header: { key: 'x-why', value: 'a\nb' } }, { header: { key: 'x-other', value: 'c' } }],
    },
    dynamic_metadata: { user: 'you' },
  },
  '/erring': {
    status: { code: 13 },
    error_response: {
      status: { code: 'BadGateway' },
      headers: [{ header: { key: 'x-why', value: 'broken' } }],
      body: 'oops',
    },
  },
  '/failing': 'failing',
  '/silent': 'silent',
};

interface Service {
  readonly port: number;
  readonly heads: IncomingHttpHeaders[];
  readonly questions: Question[];
}

async function startService(t: Teardown): Promise<Service> {
  const heads: IncomingHttpHeaders[] = [];
  const questions: Question[] = [];
  const server = createServer();
  server.on('stream', (stream, head) => {
    const reader = new MessageReader(2 ** 20);
    heads.push(head);
    stream.on('error', () => {});
    stream.on('data', (bytes: Buffer) => reader.push(bytes));
    stream.on('end', () => {
      const question = types[QUESTION].toObject(types[QUESTION].decode(reader.next() as Buffer)) as Question;
      questions.push(question);
      const [path = ''] = question.attributes.request.http.path.split('?');
      const answer = ANSWERS[path] ?? { status: { code: 0 } };
      if (answer === 'silent') return;
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': answer === 'failing' ? '13' : '0' }));
      stream.end(answer === 'failing' ? '' : framed(encodeJson(types[ANSWER], answer as object)));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  return { port: (server.address() as AddressInfo).port, heads, questions };
}

async function startProxy(t: Teardown, program: ProxyProgram, service: Service, fields: Config = {}, tls?: Config) {
  const log = `${tempDir(t)}/log`;
  const host = await startUpstream(t, (request, answer) => {
    answer.setHeader('x-host', 'own');
    answer.end(JSON.stringify({ url: request.url, headers: request.headers }));
  });
  const route = (extensions: Config): Config => ({
    'envoy.filters.http.ext_authz': {
      '@type': `${FILTER}.ExtAuthzPerRoute`,
      check_settings: { context_extensions: extensions },
    },
  });
  const listener = httpListener('main', 0, {
    access_log: [
      fileAccessLog(
        log,
        '%RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS% %DYNAMIC_METADATA(envoy.filters.http.ext_authz:user)%\n',
      ),
    ],
    route_config: {
      virtual_hosts: [
        {
          name: 'all',
          domains: ['*'],
          typed_per_filter_config: route({ of: 'host', from: 'host' }),
          routes: [
            {
              match: { prefix: '/free' },
              route: { cluster: 'host' },
              typed_per_filter_config: {
                'envoy.filters.http.ext_authz': { '@type': `${FILTER}.ExtAuthzPerRoute`, disabled: true },
              },
            },
            {
              match: { prefix: '/', headers: [{ name: 'x-set', string_match: { exact: 'new' } }] },
              direct_response: { status: 202 },
            },
            { match: { prefix: '/' }, route: { cluster: 'host' }, typed_per_filter_config: route({ of: 'route' }) },
          ],
        },
      ],
    },
    http_filters: [
      {
        name: 'envoy.filters.http.ext_authz',
        typed_config: {
          '@type': `${FILTER}.ExtAuthz`,
          transport_api_version: 'V3',
          grpc_service: {
            envoy_grpc: { cluster_name: 'authz' },
            timeout: '1s',
            initial_metadata: [{ key: 'x-from', value: '%REQ(x-a)%' }],
          },
          ...fields,
        },
      },
      {
        name: 'envoy.filters.http.router',
        typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' },
      },
    ],
  });
  const [chain] = listener['filter_chains'] as Config[];
  const baton = await startBaton(t, {
    ...program,
    args: ['--file-flush-interval-msec', '50'],
    config: bootstrap({
      listeners: [tls === undefined ? listener : { ...listener, filter_chains: [{ ...chain, transport_socket: tls }] }],
      clusters: [staticCluster('host', host.port), staticCluster('authz', service.port, HTTP2_CLUSTER)],
    }),
  });
  return { baton, log, port: await baton.listenerPort('main') };
}

besideEnvoy('the service receives the properties of the request', async (t, program) => {
  const service = await startService(t);
  const { port } = await startProxy(t, program, service);
  await rawExchange(
    port,
    'POST /path?q=1 HTTP/1.1\r\nhost: a.test\r\nx-a: 1\r\nx-a: 2\r\nx-envoy-auth-partial-body: false\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi',
  );
  const [question] = service.questions;
  t.match(service.heads[0], {
    ':path': '/envoy.service.auth.v3.Authorization/Check',
    'grpc-timeout': '1000m',
    'x-from': '1',
    'x-envoy-internal': 'true',
    'x-envoy-expected-rq-timeout-ms': '1000',
  });
  const local = { socket_address: { address: '127.0.0.1', port_value: port } };
  t.match(question, {
    attributes: {
      source: { address: { socket_address: { address: '127.0.0.1', port_value: Number } } },
      destination: { address: local },
      request: {
        time: {},
        http: {
          id: /^\d+$/,
          method: 'POST',
          path: '/path?q=1',
          host: 'a.test',
          scheme: 'http',
          protocol: 'HTTP/1.1',
          headers: {
            ':method': 'POST',
            ':path': '/path?q=1',
            ':authority': 'a.test',
            ':scheme': 'http',
            'x-a': '1,2',
            'x-forwarded-proto': 'http',
            'x-request-id': /^[0-9a-f-]{36}$/,
            'content-length': '2',
          },
        },
      },
      context_extensions: { of: 'route', from: 'host' },
      metadata_context: {},
      route_metadata_context: {},
    },
  });
  const { headers } = question!.attributes.request.http;
  t.equal(headers['x-envoy-auth-partial-body'], undefined);
});

t.test('the service sees each of several cookies', async (t) => {
  const service = await startService(t);
  const { port } = await startProxy(t, { command: undefined }, service);
  await rawExchange(port, 'GET / HTTP/1.1\r\nhost: a\r\ncookie: a=1\r\ncookie: b=2\r\nconnection: close\r\n\r\n');
  t.match(service.questions[0]!.attributes.request.http.headers, { cookie: 'a=1; b=2' });
});

besideEnvoy('an answer changes the request and its response', async (t, program) => {
  const service = await startService(t);
  const { baton, log, port } = await startProxy(t, program, service);
  const names = ['x-set', 'x-append', 'x-absent', 'x-present', 'x-removed'];
  const headers = { host: 'a.test', ...Object.fromEntries(names.map((name) => [name, 'old'])) };
  const answer = await httpRequest(port, '/changed?q=1&gone=2&z=3', { headers });
  t.equal(answer.status, 200);
  t.match(answer.headers, { 'x-answer': 'added', 'x-host': 'replaced' });
  t.equal(answer.headers['x-nothing'], undefined);
  const received = JSON.parse(answer.body) as { url: string; headers: Record<string, string> };
  t.equal(received.url, '/changed?new=n&q=v&z=3');
  t.match(received.headers, {
    host: 'a.test',
    'x-set': 'new',
    'x-append': 'old,more',
    'x-absent': 'no',
    'x-present': 'yes',
  });
  t.equal(received.headers['x-removed'], undefined);
  t.equal(received.headers['x-nowhere'], 'no', 'append_action is for the response');
  const [line] = await waitFor(() => (logLines(log).length > 0 ? logLines(log) : undefined), { what: 'a line' });
  t.equal(line, '- via_upstream me');
  await baton.waitForStats({ 'http.main.ext_authz.ok': 1, 'cluster.host.ext_authz.ok': 1 });
});

besideEnvoy('a denial has the status, fields and body of the answer', async (t, program) => {
  const service = await startService(t);
  const { baton, log, port } = await startProxy(t, program, service);
  const denied = await httpRequest(port, '/denied');
  t.equal(denied.status, 409);
  t.equal(denied.body, '<b>no</b>');
  t.match(denied.headers, { 'x-why': 'one, two', 'content-type': 'text/html' });
  const brief = await httpRequest(port, '/denied-briefly');
  t.same([brief.status, brief.body], [403, '']);
  await waitFor(() => logLines(log).length === 2, { what: 'two lines' });
  t.same(logLines(log), ['UAEX ext_authz_denied -', 'UAEX ext_authz_denied -']);
  await baton.waitForStats({ 'http.main.ext_authz.denied': 2, 'cluster.host.upstream_rq_409': 1 });
});

besideEnvoy('an answer adds only to fields that exist, after it has set others', async (t, program) => {
  const service = await startService(t);
  const { port } = await startProxy(t, program, service);
  const { text } = await rawExchange(
    port,
    'GET /appending HTTP/1.1\r\nhost: a\r\nx-twice: 1\r\nx-twice: 2\r\nconnection: close\r\n\r\n',
  );
  const received = JSON.parse(text.slice(text.indexOf('{'))) as { headers: Record<string, string> };
  t.match(received.headers, { 'x-both': 'set,behind', 'x-twice': '1,more, 2' });
  t.notOk('x-absent' in received.headers);
});

besideEnvoy('an answer changes the path and the authority', async (t, program) => {
  const service = await startService(t);
  const { port } = await startProxy(t, program, service);
  const { body } = await httpRequest(port, '/moved', { headers: { host: 'a.test' } });
  const received = JSON.parse(body) as { url: string; headers: Record<string, string> };
  t.equal(received.url, '/elsewhere?a%20b=c%2Cd,e&r=1', 'the service has escaped the parameters');
  t.equal(received.headers['host'], 'b.test:1');
});

besideEnvoy('an invalid answer lets nothing pass, whatever happens without one', async (t, program) => {
  const service = await startService(t);
  const { log, port } = await startProxy(t, program, service, { failure_mode_allow: true });
  for (const path of ['/bad-field', '/bad-path']) {
    const { body, status } = await httpRequest(port, path);
    t.ok(status >= 400, `${path}: ${status}`);
    t.notMatch(body, '"url"', 'the host has not answered');
  }
  const { text } = await rawExchange(port, 'GET /denied-badly HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n');
  t.match(text, /^HTTP\/1.1 401 /);
  t.match(text, /x-other: c\r\n/i);
  const lines = await waitFor(() => (logLines(log).length === 3 ? logLines(log) : undefined), { what: 'three lines' });
  t.equal(lines[2], 'UAEX ext_authz_denied you');
});

besideEnvoy('an error that the service reports has its status, fields and body', async (t, program) => {
  const service = await startService(t);
  const { baton, port } = await startProxy(t, program, service);
  const { body, headers, status } = await httpRequest(port, '/erring');
  t.same([status, headers['x-why'], body], [502, 'broken', 'oops']);
  await baton.waitForStats({ 'http.main.ext_authz.error': 1 });
});

besideEnvoy('without an answer the request fails, or passes if that is configured', async (t, program) => {
  const service = await startService(t);
  const short = { envoy_grpc: { cluster_name: 'authz' }, timeout: '0.2s' };
  const strict = await startProxy(t, program, service, {
    grpc_service: short,
    status_on_error: { code: 'BadGateway' },
  });
  for (const path of ['/failing', '/silent']) t.equal((await httpRequest(strict.port, path)).status, 502, path);
  await strict.baton.waitForStats({ 'http.main.ext_authz.error': 2, 'cluster.authz.upstream_rq_timeout': 1 });
  await waitFor(() => logLines(strict.log).length === 2, { what: 'two lines' });
  t.same(logLines(strict.log), ['UAEX ext_authz_error -', 'UAEX ext_authz_error -']);
  const open = { grpc_service: short, failure_mode_allow: true, failure_mode_allow_header_add: true };
  const lenient = await startProxy(t, program, service, open);
  const { body, status } = await httpRequest(lenient.port, '/failing');
  t.equal(status, 200);
  t.match(JSON.parse(body), { headers: { 'x-envoy-auth-failure-mode-allowed': 'true' } });
  await lenient.baton.waitForStats({ 'http.main.ext_authz.failure_mode_allowed': 1 });
});

besideEnvoy('fields, the choice of the route and routes without authorization are configurable', async (t, program) => {
  const service = await startService(t);
  const { port } = await startProxy(t, program, service, {
    clear_route_cache: true,
    enable_dynamic_metadata_ingestion: false,
    allowed_headers: { patterns: [{ prefix: 'x-a' }, { exact: 'x-b' }, { exact: ':path' }, { exact: ':method' }] },
    disallowed_headers: { patterns: [{ exact: 'x-abc' }, { exact: ':method' }] },
  });
  t.equal((await httpRequest(port, '/changed')).status, 202, 'the route is chosen again');
  t.equal((await httpRequest(port, '/free')).status, 200);
  t.equal(service.questions.length, 1);
  await httpRequest(port, '/', { headers: { 'x-a': '1', 'x-abc': '2', 'x-b': '3', 'x-c': '4' } });
  const { headers } = service.questions[1]!.attributes.request.http;
  t.same(Object.keys(headers).sort(), [':path', 'x-a', 'x-b']);
});

besideEnvoy('the service receives certificates and the server name', async (t, program) => {
  const root = await Authority.create();
  const server = await root.issue({ names: ['server.test'] });
  const client = await root.issue({ names: ['client.test', { type: 'url', value: 'spiffe://a/client' }] });
  const service = await startService(t);
  const tls = serverTls([server], { validation_context: trustedCa(root) });
  const fields = { include_peer_certificate: true, include_tls_session: true };
  const { port } = await startProxy(t, program, service, fields, tls);
  await httpsGet(port, { ca: root.certificate, cert: client.certificate, key: client.key }, '/');
  const { destination, source, request } = service.questions[0]!.attributes;
  t.equal(source.principal, 'spiffe://a/client');
  t.equal(destination.principal, 'server.test');
  t.equal(decodeURIComponent(source.certificate!).trim(), client.certificate.trim());
  t.equal((request.http as unknown as { scheme: string }).scheme, 'https');
});

t.test('changes that are not valid are refused for the request, and left out for the client', async (t) => {
  const decode = (answer: object) => decodeAnswer(encodeJson(types[ANSWER], answer));
  for (const header of [
    { key: 'x\ny', value: 'a' },
    { key: 'x', value: 'a\r\nb' },
    { key: '', value: 'a' },
    { key: ':authority', value: 'a b' },
    { key: 'host', value: '' },
  ]) {
    const headers = [{ header }];
    t.equal(decode({ status: {}, ok_response: { headers } }).decision, Decision.Invalid, JSON.stringify(header));
    const denied = { decision: Decision.Denied, headers: [], status: undefined, body: 'b' };
    t.match(decode({ status: { code: 7 }, denied_response: { headers, body: 'b', status: { code: 1 } } }), denied);
    t.match(decode({ status: {}, ok_response: { response_headers_to_add: headers } }), { toClient: [] });
  }
  const framing = ['content-length', 'Transfer-Encoding', ':status', 'te'].map((key) => ({
    header: { key, value: '1' },
  }));
  t.match(decode({ status: {}, ok_response: { headers: framing } }), { decision: Decision.Allowed, toHost: [] });
  t.throws(() => decodeAnswer(Buffer.from('ff', 'hex')));
  t.equal(decodeAnswer(Buffer.alloc(0)).decision, Decision.Allowed);
});
