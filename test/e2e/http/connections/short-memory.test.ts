// Clients that make a worker hold memory: requests that are whole are answered, whatever others leave unfinished. When memory is
// short, those who hold it and do not go on lose it first; requests wait for room before they are refused; and memory goes back.

import { createHash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import t from 'tap';
import {
  connectRaw,
  httpRequest,
  type RawConnection,
  startUpstream,
  staticCluster,
  type Teardown,
  waitFor,
} from '../../harness/index.js';
import { type HttpProxy, managerOf, routeTo, startProxy } from '../proxy.js';

const FILTERS = 'type.googleapis.com/envoy.extensions.filters.http.';
const LIMIT_MB = 16;
const BODY = Buffer.from(Array.from({ length: 1_000_000 }, (_, index) => (index * 31 + (index >> 8) * 7) & 255));
const DIGEST = createHash('sha256').update(BODY).digest('hex');

/** Requests that the host has got and not answered. */
const waiting: ServerResponse[] = [];
let answersLater = false;
const upstream = await startUpstream(t, (incoming, outgoing) => {
  const hash = createHash('sha256');
  incoming.on('data', (chunk: Buffer) => hash.update(chunk));
  incoming.on('end', () => {
    if (answersLater) waiting.push(outgoing);
    else outgoing.end(hash.digest('hex'));
  });
});
const MANY = { thresholds: [{ max_connections: 4000, max_pending_requests: 4000, max_requests: 4000 }] };
const host = { ...staticCluster('host', upstream.port), circuit_breakers: MANY };

function start(t: Teardown, ...args: string[]): Promise<HttpProxy> {
  const main = managerOf([routeTo({ prefix: '/' }, 'host')], {
    http_filters: [
      { name: 'buffer', typed_config: { '@type': `${FILTERS}buffer.v3.Buffer`, max_request_bytes: BODY.length } },
      { name: 'router', typed_config: { '@type': `${FILTERS}router.v3.Router` } },
    ],
  });
  // Bodies are kept for another try.
  const kept = managerOf([routeTo({ prefix: '/' }, 'host', { retry_policy: { retry_on: 'reset' } })]);
  return startProxy(t, { listeners: { main, kept }, clusters: [host], args: ['-l', 'warning', ...args] });
}

const limited = ['--worker-buffer-memory-mb', String(LIMIT_MB)];
const memoryOf = ({ baton }: HttpProxy) => baton.stats('server.worker_0.buffer_memory_');

t.test('fourteen hundred clients that stop amid a head take nothing from those that do not', async (t) => {
  const proxy = await start(t);
  const half = await halfHeads(t, proxy, 1400, 17 * 1024);
  t.same(await wholeRequests(proxy, 400, 20), { 200: 400 });
  t.ok(
    half.every(({ received, closed }) => received === '' && closed === 'open'),
    'nor do they lose anything',
  );
  t.match(await memoryOf(proxy), { ended: 0, refusals: 0, waits: 0 });
});

t.test(
  'when memory is short, what has stood still for longest is ended with 408, and nothing else suffers',
  async (t) => {
    const proxy = await start(t, ...limited);
    // 32 KiB each: more than there is.
    const half = await halfHeads(t, proxy, 800, 20_000);
    t.same(await wholeRequests(proxy, 200, 10), { 200: 200 });
    const answered = half.filter(({ received }) => received !== '');
    const first = half.slice(0, answered.length);
    t.ok(answered.length > 200 && answered.length < 700, `${answered.length} were ended`);
    t.ok(answered.filter((each) => first.includes(each)).length > answered.length * 0.8, 'the oldest');
    for (const { received } of answered) t.match(received, /^HTTP\/1.1 408 /);
    const { status, body } = await proxy.get('/', { method: 'POST', body: BODY });
    t.equal(status, 200);
    t.equal(body, DIGEST, 'a body that has to be kept whole has room');
    const ended = half.filter(({ received }) => received !== '').length;
    const memory = { limit: LIMIT_MB * 1024 * 1024, ended, refusals: 0 };
    for (const [name, value] of Object.entries(memory)) {
      await proxy.baton.waitForStat(`server.worker_0.buffer_memory_${name}`, value);
    }
    t.match(
      proxy.baton.stderr,
      /worker_0 is short of memory for requests: \d+ of 16 MB are in use, and \d+ requests were ended/,
    );

    for (const each of half) each.destroy();
    await waitFor(async () => (await memoryOf(proxy))['used']! < 100_000);
    t.ok((await memoryOf(proxy))['resident']! > 10_000_000);
    await waitFor(async () => (await memoryOf(proxy))['resident']! < 1_000_000, { deadlineMs: 30_000 });
  },
);

t.test('bodies that a filter holds and that do not end are ended too, the oldest first', async (t) => {
  const proxy = await start(t, ...limited);
  const head = `POST / HTTP/1.1\r\nhost: a\r\ncontent-length: ${BODY.length}\r\n\r\n`;
  const slow: RawConnection[] = [];
  for (let i = 0; i < 40; i++) {
    const client = await connectRaw(t, proxy.port);
    slow.push(client);
    client.write(head);
    client.write(BODY.subarray(0, 600_000));
  }
  await waitFor(() => slow.filter(({ received }) => received !== '').length >= 14);
  t.ok(slow.filter(({ received }) => received !== '').every(({ received }) => received.startsWith('HTTP/1.1 408 ')));
  for (let i = 0; i < 5; i++) t.equal((await proxy.get('/', { method: 'POST', body: BODY })).body, DIGEST);
  const left = slow.filter(({ received }) => received === '');
  t.ok(left.length > 5);
  left.at(-1)!.write(BODY.subarray(600_000));
  t.match(await left.at(-1)!.readUntil(DIGEST), / 200 OK/, 'the youngest may still end');
});

t.test('a request waits for room while those before it wait for their host, for five seconds at most', async (t) => {
  const proxy = await start(t, ...limited);
  const clients = await fill(t, proxy);
  const [first] = await halfHeads(t, proxy, 1, 30_000);
  t.match(await first!.readUntil('\r\n', 20_000), / 503 /);
  const late = await halfHeads(t, proxy, 5, 30_000);
  await proxy.baton.waitForStat('server.worker_0.buffer_memory_waits', 6);
  const small = await connectRaw(t, proxy.port);
  small.write('GET /small HTTP/1.1\r\nhost: a\r\n\r\n');
  for (const client of late) client.write('\r\n\r\n');
  await waitFor(() => waiting.length === clients.length + 1);
  t.ok(
    late.every(({ received }) => received === ''),
    'a request that needs no memory does not wait for them',
  );
  goOn();
  for (const client of [...clients, ...late, small]) t.match(await client.readUntil('\r\n'), / 200 OK/);
  t.match(await memoryOf(proxy), { ended: 0, waits: 6 });
});

/** Clients that have sent the beginning of a request, which is `bytes` long. */
async function halfHeads(t: Teardown, proxy: HttpProxy, count: number, bytes: number): Promise<RawConnection[]> {
  const head = `GET / HTTP/1.1\r\nhost: a\r\nx-long: ${'a'.repeat(bytes)}`;
  const before = (await proxy.baton.stat('http.main.downstream_cx_rx_bytes_total'))!;
  const clients: RawConnection[] = [];
  for (let i = 0; i < count; i++) {
    const client = await connectRaw(t, proxy.port);
    client.write(head);
    clients.push(client);
  }
  const all = before + count * head.length;
  await waitFor(async () => (await proxy.baton.stat('http.main.downstream_cx_rx_bytes_total'))! >= all);
  return clients;
}

/** Requests with heads of 17 to 60 KB, on connections of their own; how many got which status. */
async function wholeRequests({ port }: HttpProxy, count: number, atOnce: number): Promise<Record<string, number>> {
  const statuses: Record<string, number> = {};
  let next = 0;
  const send = async () => {
    while (next < count) {
      const bytes = 17 * 1024 + ((next++ * 7919) % (42 * 1024));
      const { status } = await httpRequest(port, '/', { headers: { 'x-long': 'b'.repeat(bytes) } });
      statuses[status] = (statuses[status] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: atOnce }, send));
  return statuses;
}

/** Requests that wait for the host, and whose bodies take nearly all of the memory: 64 KiB each, or a bit more. */
async function fill(t: Teardown, { ports }: HttpProxy): Promise<RawConnection[]> {
  answersLater = true;
  const clients: RawConnection[] = [];
  const body = BODY.subarray(0, 60_000);
  while (clients.length < LIMIT_MB * 16 * 0.96) {
    const client = await connectRaw(t, ports['kept']!);
    clients.push(client);
    client.write(`POST / HTTP/1.1\r\nhost: a\r\ncontent-length: ${body.length}\r\n\r\n`);
    client.write(body);
    await waitFor(() => waiting.length === clients.length);
  }
  return clients;
}

function goOn(): void {
  answersLater = false;
  for (const outgoing of waiting.splice(0)) outgoing.end('late');
}
