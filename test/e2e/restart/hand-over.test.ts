// --hand-over-connections: established connections continue in the next process, unnoticed at either end.

import { readFileSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import t from 'tap';
import { NameServer } from '../../upstream/dns/name-server.js';
import {
  type BatonProcess,
  bootstrap,
  type Config,
  connectRaw,
  EpochLine,
  fileAccessLog,
  httpListener,
  type RawConnection,
  routeAllTo,
  startUpstream,
  staticCluster,
  type Teardown,
  tcpListener,
  tempDir,
  waitFor,
  waitForLog,
} from '../harness/index.js';
import { fingerprint, openStream, randomBytes, startPeers } from '../tcp/stream.js';

/** A process would wait this long if its connections did not leave. */
const LONG = ['--parent-shutdown-time-s', '600', '--drain-time-s', '600', '--hand-over-connections'];

function proxy(name: string, cluster: string, more: Config = {}): Config {
  return tcpListener(name, 0, { cluster, ...more });
}

/** Starts the next epoch; resolves when the previous one has exited because it had no connections left. */
async function restart(line: EpochLine, current: BatonProcess, config: Config, concurrency = '2', args = LONG) {
  const epoch = (await current.stat('server.hot_restart_epoch'))! + 1;
  const next = await line.start(epoch, { config, args: ['--concurrency', concurrency, ...args] });
  await waitFor(() => current.exit !== undefined, { what: 'the exit of the old process' });
  return next;
}

t.test('a connection keeps its original destination', async (t) => {
  const upstream = await startUpstream(t, (_, response) => void response.end('answer'));
  const config = bootstrap({
    listeners: [
      {
        ...httpListener('web', 0, { route_config: routeAllTo('any') }),
        listener_filters: [
          {
            name: 'envoy.filters.listener.proxy_protocol',
            typed_config: {
              '@type': 'type.googleapis.com/envoy.extensions.filters.listener.proxy_protocol.v3.ProxyProtocol',
            },
          },
        ],
      },
    ],
    clusters: [{ name: 'any', type: 'ORIGINAL_DST', lb_policy: 'CLUSTER_PROVIDED', connect_timeout: '2s' }],
  });
  const line = new EpochLine(t);
  const first = await line.start(0, { config, args: ['--concurrency', '2', ...LONG] });
  const client = await connectRaw(t, await first.listenerPort('web'));
  client.write(`PROXY TCP4 10.0.0.1 127.0.0.1 7 ${upstream.port}\r\n`);
  const request = 'GET / HTTP/1.1\r\nhost: a\r\n\r\n';
  client.write(request);
  await client.readUntil('answer');
  await restart(line, first, config);
  client.write(request);
  await client.readUntil('answer');
});

t.test('busy TCP streams continue byte for byte through restarts with 2, 1 and 3 workers', async (t) => {
  const upstream = await startPeers(t);
  const log = join(tempDir(t), 'access.log');
  const format = '%BYTES_RECEIVED% %BYTES_SENT% %DURATION% %RESPONSE_FLAGS% %UPSTREAM_HOST%\n';
  const config = bootstrap({
    listeners: [proxy('tcp', 'db', { access_log: [fileAccessLog(log, format)] })],
    clusters: [staticCluster('db', upstream.port)],
  });
  const line = new EpochLine(t);
  let current = await line.start(0, { config, args: ['--concurrency', '2', ...LONG] });
  const port = await current.listenerPort('tcp');
  const begun = performance.now();
  const pairs = await Promise.all(
    Array.from({ length: 12 }, async () => {
      const client = await openStream(t, port);
      const server = await upstream.next();
      return { client, server };
    }),
  );
  // The first byte identifies which connections belong together.
  for (const [index, { client }] of pairs.entries()) await client.write(Buffer.from([index]));
  for (const { server } of pairs) await server.receives(1);
  const order = pairs.map(({ server }) => server.head.charCodeAt(0));
  const servers = pairs.map((_, index) => pairs[order.indexOf(index)]!.server);
  const streams = pairs.map(({ client }, index) => ({
    client,
    server: servers[index]!,
    up: randomBytes(10 << 20),
    down: randomBytes(10 << 20),
  }));
  let isOver = false;
  /** Sends pieces until all restarts are done; returns what was sent. */
  const send = async (stream: { write(bytes: Uint8Array): Promise<void> }, bytes: Buffer) => {
    let at = 0;
    while (!isOver && at < bytes.length) {
      const end = Math.min(bytes.length, at + 50_000);
      await stream.write(bytes.subarray(at, end));
      at = end;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    return bytes.subarray(0, at);
  };
  // Some read nothing until the restarts are done: bytes for them are buffered in the proxy.
  for (const { client } of streams.slice(0, 3)) client.socket.pause();
  for (const { server } of streams.slice(3, 6)) server.socket.pause();
  const flood = [...streams.slice(0, 3)].map(({ server, down }) => server.write(down));
  flood.push(...streams.slice(3, 6).map(({ client, up }) => client.write(up)));
  const busy = streams.slice(6).flatMap(({ client, server, up, down }) => [send(client, up), send(server, down)]);
  for (const stopped of ['tcp.tcp.downstream', 'cluster.db.upstream']) {
    const pauses = async () => (await current.stat(`${stopped}_flow_control_paused_reading_total`))! >= 3;
    await waitFor(pauses, { what: 'streams with slow readers' });
  }
  for (const concurrency of ['1', '3']) {
    current = await restart(line, current, config, concurrency);
    t.equal(await current.stat('listener_manager.total_listeners_active'), 1);
    t.equal(await current.stat('listener.tcp.downstream_cx_active'), 12);
    t.equal(await current.stat('cluster.db.upstream_cx_active'), 12);
  }
  isOver = true;
  const sent = await Promise.all(busy);
  for (const { client, server } of streams) {
    client.socket.resume();
    server.socket.resume();
  }
  await Promise.all(flood);
  for (const [index, { client, server, up, down }] of streams.entries()) {
    const first = Buffer.from([index]);
    const [fromClient, fromServer] =
      index < 3
        ? [first, down]
        : index < 6
          ? [Buffer.concat([first, up]), Buffer.alloc(0)]
          : [Buffer.concat([first, sent[2 * (index - 6)]!]), sent[2 * (index - 6) + 1]!];
    client.end();
    server.end();
    await server.receives(fromClient.length);
    await client.receives(fromServer.length);
    t.equal(await server.isClosed(), 'end');
    t.equal(await client.isClosed(), 'end');
    t.equal(server.fingerprint(), fingerprint(fromClient), `to the host on stream ${index}`);
    t.equal(client.fingerprint(), fingerprint(fromServer), `to the client on stream ${index}`);
  }
  await current.waitForStat('cluster.db.upstream_cx_active', 0);
  t.equal(await current.stat('listener.tcp.downstream_cx_total'), 12, 'counted once');
  t.equal(await current.stat('listener.tcp.downstream_cx_destroy'), 12);
  t.equal(await current.stat('cluster.db.upstream_cx_total'), 12);
  t.equal(await current.stat('tcp.tcp.downstream_cx_total'), 12);
  const elapsed = performance.now() - begun;
  await current.stop();
  const lines = readFileSync(log, 'utf8').trim().split('\n');
  t.equal(lines.length, 12, 'each connection is logged once');
  const sizes = lines.map((text) => text.split(' ').map(Number));
  const sum = (column: number) => sizes.reduce((total, row) => total + row[column]!, 0);
  const received = servers.reduce((total, { length }) => total + length, 0);
  t.equal(sum(0), received, 'bytes over the whole connections');
  t.equal(
    sum(1),
    streams.reduce((total, { client }) => total + client.length, 0),
  );
  for (const [, , duration] of sizes)
    t.ok(duration! > elapsed / 4 && duration! <= elapsed + 1, 'durations of the whole connections');
});

t.test('half-closed TCP streams stay half-closed', async (t) => {
  const upstream = await startPeers(t);
  const circuit_breakers = { thresholds: [{ max_connections: 3, track_remaining: true }] };
  const clusters = [staticCluster('db', upstream.port, { circuit_breakers })];
  const config = bootstrap({ listeners: [proxy('tcp', 'db')], clusters });
  const line = new EpochLine(t);
  let current = await line.start(0, { config, args: ['--concurrency', '1', ...LONG] });
  const port = await current.listenerPort('tcp');
  const asking = await openStream(t, port);
  const answering = await upstream.next();
  await asking.write('question');
  asking.end();
  t.equal(await answering.isClosed(), 'end');
  const listening = await openStream(t, port);
  const speaking = await upstream.next();
  speaking.end();
  t.equal(await listening.isClosed(), 'end');
  for (const text of ['one', 'two']) {
    current = await restart(line, current, config, '1');
    await answering.write(text);
    await listening.write(text);
  }
  const remaining = 'cluster.db.circuit_breakers.default.remaining_cx';
  t.equal(await current.stat(remaining), 1, 'both count as connections of the cluster');
  answering.end();
  listening.end();
  t.equal(await asking.isClosed(), 'end');
  await speaking.receives(6);
  t.equal(asking.head, 'onetwo');
  t.equal(speaking.head, 'onetwo');
  await current.waitForStats({ 'cluster.db.upstream_cx_active': 0, [remaining]: 3 });
  await current.stop();
});

t.test('a TCP stream to a logical host continues after its name has moved', async (t) => {
  const upstream = await startPeers(t);
  const names = new NameServer();
  await names.start();
  t.teardown(() => names.stop());
  names.answers.set('db.test', { a: ['127.0.0.1'] });
  const resolvConf = join(tempDir(t), 'resolv.conf');
  writeFileSync(resolvConf, `nameserver ${names.address}\n`);
  const address = { socket_address: { address: 'db.test', port_value: upstream.port } };
  const db = {
    ...staticCluster('db', upstream.port),
    type: 'LOGICAL_DNS',
    dns_lookup_family: 'V4_ONLY',
    dns_refresh_rate: '0.2s',
    load_assignment: { cluster_name: 'db', endpoints: [{ lb_endpoints: [{ endpoint: { address } }] }] },
  };
  const log = join(tempDir(t), 'access.log');
  const access_log = [fileAccessLog(log, '%UPSTREAM_HOST%\n')];
  const options = {
    config: bootstrap({ listeners: [proxy('tcp', 'db', { access_log })], clusters: [db] }),
    args: LONG,
    nodeArgs: ['--import', new URL('../clusters/resolv-conf.js', import.meta.url).href],
    env: { BATON_TEST_RESOLV_CONF: resolvConf },
  };
  const line = new EpochLine(t);
  let current = await line.start(0, options);
  const client = await openStream(t, await current.listenerPort('tcp'));
  const server = await upstream.next();
  names.answers.set('db.test', { a: ['127.0.0.9'] });
  await waitFor(async () => (await current.admin('/clusters')).body.includes('db::127.0.0.9'), { what: 'the move' });
  for (const epoch of [1, 2]) {
    const next = await line.start(epoch, options);
    await waitFor(() => current.exit !== undefined, { what: 'the exit of the old process' });
    current = next;
    await client.write('still here');
    await server.receives(epoch * 'still here'.length);
  }
  client.end();
  server.end();
  t.equal(await client.isClosed(), 'end');
  await current.stop();
  t.equal(readFileSync(log, 'utf8'), `127.0.0.1:${upstream.port}\n`, 'at its original address');
});

t.test('HTTP connections are reused in the next process, with the bytes received of a request', async (t) => {
  const upstream = await startUpstream(t, (request, response) => response.end(`${request.url} of ${request.method}`));
  const config = bootstrap({
    listeners: [httpListener('web', 0, { route_config: routeAllTo('web') })],
    clusters: [staticCluster('web', upstream.port)],
  });
  const line = new EpochLine(t);
  let current = await line.start(0, { config, args: ['--concurrency', '2', ...LONG] });
  const port = await current.listenerPort('web');
  const clients = await Promise.all(Array.from({ length: 40 }, () => connectRaw(t, port)));
  const ports = clients.map(({ socket }) => socket.localPort);
  for (const client of clients) await ask(t, client, '/before');
  const cut = await connectRaw(t, port);
  await ask(t, cut, '/first');
  for (const [index, concurrency] of ['3', '1'].entries()) {
    // Half a header section, which the proxy has read.
    cut.write(`GET /cut${index} HTTP/1.1\r\nHo`);
    const isRead = async () => (await current.stat('http.web.downstream_cx_rx_bytes_buffered'))! > 0;
    await waitFor(isRead, { what: 'half a header section in the proxy' });
    current = await restart(line, current, config, concurrency);
    t.equal(await current.stat('http.web.downstream_cx_active'), 41);
    for (const client of clients) await ask(t, client, `/after${index}`);
    cut.write('st: a\r\n\r\n');
    const answer = await response(cut);
    t.equal(answer.body, `/cut${index} of GET`);
  }
  t.same(
    clients.map(({ socket }) => socket.localPort),
    ports,
    'the same connections',
  );
  t.equal(await current.stat('http.web.downstream_cx_total'), 41, 'counted once');
  t.equal(await current.stat('http.web.downstream_cx_drain_close'), 0);
  await current.stop();
});

t.test('under load no HTTP connection is closed, busy and pipelined ones included', async (t) => {
  const upstream = await startUpstream(t, (request, response) => response.end(request.url));
  const config = bootstrap({
    listeners: [httpListener('web', 0, { route_config: routeAllTo('web') })],
    clusters: [staticCluster('web', upstream.port)],
  });
  const line = new EpochLine(t);
  let current = await line.start(0, { config, args: ['--concurrency', '2', ...LONG] });
  const port = await current.listenerPort('web');
  let isOver = false;
  let answers = 0;
  const loops = Array.from({ length: 24 }, async (_, index) => {
    const client = await connectRaw(t, port);
    const depth = index % 2 === 0 ? 1 : 4;
    for (let round = 0; !isOver; round++) {
      const paths = Array.from({ length: depth }, (_, at) => `/${index}/${round}/${at}`);
      client.write(paths.map((path) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`).join(''));
      for (const path of paths) {
        const { body } = await response(client);
        if (body !== path) throw new Error(`${body} in response to ${path}`);
        answers++;
      }
    }
  });
  for (const concurrency of ['1', '3']) {
    current = await restart(line, current, config, concurrency);
    const before = answers;
    await waitFor(() => answers > before + 200, { what: 'traffic' });
  }
  isOver = true;
  await Promise.all(loops);
  t.equal(await current.stat('http.web.downstream_cx_total'), 24);
  await current.stop();
});

t.test('connections without a matching listener in the new configuration stay until they end', async (t) => {
  const upstream = await startPeers(t);
  const clusters = [staticCluster('db', upstream.port), staticCluster('other', upstream.port)];
  const config = bootstrap({ listeners: [proxy('kept', 'db'), proxy('gone', 'db'), proxy('moved', 'db')], clusters });
  const changed = bootstrap({ listeners: [proxy('kept', 'db'), proxy('moved', 'other')], clusters });
  const args = [
    '--parent-shutdown-time-s',
    '600',
    '--drain-time-s',
    '2',
    '--hand-over-connections',
    '--concurrency',
    '1',
  ];
  const line = new EpochLine(t);
  const parent = await line.start(0, { config, args });
  const pairs = [];
  for (const name of ['kept', 'gone', 'moved']) {
    const client = await openStream(t, await parent.listenerPort(name));
    pairs.push({ name, client, server: await upstream.next() });
  }
  const child = await line.start(1, { config: changed, args });
  await waitForLog(parent, "connections of listener 'gone' stay in this process: there is no listener 'gone'");
  await waitForLog(
    parent,
    "connections of listener 'moved' stay in this process: cluster 'db' is not a cluster of this proxy",
  );
  await waitForLog(parent, 'the time to drain is over');
  for (const { client, server, name } of pairs) {
    await client.write(name);
    await server.receives(name.length);
    await server.write(name);
    await client.receives(name.length);
  }
  // The process exits with its last connection.
  for (const { client, server } of pairs.slice(1)) {
    client.end();
    t.equal(await server.isClosed(), 'end');
    server.end();
    t.equal(await client.isClosed(), 'end');
  }
  await waitFor(() => parent.exit !== undefined, { what: 'the exit of the old process' });
  t.same(parent.exit, { code: 0, signal: null });
  t.match(child.stderr, 'the parent process has no connections any more');
  const [kept] = pairs;
  await kept!.client.write('again');
  await kept!.server.receives('keptagain'.length);
  t.equal(await child.stat('server.hand_over.connections_sent'), 1);
  t.equal(await child.stat('server.hand_over.connections_received'), 1);
  t.equal(await child.stat('server.hand_over.connections_kept'), 2);
  t.equal(await child.stat('server.hand_over.connections_refused'), 2);
  await child.stop();
});

t.test('the old process waits for its pending admin responses, and not for streams', async (t) => {
  const config = {
    ...bootstrap({ listeners: [proxy('web', 'db')], clusters: [staticCluster('db', 1)] }),
    stats_sinks: [
      {
        name: 'circuits',
        typed_config: { '@type': 'type.googleapis.com/envoy.config.metrics.v3.HystrixSink', num_buckets: 1 },
      },
    ],
  };
  const line = new EpochLine(t);
  const old = await line.start(0, { config, args: LONG });
  const [stream, asking] = [await connectRaw(t, old.adminPort), await connectRaw(t, old.adminPort)];
  stream.write('GET /circuit_event_stream HTTP/1.1\r\nhost: admin\r\n\r\n');
  await stream.readUntil('\r\n\r\n');
  asking.write('POST /stats HTTP/1.1\r\nhost: admin\r\nexpect: 100-continue\r\ncontent-length: 1\r\n\r\n');
  await asking.readUntil('100 Continue\r\n\r\n');
  const next = await line.start(1, { config, args: LONG });
  await waitForLog(old, 'draining all listeners');
  const uptime = async () => {
    const { body } = await next.admin('/server_info');
    return Number.parseInt((JSON.parse(body) as { uptime_current_epoch: string }).uptime_current_epoch, 10);
  };
  const begun = await uptime();
  await waitFor(async () => old.exit !== undefined || (await uptime()) >= begun + 3, { what: 'a later uptime' });
  t.equal(old.exit, undefined, 'it waits for the response');
  asking.write('x');
  t.match((await asking.readToEnd()).text, /^HTTP\/1\.1 200 OK\r\n.*\r\n0\r\n\r\n$/s);
  await waitFor(() => old.exit !== undefined, { what: 'the exit of the old process' });
  t.same(old.exit, { code: 0, signal: null });
  await next.stop();
});

t.test('when the new process is killed, connections still in the old one are served there', async (t) => {
  const held: ServerResponse[] = [];
  const upstream = await startUpstream(t, (request, response) => {
    if (request.url === '/probe') response.end();
    else held.push(response);
  });
  const release = async () => {
    await waitFor(() => held.length > 0, { what: 'a request' });
    held.pop()!.end('at last');
  };
  const config = bootstrap({
    listeners: [httpListener('web', 0, { route_config: routeAllTo('web') })],
    clusters: [staticCluster('web', upstream.port)],
  });
  const line = new EpochLine(t);
  const args = ['--drain-strategy', 'immediate', '--parent-shutdown-time-s', '600', '--hand-over-connections'];
  const parent = await line.start(0, { config, args: [...args, '--concurrency', '1'] });
  const client = await connectRaw(t, await parent.listenerPort('web'));
  client.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  await parent.waitForStat('http.web.downstream_rq_active', 1);
  const child = await line.start(1, { config, args: [...args, '--concurrency', '1'] });
  await waitForLog(parent, 'handing established connections over to the child process');
  child.child.kill('SIGKILL');
  await waitForLog(parent, 'the child process that took over has ended');
  const port = await parent.listenerPort('web');
  const servesAgain = async () => {
    const probe = await connectRaw(t, port);
    probe.write('GET /probe HTTP/1.1\r\nHost: a\r\n\r\n');
    return !/connection: close/i.test(await probe.readUntil('\r\n\r\n'));
  };
  await waitFor(servesAgain, { what: 'the end of the drain' });
  for (const request of ['', 'GET / HTTP/1.1\r\nHost: a\r\n\r\n']) {
    client.write(request);
    await release();
    const { head, body } = await response(client);
    t.equal(body, 'at last');
    t.notMatch(head, /connection: close/i);
  }
  await parent.stop();
});

t.test('without the option in both processes nothing is handed over', async (t) => {
  const upstream = await startPeers(t);
  const config = bootstrap({ listeners: [proxy('tcp', 'db')], clusters: [staticCluster('db', upstream.port)] });
  const line = new EpochLine(t);
  const args = ['--parent-shutdown-time-s', '2', '--drain-time-s', '1', '--concurrency', '1'];
  const parent = await line.start(0, { config, args: [...args, '--hand-over-connections'] });
  const client = await openStream(t, await parent.listenerPort('tcp'));
  await upstream.next();
  const child = await line.start(1, { config, args });
  t.equal(await client.isClosed(), 'end');
  await waitFor(() => parent.exit !== undefined, { what: 'the exit of the old process' });
  t.notMatch(parent.stderr, 'handing established connections over');
  await child.stop();
});

async function ask(
  t: Teardown & { equal(a: unknown, b: unknown): unknown; notMatch(text: string, pattern: RegExp): unknown },
  client: RawConnection,
  path: string,
) {
  client.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
  const { body, head } = await response(client);
  t.equal(body, `${path} of GET`);
  t.notMatch(head, /connection: close/i);
}

/** Returns the next response; the host gives each a length or sends it in separate chunks. */
async function response(client: RawConnection): Promise<{ head: string; body: string }> {
  const head = await client.readUntil('\r\n\r\n');
  const length = /content-length: (\d+)/i.exec(head)?.[1];
  return { head, body: await client.read(Number(length)) };
}
