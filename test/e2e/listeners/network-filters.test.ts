// Network filters before the terminal one: each sees every byte once; held bytes are buffered in bounded memory, and are
// forwarded completely; and however a connection ends, nothing leaks.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import {
  type BatonProcess,
  bootstrap,
  type Config,
  connectRaw,
  fileAccessLog,
  httpListener,
  httpRequest,
  type RawConnection,
  startBaton,
  staticCluster,
  type Teardown,
  tcpListener,
  tempDir,
  UNBUNDLED,
  waitFor,
} from '../harness/index.js';
import { fingerprint, openStream, randomBytes, startPeers } from '../tcp/stream.js';

const GET = 'GET / HTTP/1.1\r\nhost: a\r\n\r\n';
const upstream = await startPeers(t);
const logs = tempDir(t);
const CLUSTERS = [staticCluster('upstream', upstream.port)];

/** Puts gate filters with these words before the filters of the listener. */
function behind(words: readonly string[], listener: Config, more: Config = {}): Config {
  const gates = words.map((word) => ({
    name: word,
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.filters.network.zookeeper_proxy.v3.ZooKeeperProxy',
      stat_prefix: word,
    },
  }));
  const [chain] = listener['filter_chains'] as { filters: Config[] }[];
  return {
    ...listener,
    stat_prefix: listener['name'],
    filter_chains: [{ filters: [...gates, ...chain!.filters] }],
    ...more,
  };
}

function tcp(name: string, words: readonly string[], more: Config = {}): Config {
  const format = '%CONNECTION_TERMINATION_DETAILS% %BYTES_RECEIVED% %BYTES_SENT% %RESPONSE_FLAGS%\n';
  const access_log = [fileAccessLog(join(logs, name), format)];
  return behind(words, tcpListener(name, 0, { cluster: 'upstream', access_log }), more);
}

function http(name: string, words: readonly string[]): Config {
  const route = { match: { prefix: '/' }, direct_response: { status: 200, body: { inline_string: 'hi' } } };
  const route_config = { virtual_hosts: [{ name: 'all', domains: ['*'], routes: [route] }] };
  return behind(words, httpListener(name, 0, { route_config }));
}

function start(t: Teardown, listeners: Config[], args: readonly string[] = []): Promise<BatonProcess> {
  return startBaton(t, {
    program: UNBUNDLED,
    nodeArgs: ['--import', new URL('./gate-filter.js', import.meta.url).href],
    args: ['--concurrency', '1', '--file-flush-interval-msec', '20', ...args],
    config: bootstrap({ listeners, clusters: CLUSTERS }),
  });
}

async function logged(name: string): Promise<string> {
  const read = () => readFileSync(join(logs, name), 'utf8');
  await waitFor(() => read().endsWith('\n'), { what: `the log of ${name}` });
  return read();
}

/** Waits until nothing is left of the connections of a listener. */
async function isEmpty(baton: BatonProcess, listener: string, word: string): Promise<void> {
  await baton.waitForStat(`listener.${listener}.downstream_cx_active`, 0);
  const created = (await baton.stat(`gate.${listener}.${word}.created`))!;
  await baton.waitForStat(`gate.${listener}.${word}.destroyed`, created);
}

const baton = await start(t, [
  tcp('through', ['again', 'line', 'not mine', 'slow', 'wait', 'count']),
  http('http', ['wait', 'count']),
  tcp('line', ['line', 'count']),
  tcp('never', ['never', 'count'], { per_connection_buffer_limit_bytes: 65_536 }),
  http('http-never', ['never']),
  tcp('none', ['not mine']),
  tcp('refuse', ['count', 'refuse', 'never']),
  tcp('later', ['refuse later']),
  tcp('close', ['count', 'close']),
  tcp('flush', ['flush']),
  ...['create', 'onNewConnection', 'onData', 'onDestroy'].map((method) => tcp(method, ['count', `throw in ${method}`])),
]);
const port = (name: string) => baton.listenerPort(name);

t.test('bytes pass filters that stop repeatedly, each once and in order, with the end', async (t) => {
  const bytes = Buffer.concat([randomBytes(3_000_000), Buffer.from('\n')]);
  const client = await openStream(t, await port('through'));
  const whole = client.write(bytes);
  const server = await upstream.next();
  await server.write('welcome');
  await server.receives(bytes.length);
  await whole;
  client.end();
  t.equal(await server.isClosed(), 'end');
  t.equal(server.fingerprint(), fingerprint(bytes));
  server.end();
  t.equal(await client.isClosed(), 'end');
  t.equal(client.head, 'welcome');
  for (const word of ['again', 'line', 'slow', 'wait', 'count']) {
    await baton.waitForStats({
      [`gate.through.${word}.begun`]: 1,
      [`gate.through.${word}.bytes`]: bytes.length,
      [`gate.through.${word}.ends`]: 1,
    });
    await isEmpty(baton, 'through', word);
  }
  t.equal(await logged('through'), `- ${bytes.length} 7 -\n`);
});

t.test('a request waits for its filters, and its connection serves further requests normally', async (t) => {
  const client = await connectRaw(t, await port('http'));
  client.write(GET + GET);
  await client.readUntil(/hi.*hi/s);
  await baton.waitForStats({ 'gate.http.count.bytes': 2 * GET.length, 'http.http.downstream_rq_completed': 2 });
  client.write(GET);
  await client.readUntil('hi');
  client.end();
  await isEmpty(baton, 'http', 'wait');
});

t.test('the host is connected once all filters have admitted the connection, and not before', async (t) => {
  const client = await openStream(t, await port('line'));
  await client.write('half a li');
  await baton.waitForStats({
    'gate.line.line.bytes': 9,
    'gate.line.count.begun': 0,
    'tcp.line.downstream_cx_total': 0,
  });
  await client.write('ne\n');
  const server = await upstream.next();
  await server.receives(12);
  t.equal(server.head, 'half a line\n');
  await baton.waitForStats({ 'gate.line.count.begun': 1, 'tcp.line.downstream_cx_total': 1 });
  client.reset();
  t.equal(await server.isClosed(), 'reset', 'the reset is forwarded');
  await isEmpty(baton, 'line', 'line');
});

t.test('a filter that does not apply to a connection does not affect it', async (t) => {
  const client = await openStream(t, await port('none'));
  await client.write('hello');
  const server = await upstream.next();
  await server.receives(5);
  server.end();
  client.end();
  await baton.waitForStat('listener.none.downstream_cx_active', 0);
});

t.test("a stopped client is limited to the listener's buffer limit, however much it sends", async (t) => {
  const client = await openStream(t, await port('never'));
  void client.write(Buffer.alloc(50_000_000)).catch(() => undefined);
  await waitFor(async () => (await baton.stat('gate.never.never.bytes'))! >= 65_536);
  // Excess bytes are those of a single receive.
  await t.resolves(settled(() => baton.stat('gate.never.never.bytes')));
  const held = (await baton.stat('gate.never.never.bytes'))!;
  t.ok(held < 65_536 + 1_000_000, `${held} bytes`);
  t.equal(await baton.stat('gate.never.count.begun'), 0);
  client.reset();
  await isEmpty(baton, 'never', 'never');
});

t.test('clients that disconnect while they are stopped leak nothing', async (t) => {
  const tcpPort = await port('never');
  const httpPort = await port('http-never');
  const clients = await Promise.all(
    Array.from({ length: 200 }, (_, index) => connectRaw(t, index % 2 === 0 ? tcpPort : httpPort)),
  );
  for (const client of clients) client.write('something');
  await baton.waitForStats({
    'listener.never.downstream_cx_active': 100,
    'listener.http-never.downstream_cx_active': 100,
  });
  for (const [index, client] of clients.entries()) {
    // An HTTP connection ends with its client.
    if (index % 4 === 1) client.end();
    else client.reset();
  }
  await isEmpty(baton, 'never', 'never');
  await isEmpty(baton, 'http-never', 'never');
  await waitFor(async () => (await baton.stat('server.worker_0.buffer_memory_used'))! < 100_000, {
    what: 'free memory',
  });
});

t.test('a filter closes connections: before the host is connected, later, and in the middle of the data', async (t) => {
  const refused = await connectRaw(t, await port('refuse'));
  t.match(await refused.readToEnd(), { text: '', closed: 'end' });
  await isEmpty(baton, 'refuse', 'count');
  t.equal(await baton.stat('gate.refuse.never.begun'), 0);
  t.equal(await baton.stat('tcp.refuse.downstream_cx_total'), 0);

  const begun = performance.now();
  const later = await connectRaw(t, await port('later'));
  later.write('hello');
  t.not((await later.readToEnd()).closed, 'open');
  t.ok(performance.now() - begun >= 290, 'after its delay');
  await isEmpty(baton, 'later', 'refuse_later');

  for (const name of ['close', 'flush']) {
    const client = await openStream(t, await port(name));
    const server = await upstream.next();
    await server.write('welcome');
    await client.receives(7);
    await client.write('hello');
    t.equal(await client.isClosed(), 'end', name);
    t.equal(await server.isClosed(), 'end');
    t.equal(server.length, 0);
    server.end();
    t.equal(await logged(name), 'gate_closed 5 7 -\n');
    await baton.waitForStat(`listener.${name}.downstream_cx_active`, 0);
  }
});

t.test('an exception of a filter closes its connection, and no other', async (t) => {
  const other = await connectRaw(t, await port('http'));
  for (const method of ['create', 'onNewConnection', 'onData', 'onDestroy']) {
    // The reset may arrive before the client knows that it is connected.
    const client = await connectRaw(t, await port(method)).catch(() => undefined);
    client?.write('hello');
    if (method === 'onDestroy') {
      await baton.waitForStat('gate.onDestroy.count.bytes', 5);
      client?.reset();
    } else if (client !== undefined) t.match(await client.readToEnd(), { text: '', closed: 'reset' }, method);
    await baton.waitForStats({
      [`listener.${method}.downstream_cx_active`]: 0,
      [`gate.${method}.count.created`]: 1,
      [`gate.${method}.count.destroyed`]: 1,
    });
    await waitFor(() => baton.stderr.includes(`throw in ${method}`), { what: `the log of ${method}` });
  }
  other.write(GET);
  await other.readUntil('hi');
  t.notMatch(baton.stderr, /worker \d+ died/);
});

t.test('the process can exit with stopped connections', async (t) => {
  const own = await start(t, [tcp('never', ['never'])], ['--drain-time-s', '1', '--drain-on-sigterm']);
  const client = await connectRaw(t, await own.listenerPort('never'));
  client.write('hello');
  await own.waitForStat('gate.never.never.bytes', 5);
  await own.stop();
  t.not((await client.readToEnd()).closed, 'open');
  t.equal(own.exit?.code, 0);
});

t.test('stopped clients lose their connections when memory is short, and others are served', async (t) => {
  const own = await start(t, [http('http', []), tcp('never', ['never'])], ['--worker-buffer-memory-mb', '16']);
  const stopped: RawConnection[] = [];
  for (let count = 0; count < 60; count++) {
    const client = await connectRaw(t, await own.listenerPort('never'));
    client.write(Buffer.alloc(1_000_000));
    stopped.push(client);
  }
  await waitFor(() => stopped.filter(({ closed }) => closed !== 'open').length > 30, { what: 'closed connections' });
  const answer = await httpRequest(await own.listenerPort('http'), '/');
  t.match(answer, { status: 200, body: 'hi' });
  for (const client of stopped) client.reset();
  await isEmpty(own, 'never', 'never');
});

/** Resolves when a number has not changed for a second. */
async function settled(read: () => Promise<number | undefined>): Promise<void> {
  let last: number | undefined;
  let sinceMs = 0;
  await waitFor(async () => {
    const now = await read();
    if (now !== last) sinceMs = performance.now();
    last = now;
    return performance.now() - sinceMs > 1000;
  });
}
