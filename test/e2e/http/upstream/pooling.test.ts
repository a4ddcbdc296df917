// Upstream connections: reuse, limits of requests, idle time and age, and close after failed requests.

import { readdirSync, readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import t from 'tap';
import {
  clusterHttpOptions,
  connectRaw,
  keepaliveSeconds,
  rawExchange,
  startUpstream,
  staticCluster,
  waitFor,
} from '../../harness/index.js';
import { KeepAliveClient, tally } from '../keep-alive.js';
import { parseMessage } from '../message.js';
import { managerOf, routeTo, startProxy } from '../proxy.js';
import { response, startRawUpstream } from '../raw-upstream.js';

const kept = await startUpstream(t, (_request, answer) => answer.end('ok'));
const worn = await startUpstream(t, (_request, answer) => answer.end('ok'));
const held: ServerResponse[] = [];
const idle = await startUpstream(t, ({ url }, answer) => {
  if (url === '/idle/held') held.push(answer);
  else answer.end('ok');
});
const aged = await startUpstream(t, (_request, answer) => answer.end('ok'));
const older = await startUpstream(t, ({ rawHeaders }, answer) => answer.end(rawHeaders.join()));
const hosts = await Promise.all(
  ['one', 'two', 'three'].map((name) => startUpstream(t, (_request, answer) => answer.end(name))),
);
const raw = await startRawUpstream(t, ({ path, socket }) => {
  if (path === '/hang' || path === '/bye') return;
  if (path === '/close') socket.end(response(200, 'last', { connection: 'close' }));
  else if (path === '/old') socket.end('HTTP/1.0 200 OK\r\ncontent-length: 3\r\n\r\nold');
  else socket.write(response(200, 'ok'));
});

const options = (http: object) => clusterHttpOptions({ explicit_http_config: { http_protocol_options: {} }, ...http });
const proxy = await startProxy(t, {
  listeners: {
    main: managerOf([
      routeTo({ prefix: '/kept' }, 'kept'),
      routeTo({ prefix: '/worn' }, 'worn'),
      routeTo({ prefix: '/idle' }, 'idle'),
      routeTo({ prefix: '/aged' }, 'aged'),
      routeTo({ prefix: '/older' }, 'older'),
      routeTo({ prefix: '/hosts' }, 'hosts'),
      routeTo({ prefix: '/least' }, 'least'),
      routeTo({ prefix: '/random' }, 'random'),
      routeTo({ prefix: '/' }, 'raw'),
    ]),
  },
  clusters: [
    staticCluster('kept', kept.port, {
      upstream_connection_options: {
        tcp_keepalive: { keepalive_time: 300, keepalive_interval: 5, keepalive_probes: 3 },
      },
    }),
    staticCluster('worn', worn.port, options({ common_http_protocol_options: { max_requests_per_connection: 3 } })),
    staticCluster('idle', idle.port, options({ common_http_protocol_options: { idle_timeout: '0.2s' } })),
    staticCluster('aged', aged.port, options({ common_http_protocol_options: { max_connection_duration: '0.2s' } })),
    staticCluster('older', older.port, {
      common_http_protocol_options: { max_requests_per_connection: 2 },
      http_protocol_options: { header_key_format: { proper_case_words: {} } },
    }),
    staticCluster(
      'hosts',
      hosts.map(({ port }) => port),
    ),
    staticCluster(
      'least',
      hosts.map(({ port }) => port),
      { lb_policy: 'LEAST_REQUEST' },
    ),
    staticCluster(
      'random',
      hosts.map(({ port }) => port),
      { lb_policy: 'RANDOM' },
    ),
    staticCluster('raw', raw.port),
  ],
});

t.test('requests of many clients share existing connections', async (t) => {
  for (let i = 0; i < 20; i++) t.equal((await proxy.get('/kept')).status, 200);
  t.equal(kept.accepted(), 1, 'sequential requests use one connection');
  const client = new KeepAliveClient(t, proxy.port, 8);
  await client.repeat(200, '/kept');
  t.ok(kept.accepted() <= 9, `at most as many as concurrent requests: ${kept.accepted()}`);
  t.equal(kept.sockets.size, kept.accepted(), 'none is closed');
});

t.test('a connection is closed after max_requests_per_connection requests', async (t) => {
  for (let i = 0; i < 9; i++) t.equal((await proxy.get('/worn')).status, 200);
  t.equal(worn.accepted(), 3, 'three requests each');
  await proxy.baton.waitForStat('cluster.worn.upstream_cx_max_requests', 3);
  await waitFor(() => worn.sockets.size === 0);
});

t.test('the older HTTP options of a cluster are obeyed', async (t) => {
  const bodies = [];
  for (let i = 0; i < 4; i++) bodies.push((await proxy.get('/older')).body);
  t.equal(older.accepted(), 2, 'common_http_protocol_options: two requests each');
  for (const names of bodies) t.match(names, /\bX-Forwarded-Proto\b/, 'http_protocol_options: names with capitals');
});

t.test('an idle connection is closed after idle_timeout', async (t) => {
  await proxy.get('/idle');
  t.equal(idle.accepted(), 1);
  await waitFor(() => idle.sockets.size === 0, { what: 'the idle connection to be closed' });
  await proxy.baton.waitForStat('cluster.idle.upstream_cx_idle_timeout', 1);
  await proxy.get('/idle');
  t.equal(idle.accepted(), 2);
});

t.test('a connection with a slow request is not idle', async (t) => {
  const late = proxy.get('/idle/held');
  await waitFor(() => held.length === 1, { what: 'the request at its host' });
  const before = (await proxy.baton.stat('cluster.idle.upstream_cx_idle_timeout'))!;
  for (let count = 1; count <= 2; count++) {
    await proxy.get('/idle');
    await proxy.baton.waitForStat('cluster.idle.upstream_cx_idle_timeout', before + count);
  }
  held[0]!.end('late');
  t.match(await late, { status: 200, body: 'late' });
});

t.test('max_connection_duration closes a connection before a longer idle timeout', async (t) => {
  t.equal((await proxy.get('/aged')).status, 200);
  await waitFor(() => aged.accepted() === 1 && aged.sockets.size === 0, { what: 'the old connection to be closed' });
  await proxy.baton.waitForStat('cluster.aged.upstream_cx_max_duration_reached', 1);
  t.equal(await proxy.baton.stat('cluster.aged.upstream_cx_idle_timeout'), 0);
});

t.test('a connection that the host closed is not reused', async (t) => {
  for (const path of ['/close', '/old']) {
    const before = raw.accepted();
    for (let i = 0; i < 3; i++) t.equal((await proxy.get(path)).status, 200);
    t.equal(raw.accepted(), before + 3, path);
  }
  t.equal((await proxy.get('/a')).status, 200);
  const before = raw.accepted();
  // The host closes between requests, which Baton does not notice at once.
  for (const socket of raw.sockets) socket.end();
  await waitFor(() => raw.sockets.size === 0);
  t.equal((await proxy.get('/a')).status, 200);
  t.equal(raw.accepted(), before + 1);
});

t.test('pipelined requests of a client use one connection in turn, as in Envoy', async (t) => {
  const before = raw.accepted();
  const { length } = raw.requests;
  const post = 'POST /body HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\nabc';
  const answers = await rawExchange(
    proxy.port,
    `GET /first HTTP/1.1\r\nhost: a\r\n\r\n\r\n${post}${post}GET /last HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`,
  );
  t.equal(answers.text.match(/HTTP\/1\.1 200/g)?.length, 4);
  t.same(
    raw.requests.slice(length).map(({ path }) => path),
    ['/first', '/body', '/body', '/last'],
  );
  t.equal(new Set(raw.requests.slice(length).map(({ socket }) => socket)).size, 1);
  t.ok(raw.accepted() <= before + 1);
});

t.test('a connection with a cancelled request is not reused', async (t) => {
  await proxy.get('/a');
  const before = raw.accepted();
  const { length } = raw.requests;
  const client = await connectRaw(t, proxy.port);
  client.write('GET /hang HTTP/1.1\r\nhost: a\r\n\r\n');
  await waitFor(() => raw.requests.length > length);
  const { socket } = raw.requests.at(-1)!;
  client.reset();
  await waitFor(() => socket.destroyed);
  t.equal((await proxy.get('/a')).status, 200);
  t.equal(raw.accepted(), before + 1);
});

t.test('bytes that a host sent before the request are not a response to it', async (t) => {
  const { child } = proxy.baton;
  t.teardown(() => child.kill('SIGCONT'));
  for (const stale of ['HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nstale', 'HTTP/1.1 200 OK\r\ncontent-le']) {
    const client = await connectRaw(t, proxy.port);
    client.write('GET /a HTTP/1.1\r\nhost: a\r\n\r\n');
    await client.readUntil(/ok$/);
    const { socket } = raw.requests.at(-1)!;
    await stop();
    // Both are there when Baton resumes, the request first.
    await written(client.socket, 'GET /a HTTP/1.1\r\nhost: a\r\n\r\n');
    await written(socket, stale);
    child.kill('SIGCONT');
    socket.write('ngth: 5\r\n\r\nstale');
    t.notMatch(await client.readUntil(/\r\n\r\n.+$/s), /stale/);
    client.end();
  }
});

t.test('a connection whose end has arrived with its response gets no other request', async (t) => {
  const { child } = proxy.baton;
  t.teardown(() => child.kill('SIGCONT'));
  for (let round = 0; round < 3; round++) {
    const { length } = raw.requests;
    const client = await connectRaw(t, proxy.port);
    client.write('GET /bye HTTP/1.1\r\nhost: a\r\n\r\nGET /a HTTP/1.1\r\nhost: a\r\n\r\n');
    const { socket } = await waitFor(() => raw.requests.slice(length).find(({ path }) => path === '/bye'));
    await stop();
    await new Promise<void>((resolve) => socket.end(response(200, 'bye'), resolve));
    child.kill('SIGCONT');
    t.equal(parseMessage(await client.readUntil('bye')).status, 200);
    t.match(parseMessage(await client.readUntil(/\r\n\r\n../)), { status: 200, rest: 'ok' });
    client.end();
  }
});

for (const [kind, end] of [
  ['ended', (socket: Socket) => new Promise<void>((resolve) => socket.end(resolve))],
  ['reset', async (socket: Socket) => void socket.resetAndDestroy()],
] as const) {
  t.test(`an idle connection that its host has ${kind} gets no request that arrives at the same time`, async (t) => {
    const { child } = proxy.baton;
    t.teardown(() => child.kill('SIGCONT'));
    for (let round = 0; round < 3; round++) {
      const client = await connectRaw(t, proxy.port);
      client.write('GET /a HTTP/1.1\r\nhost: a\r\n\r\n');
      t.equal(parseMessage(await client.readUntil(/ok$/)).status, 200);
      const { socket } = raw.requests.at(-1)!;
      await stop();
      // Both are there when Baton resumes, the request first.
      await written(client.socket, 'GET /a HTTP/1.1\r\nhost: a\r\n\r\n');
      await end(socket);
      child.kill('SIGCONT');
      t.match(parseMessage(await client.readUntil(/\r\n\r\n../)), { status: 200, rest: 'ok' });
      client.end();
    }
  });
}

t.test('requests of a client on one connection are distributed over the hosts', async (t) => {
  const bytes = 'GET /hosts HTTP/1.1\r\nhost: a\r\n\r\n'.repeat(5);
  const { text } = await rawExchange(proxy.port, `${bytes}GET /hosts HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`);
  t.equal(parseMessage(text).status, 200);
  for (const name of ['one', 'two', 'three']) t.equal(text.split(`\r\n\r\n${name}`).length - 1, 2, name);
});

t.test('least request and random use all hosts', async (t) => {
  const client = new KeepAliveClient(t, proxy.port, 4);
  for (const policy of ['least', 'random']) {
    const counts = tally((await client.repeat(300, `/${policy}`)).map(({ body }) => body));
    // One third each; six standard deviations of a random choice.
    for (const name of ['one', 'two', 'three'])
      t.ok((counts[name] ?? 0) > 50, `${policy}: ${counts[name]} for ${name}`);
  }
});

t.test('clusters can enable TCP keepalive', async (t) => {
  t.equal((await proxy.get('/kept')).status, 200);
  t.equal((await proxy.get('/hosts')).status, 200);
  // The kernel's single timer is that of keepalive only when no data is unacknowledged.
  const seconds = await waitFor(() => keepaliveSeconds(kept.port)[0], { what: 'the timer of keepalive' });
  t.ok(seconds > 0 && seconds <= 300, `${seconds} s, where the kernel alone takes 7200`);
  t.same(
    hosts.flatMap(({ port }) => keepaliveSeconds(port)),
    [],
  );
});

/** Resolves when the kernel has the bytes. */
function written(socket: Socket, bytes: string): Promise<void> {
  return new Promise((resolve, reject) => socket.write(bytes, (error) => (error ? reject(error) : resolve())));
}

/** Stops all threads of the proxy. */
async function stop(): Promise<void> {
  const { child, pid } = proxy.baton;
  child.kill('SIGSTOP');
  const tasks = `/proc/${pid}/task`;
  const isStopped = (task: string) => /\nState:\s+T/.test(readFileSync(`${tasks}/${task}/status`, 'utf8'));
  await waitFor(() => readdirSync(tasks).every(isStopped), { what: 'the process to stop' });
}
