// The calls that filters and access logs make are retried by their retry_policy. All results are Envoy's.

import { createServer as createHttp } from 'node:http';
import { createServer as createHttp2, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo, Server } from 'node:net';
import type { Test } from 'tap';
import { encodeJson, loadMessages } from '../../../../src/config/schema/messages.js';
import { framed, MessageReader } from '../../../../src/grpc/message-reader.js';
import { besideEnvoy, type ProxyProgram } from '../../harness/envoy.js';
import {
  type Config,
  connectRaw,
  freePort,
  HTTP2_CLUSTER,
  httpRequest,
  ROUTER_FILTER,
  staticCluster,
  waitFor,
} from '../../harness/index.js';
import { managerOf, startProxy } from '../proxy.js';

const EXT_AUTHZ = 'type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz';
const JWT = 'type.googleapis.com/envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication';
const ALS = 'type.googleapis.com/envoy.extensions.access_loggers.grpc.v3.HttpGrpcAccessLogConfig';
const EXT_PROC = 'type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor';
const ANSWER = 'envoy.service.ext_proc.v3.ProcessingResponse';
const answers = loadMessages(ANSWER)[ANSWER];
const PREVIOUS_HOSTS = {
  name: 'envoy.retry_host_predicates.previous_hosts',
  typed_config: { '@type': 'type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate' },
};
/** {"alg":"RS256","typ":"JWT","kid":"a"}.{"iss":"i"}. */
const TOKEN = 'eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6ImEifQ.eyJpc3MiOiJpIn0.c2ln';
const QUICK = { base_interval: '0.001s', max_interval: '20s' };
/** Limits each try. */
const SHORT = { base_interval: '0.001s', max_interval: '0.3s' };
/** How long the body of a slow response takes. */
const SLOW_MS = 600;

/** The first path segment of requests by HTTP, or the metadata x-mode of calls, chooses the behaviour of a service. */
interface Services {
  readonly http: number;
  readonly grpc: number;
  /** The behaviours in the order of the tries. */
  readonly tries: string[];
}

async function startServices(t: Test): Promise<Services> {
  const tries: string[] = [];
  const http = createHttp((request, response) => {
    const mode = request.url!.split('/')[1]!;
    const isFirst = !tries.includes(mode);
    tries.push(mode);
    if (mode === 'silent') return;
    if (mode === 'broken') return void request.socket.destroy();
    response.statusCode = mode === 'unavailable' || (mode === 'once' && isFirst) ? 503 : 200;
    if (mode !== 'slow') return void response.end();
    response.write('begin');
    setTimeout(() => response.end('end'), SLOW_MS);
  });
  const grpc = createHttp2();
  grpc.on('stream', (stream, headers) => {
    const mode = String(headers['x-mode']);
    tries.push(mode);
    stream.on('error', () => {});
    if (mode === 'broken') return stream.close(8);
    if (mode !== 'silent') answerUnavailable(stream, mode === 'late');
  });
  return { http: await listening(t, http), grpc: await listening(t, grpc), tries };
}

/** `isLate`: the status is in trailers, behind the head. */
function answerUnavailable(stream: ServerHttp2Stream, isLate: boolean): void {
  const head = { ':status': 200, 'content-type': 'application/grpc' };
  if (!isLate) return stream.respond({ ...head, 'grpc-status': '14' }, { endStream: true });
  stream.respond(head, { waitForTrailers: true });
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '14' }));
  stream.end();
}

async function listening(t: Test, server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.close();
    (server as { closeAllConnections?(): void }).closeAllConnections?.();
  });
  return (server.address() as AddressInfo).port;
}

function httpAuthz(mode: string, retry_policy: Config, timeout = '5s', cluster = 'http'): Config {
  const http_service = { server_uri: { uri: 'http://a', cluster, timeout }, path_prefix: `/${mode}`, retry_policy };
  return { name: 'authz', typed_config: { '@type': EXT_AUTHZ, http_service } };
}

function grpcAuthz(mode: string, retry_policy: Config, timeout = '5s', cluster_name = 'grpc'): Config {
  const initial_metadata = [{ key: 'x-mode', value: mode }];
  const grpc_service = { envoy_grpc: { cluster_name }, timeout, initial_metadata, retry_policy };
  return { name: 'authz', typed_config: { '@type': EXT_AUTHZ, transport_api_version: 'V3', grpc_service } };
}

function jwt(mode: string, retry_policy: Config): Config {
  const http_uri = { uri: `http://a/${mode}`, cluster: 'http', timeout: '5s' };
  const providers = { p: { issuer: 'i', remote_jwks: { http_uri, retry_policy } } };
  const rules = [{ match: { prefix: '/' }, requires: { provider_name: 'p' } }];
  return { name: 'envoy.filters.http.jwt_authn', typed_config: { '@type': JWT, providers, rules } };
}

async function start(t: Test, program: ProxyProgram, filters: Readonly<Record<string, Config>>) {
  const { http, grpc, tries } = await startServices(t);
  const dead = await freePort();
  const listeners = Object.entries(filters).map(([name, filter]) => [
    name,
    managerOf([{ match: { prefix: '/' }, direct_response: { status: 200 } }], {
      http_filters: [filter, ROUTER_FILTER],
    }),
  ]);
  const { baton, ports } = await startProxy(t, {
    ...program,
    listeners: Object.fromEntries(listeners) as Record<string, Config>,
    clusters: [
      staticCluster('http', http, { circuit_breakers: { thresholds: [{ track_remaining: true }] } }),
      staticCluster('grpc', grpc, HTTP2_CLUSTER),
      staticCluster('dead', dead),
      staticCluster('dead-grpc', dead, HTTP2_CLUSTER),
      staticCluster('two', [dead, http]),
    ],
  });
  /** Sends a request, and returns its status and the number of tries that it has caused. */
  const outcome = async (name: string): Promise<readonly [status: number, tries: number]> => {
    const before = tries.length;
    const headers = { authorization: `Bearer ${TOKEN}` };
    const { status } = await httpRequest(ports[name]!, '/', { headers });
    return [status, tries.length - before];
  };
  return { baton, ports, tries, outcome };
}

const retried = (num_retries: number, retry_on?: string, retry_back_off: Config = QUICK): Config => ({
  num_retries,
  retry_back_off,
  ...(retry_on !== undefined && { retry_on }),
});

besideEnvoy('HTTP calls are retried under the conditions of their policy', async (t, program) => {
  const { baton, outcome } = await start(t, program, {
    'no-condition': httpAuthz('unavailable', retried(3)),
    'other-condition': httpAuthz('unavailable', retried(3, 'reset')),
    matching: httpAuthz('unavailable', retried(3, '5xx')),
    none: httpAuthz('unavailable', retried(0, '5xx')),
    once: httpAuthz('once', retried(3, '5xx')),
    broken: httpAuthz('broken', retried(2, 'reset')),
    dead: httpAuthz('any', retried(2, 'connect-failure'), '5s', 'dead'),
  });
  t.same(await outcome('no-condition'), [403, 1]);
  t.same(await outcome('other-condition'), [403, 1]);
  t.same(await outcome('matching'), [403, 4]);
  t.same(await outcome('none'), [403, 1]);
  t.same(await outcome('once'), [200, 2], 'the answer of the retry decides');
  t.same(await outcome('broken'), [403, 3]);
  t.same(await outcome('dead'), [403, 0]);
  await baton.waitForStats({
    'cluster.http.upstream_rq_retry': 6,
    'cluster.http.upstream_rq_retry_success': 1,
    'cluster.http.upstream_rq_retry_limit_exceeded': 3,
    'cluster.http.upstream_rq_503': 5,
    'cluster.http.retry.upstream_rq_503': 4,
    'cluster.dead.upstream_rq_retry': 2,
    'cluster.dead.upstream_rq_retry_limit_exceeded': 1,
    'cluster.dead.upstream_rq_503': 1,
    'cluster.http.circuit_breakers.default.rq_retry_open': 0,
  });
});

besideEnvoy('each try is limited by the longest back-off interval, and all by the timeout', async (t, program) => {
  const { baton, outcome } = await start(t, program, {
    tries: httpAuthz('silent', retried(2, '5xx', SHORT)),
    unretried: httpAuthz('silent', retried(2, undefined, SHORT)),
    whole: httpAuthz('silent', retried(9, '5xx', SHORT), '0.5s'),
    grpc: grpcAuthz('silent', retried(1, '5xx', SHORT)),
    slow: httpAuthz('slow', retried(1, '5xx', SHORT)),
  });
  t.same(await outcome('tries'), [403, 3]);
  t.same(await outcome('unretried'), [403, 1]);
  t.same(await outcome('whole'), [403, 2]);
  t.same(await outcome('grpc'), [403, 2]);
  t.same(await outcome('slow'), [200, 1], 'the limit of a try ends with the response head');
  await baton.waitForStats({
    'cluster.http.circuit_breakers.default.remaining_retries': 3,
    'cluster.http.upstream_rq_per_try_timeout': 5,
    'cluster.http.upstream_rq_timeout': 1,
    'cluster.grpc.upstream_rq_per_try_timeout': 2,
    'cluster.grpc.upstream_rq_timeout': 0,
  });
});

besideEnvoy('gRPC calls are retried by the policy of their service', async (t, program) => {
  const { baton, outcome } = await start(t, program, {
    'no-condition': grpcAuthz('unavailable', retried(3)),
    matching: grpcAuthz('unavailable', retried(3, 'unavailable')),
    late: grpcAuthz('late', retried(3, 'unavailable')),
    broken: grpcAuthz('broken', retried(2, 'reset')),
    dead: grpcAuthz('any', retried(2, 'connect-failure'), '5s', 'dead-grpc'),
  });
  t.same(await outcome('no-condition'), [403, 1]);
  t.same(await outcome('matching'), [403, 4]);
  t.same(await outcome('late'), [403, 1], 'a response that has begun is not retried');
  t.same(await outcome('broken'), [403, 3]);
  t.same(await outcome('dead'), [403, 0]);
  await baton.waitForStats({
    'cluster.grpc.upstream_rq_retry': 5,
    'cluster.grpc.upstream_rq_retry_limit_exceeded': 2,
    'cluster.grpc.retry.upstream_rq_200': 3,
    'cluster.dead-grpc.upstream_rq_retry': 2,
  });
});

besideEnvoy('fetches of keys are retried under fixed conditions', async (t, program) => {
  const { outcome } = await start(t, program, {
    own: jwt('unavailable', retried(2)),
    other: jwt('unavailable', retried(2, 'reset')),
  });
  t.same(await outcome('own'), [401, 3]);
  t.same(await outcome('other'), [401, 3], 'retry_on has no effect');
});

besideEnvoy('retries prefer hosts that were not tried', async (t, program) => {
  const policy = {
    ...retried(1, 'connect-failure'),
    retry_host_predicate: [PREVIOUS_HOSTS],
    host_selection_retry_max_attempts: 5,
  };
  const { outcome } = await start(t, program, { two: httpAuthz('fine', policy, '5s', 'two') });
  for (let request = 0; request < 8; request++) t.same(await outcome('two'), [200, 1]);
});

besideEnvoy('no retry follows when the client has gone away', async (t, program) => {
  const policy = {
    num_retries: 500,
    retry_on: '5xx',
    retry_back_off: { base_interval: '0.05s', max_interval: '0.1s' },
  };
  const { baton, ports, tries } = await start(t, program, { main: httpAuthz('unavailable', policy) });
  const client = await connectRaw(t, ports['main']!);
  client.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
  await waitFor(() => tries.length > 1);
  await baton.waitForStats({ 'cluster.http.circuit_breakers.default.remaining_retries': 2 });
  client.destroy();
  await baton.waitForStats({ 'cluster.http.circuit_breakers.default.remaining_retries': 3 });
  t.ok(tries.length < 500);
});

besideEnvoy('a stream to a processor is opened again with its first message', async (t, program) => {
  const received: Buffer[] = [];
  const server = createHttp2();
  server.on('stream', (stream) => {
    const isFirst = received.length === 0;
    const reader = new MessageReader(2 ** 20);
    stream.on('error', () => {});
    stream.on('data', (bytes: Buffer) => {
      reader.push(bytes);
      const message = reader.next();
      if (message === undefined) return;
      received.push(message as Buffer);
      if (isFirst) return answerUnavailable(stream, false);
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' });
      stream.write(framed(encodeJson(answers, { request_headers: {} })));
    });
  });
  const processor = await listening(t, server);
  const grpc_service = { envoy_grpc: { cluster_name: 'processor' }, retry_policy: retried(1, 'unavailable') };
  const processing_mode = { response_header_mode: 'SKIP' };
  const filter = {
    name: 'proc',
    typed_config: { '@type': EXT_PROC, grpc_service, processing_mode, message_timeout: '10s' },
  };
  const { ports } = await startProxy(t, {
    ...program,
    listeners: {
      main: managerOf([{ match: { prefix: '/' }, direct_response: { status: 200 } }], {
        http_filters: [filter, ROUTER_FILTER],
      }),
    },
    clusters: [staticCluster('processor', processor, HTTP2_CLUSTER)],
  });
  t.equal((await httpRequest(ports['main']!, '/first')).status, 200);
  t.equal(received.length, 2);
  t.same(received[0], received[1]);
});

besideEnvoy('a circuit breaker limits retries, and gets its place back', async (t, program) => {
  const { http, tries } = await startServices(t);
  const { baton, ports } = await startProxy(t, {
    ...program,
    listeners: {
      main: managerOf([{ match: { prefix: '/' }, direct_response: { status: 200 } }], {
        http_filters: [httpAuthz('unavailable', retried(2, '5xx')), ROUTER_FILTER],
      }),
    },
    clusters: [staticCluster('http', http, { circuit_breakers: { thresholds: [{ max_retries: 0 }] } })],
  });
  t.equal((await httpRequest(ports['main']!, '/')).status, 403);
  t.equal(tries.length, 1);
  await baton.waitForStats({ 'cluster.http.upstream_rq_retry_overflow': 1, 'cluster.http.upstream_rq_retry': 0 });
});

besideEnvoy('an access log stream is retried when it cannot connect, with its first message', async (t, program) => {
  const received: Buffer[] = [];
  const server = createHttp2();
  server.on('stream', (stream) => {
    const reader = new MessageReader(2 ** 20);
    stream.on('error', () => {});
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' });
    stream.on('data', (bytes: Buffer) => {
      reader.push(bytes);
      for (let next = reader.next(); next !== undefined; next = reader.next()) received.push(next as Buffer);
    });
  });
  const port = await freePort();
  const common_config = {
    log_name: 'retried-log',
    transport_api_version: 'V3',
    buffer_flush_interval: '3600s',
    buffer_size_bytes: 1,
    grpc_service: { envoy_grpc: { cluster_name: 'als' } },
    grpc_stream_retry_policy: { num_retries: 100, retry_back_off: { base_interval: '0.05s', max_interval: '0.1s' } },
  };
  const { baton, ports } = await startProxy(t, {
    ...program,
    listeners: {
      main: managerOf([{ match: { prefix: '/' }, direct_response: { status: 200 } }], {
        access_log: [{ name: 'als', typed_config: { '@type': ALS, common_config } }],
      }),
    },
    clusters: [staticCluster('als', port, HTTP2_CLUSTER)],
  });
  t.equal((await httpRequest(ports['main']!, '/')).status, 200);
  await waitFor(async () => ((await baton.stat('cluster.als.upstream_rq_retry')) ?? 0) > 1);
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  await waitFor(() => received.length > 0);
  t.ok(received[0]!.includes('retried-log'), 'the identifier is in the first message');
});
