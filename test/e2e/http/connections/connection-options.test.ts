// Options of HTTP/1.1 connections: drain_timeout, enable_trailers, allow_absolute_url, max_connection_duration; and path
// normalization.

import type { ServerResponse } from 'node:http';
import t from 'tap';
import {
  bootstrap,
  clusterHttpOptions,
  connectRaw,
  httpListener,
  httpRequest,
  startBaton,
  startEchoUpstream,
  startUpstream,
  staticCluster,
  TRAILERS,
  TRAILERS_CLUSTER,
  waitFor,
} from '../../harness/index.js';
import { answering, managerOf, routeTo, startProxy } from '../proxy.js';
import { response, startRawUpstream } from '../raw-upstream.js';

const trailing = await startUpstream(t, (request, response) => {
  request.resume().on('end', () => {
    response.writeHead(200, { trailer: 'x-back' });
    response.write(JSON.stringify(request.trailers));
    response.addTrailers({ 'x-back': '1' });
    response.end();
  });
});
const CHUNKED = 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nx-there: 1\r\n\r\n';

t.test('trailers are forwarded only when both connections enable them', async (t) => {
  const proxy = await startProxy(t, {
    listeners: {
      client: managerOf([routeTo({ prefix: '/' }, 'none')], TRAILERS),
      host: managerOf([routeTo({ prefix: '/' }, 'all')]),
      both: managerOf([routeTo({ prefix: '/' }, 'all')], TRAILERS),
      // Both sides use HTTP/1.1 with the options of the cluster.
      same: managerOf([routeTo({ prefix: '/' }, 'as-clients')], TRAILERS),
      selected: managerOf([routeTo({ prefix: '/' }, 'as-clients-with-old-field')], TRAILERS),
    },
    clusters: [
      staticCluster('none', trailing.port),
      staticCluster('all', trailing.port, TRAILERS_CLUSTER),
      staticCluster('as-clients', trailing.port, clusterHttpOptions({ use_downstream_protocol_config: TRAILERS })),
      staticCluster('as-clients-with-old-field', trailing.port, { protocol_selection: 'USE_DOWNSTREAM_PROTOCOL' }),
    ],
  });
  const exchange = async (listener: string): Promise<string> => {
    const client = await connectRaw(t, proxy.ports[listener]!);
    client.write(CHUNKED);
    return client.readUntil(/\r\n0\r\n(.*\r\n)*\r\n/);
  };
  t.match(await exchange('client'), /\{\}\r\n0\r\n\r\n$/);
  t.match(await exchange('host'), /\{\}\r\n0\r\n\r\n$/);
  t.match(await exchange('both'), /\{"x-there":"1"\}\r\n0\r\nx-back: 1\r\n\r\n$/);
  t.match(await exchange('same'), /\{"x-there":"1"\}\r\n0\r\nx-back: 1\r\n\r\n$/);
  t.match(await exchange('selected'), /\{\}\r\n0\r\n\r\n$/);
});

t.test('a connection serves max_requests_per_connection requests, and the last response closes it', async (t) => {
  const manager = managerOf([answering({ prefix: '/' }, 'here')], {
    common_http_protocol_options: { max_requests_per_connection: 2 },
  });
  const { baton, port } = await startProxy(t, { listeners: { worn: manager } });
  const client = await connectRaw(t, port);
  client.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  t.notMatch(await client.readUntil('here'), /connection: close/);
  t.equal(await baton.stat('http.worn.downstream_cx_max_requests_reached'), 0);
  client.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  t.match(await client.readToEnd(), { text: /\r\nconnection: close\r\n/, closed: 'end' });
  t.equal(await baton.stat('http.worn.downstream_cx_max_requests_reached'), 1);
});

t.test(
  'a 400 from Baton closes the connection, whose further bytes are ambiguous; a 400 from a host does not',
  async (t) => {
    const host = await startRawUpstream(t, ({ socket }) => socket.write(response(400, 'bad')));
    const bad = { match: { path: '/bad' }, direct_response: { status: 400, body: { inline_string: 'bad' } } };
    const { port } = await startProxy(t, {
      listeners: { main: managerOf([bad, routeTo({ prefix: '/' }, 'raw')], { normalize_path: true }) },
      clusters: [staticCluster('raw', host.port)],
    });
    for (const path of ['/%00', '/bad']) {
      const client = await connectRaw(t, port);
      client.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
      const ended = await client.readToEnd();
      t.match(ended, { text: /^HTTP\/1\.1 400 (.*\r\n)*connection: close\r\n/, closed: 'end' }, path);
      const call = await connectRaw(t, port);
      call.write(`GET ${path} HTTP/1.1\r\nHost: a\r\ncontent-type: application/grpc\r\n\r\n`);
      t.match(
        await call.readToEnd(),
        { text: /\r\nconnection: close\r\n/, closed: 'end' },
        `${path} for a gRPC client`,
      );
    }
    const client = await connectRaw(t, port);
    for (let i = 0; i < 2; i++) {
      client.write('GET /host HTTP/1.1\r\nHost: a\r\n\r\n');
      t.notMatch(await client.readUntil('\r\n\r\nbad'), /connection: close/);
    }
  },
);

t.test('a connection at its maximum age has drain_timeout for one more request, unless it is unused', async (t) => {
  const echo = await startEchoUpstream(t);
  const manager = (duration: string, drain: string) =>
    managerOf([routeTo({ prefix: '/' }, 'echo')], {
      common_http_protocol_options: { max_connection_duration: duration },
      drain_timeout: drain,
    });
  const proxy = await startProxy(t, {
    listeners: { patient: manager('1s', '600s'), hasty: manager('0.1s', '0.1s') },
    clusters: [staticCluster('echo', echo.port)],
  });
  const begun = await connectRaw(t, proxy.ports['patient']!);
  begun.write('GET ');
  const unused = await connectRaw(t, proxy.ports['patient']!);
  t.same(await unused.readToEnd(), { text: '', closed: 'end' }, 'an unused connection closes at once');
  await proxy.baton.waitForStat('http.patient.downstream_cx_max_duration_reached', 2);
  begun.write('/ HTTP/1.1\r\nHost: a\r\n\r\n');
  const LAST = /^HTTP\/1\.1 200 OK\r\n(.+\r\n)*connection: close\r\n/;
  t.match((await begun.readToEnd()).text, LAST);
  const used = await connectRaw(t, proxy.ports['hasty']!);
  used.write('GET / HTTP/1.1\r\nHost: a\r\nconnection: keep-alive\r\n\r\n');
  t.equal((await used.readToEnd()).closed, 'end');
});

t.test('a request that crosses idle_timeout is answered, as the last one', async (t) => {
  const echo = await startEchoUpstream(t);
  const manager = (drain: string) =>
    managerOf([routeTo({ prefix: '/' }, 'echo')], {
      common_http_protocol_options: { idle_timeout: '0.1s' },
      drain_timeout: drain,
    });
  const proxy = await startProxy(t, {
    listeners: { patient: manager('600s'), hasty: manager('0.1s') },
    clusters: [staticCluster('echo', echo.port)],
  });
  const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';
  const used = await connectRaw(t, proxy.ports['patient']!);
  used.write(GET);
  await used.readUntil('\r\n\r\n');
  await proxy.baton.waitForStat('http.patient.downstream_cx_idle_timeout', 1);
  used.write(GET);
  const answers = (await used.readToEnd()).text.split(/(?=HTTP\/1\.1 )/);
  t.same(
    answers.map((answer) => /^HTTP\/1\.1 200 OK\r\n(.+\r\n)*connection: close\r\n/.test(answer)),
    [false, true],
  );
  const unused = await connectRaw(t, proxy.ports['patient']!);
  t.same(await unused.readToEnd(), { text: '', closed: 'end' }, 'an unused connection closes at once');
  t.equal(await proxy.baton.stat('http.patient.downstream_cx_idle_timeout'), 2);
  const silent = await connectRaw(t, proxy.ports['hasty']!);
  silent.write(GET);
  t.equal((await silent.readToEnd()).closed, 'end', 'a silent connection closes after drain_timeout');
  t.equal(await proxy.baton.stat('http.hasty.downstream_cx_idle_timeout'), 1);
});

t.test('a connection that drains since its response began closes after that', async (t) => {
  const held: ServerResponse[] = [];
  const host = await startUpstream(t, (_request, answer) => {
    answer.write('be');
    held.push(answer);
  });
  const hasty = managerOf([routeTo({ prefix: '/' }, 'host')], {
    common_http_protocol_options: { max_connection_duration: '0.1s', idle_timeout: '600s' },
    drain_timeout: '0.001s',
  });
  const proxy = await startProxy(t, { listeners: { hasty }, clusters: [staticCluster('host', host.port)] });
  const client = await connectRaw(t, proxy.port);
  client.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  await client.readUntil('be');
  await proxy.baton.waitForStat('http.hasty.downstream_cx_max_duration_reached', 1);
  held[0]!.end('gun');
  const { text, closed } = await client.readToEnd();
  t.match(text, /gun\r\n0\r\n\r\n$/);
  t.notMatch(text, /connection: close/);
  t.equal(closed, 'end');
});

t.test("a request that outlasts its connection's maximum age is answered completely, as the last one", async (t) => {
  const held: ServerResponse[] = [];
  const host = await startUpstream(t, ({ url }, answer) => {
    if (url === '/held') held.push(answer);
    else answer.end('quick');
  });
  const hasty = managerOf([routeTo({ prefix: '/' }, 'host')], {
    common_http_protocol_options: { max_connection_duration: '0.1s' },
    drain_timeout: '0.1s',
  });
  const proxy = await startProxy(t, { listeners: { hasty }, clusters: [staticCluster('host', host.port)] });
  const patient = await connectRaw(t, proxy.port);
  patient.write('GET /held HTTP/1.1\r\nHost: a\r\n\r\n');
  await waitFor(() => held.length === 1, { what: 'the request at its host' });
  // Meanwhile a connection that was opened later reaches its maximum age.
  const later = await connectRaw(t, proxy.port);
  later.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  t.equal((await later.readToEnd()).closed, 'end');
  held[0]!.end('late');
  const last = /^HTTP\/1\.1 200 OK\r\n(.+\r\n)*connection: close\r\n(.+\r\n)*\r\n.*late/;
  t.match(await patient.readToEnd(), { text: last, closed: 'end' });
});

t.test('absolute URLs are served, and allow_absolute_url: false is refused', async (t) => {
  const manager = (allowed: boolean) => ({
    route_config: { virtual_hosts: [{ name: 'b', domains: ['b'], routes: [direct] }] },
    http_protocol_options: { allow_absolute_url: allowed },
  });
  const direct = { match: { path: '/x' }, direct_response: { status: 202 } };
  const config = (allowed: boolean) => bootstrap({ listeners: [httpListener('a', 0, manager(allowed))], clusters: [] });
  const baton = await startBaton(t, { config: config(true) });
  const { status } = await httpRequest(await baton.listenerPort('a'), 'http://b/x');
  t.equal(status, 202);
  const refused = await startBaton(t, { config: config(false), wait: 'spawned' });
  t.equal((await refused.exited).code, 1);
  t.match(refused.stderr, /allow_absolute_url: requests with absolute URLs are always served/);
});

t.test('an upstream connection that reaches its maximum age during a request is counted once', async (t) => {
  const late = await startUpstream(t, (_request, response) => {
    setTimeout(() => response.end('late'), 300);
  });
  const options = clusterHttpOptions({
    common_http_protocol_options: { max_connection_duration: '0.1s' },
    explicit_http_config: { http_protocol_options: {} },
  });
  const proxy = await startProxy(t, {
    listeners: { a: managerOf([routeTo({ prefix: '/' }, 'late')]) },
    clusters: [staticCluster('late', late.port, options)],
  });
  t.equal((await proxy.get('/')).body, 'late');
  await proxy.baton.waitForStat('cluster.late.upstream_cx_active', 0);
  t.equal(await proxy.baton.stat('cluster.late.upstream_cx_max_duration_reached'), 1);
});

t.test('paths that cannot be normalized are counted', async (t) => {
  const direct = { match: { prefix: '/' }, direct_response: { status: 200 } };
  const manager = (action: string) =>
    managerOf([direct], { normalize_path: true, path_with_escaped_slashes_action: action });
  const proxy = await startProxy(t, {
    listeners: { strict: manager('REJECT_REQUEST'), kind: manager('UNESCAPE_AND_REDIRECT') },
  });
  t.equal((await proxy.on('strict', '/a%2fb')).status, 400);
  t.equal(await proxy.baton.stat('http.strict.downstream_rq_failed_path_normalization'), 1);
  t.equal((await proxy.on('kind', '/a%2fb')).status, 307);
  t.equal(await proxy.baton.stat('http.kind.downstream_rq_redirected_with_normalized_path'), 1);
});
