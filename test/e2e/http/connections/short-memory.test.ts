// Clients that make a worker hold memory: complete requests are answered, regardless of unfinished requests of other clients. When memory
// is short, stalled clients lose it first; requests wait for memory before they are refused; and memory is released.

import t from 'tap';
import { connectRaw, httpRequest, type RawConnection, type Teardown, waitFor } from '../../harness/index.js';
import type { HttpProxy } from '../proxy.js';
import {
  BODY,
  DIGEST,
  LIMIT_MB,
  LITTLE,
  memoryOf,
  sendPartialHeads,
  startHost,
  startWithHost,
  wholeRequests,
} from './limited-memory.js';

const host = await startHost(t);
const { waiting } = host;

t.test('1,400 clients that stop in the middle of a header section do not affect other clients', async (t) => {
  const proxy = await startWithHost(t, host, []);
  const half = await sendPartialHeads(t, proxy, 1400, 17 * 1024);
  t.same(await wholeRequests(proxy, 400, 20), { 200: 400 });
  t.ok(
    half.every(({ received, closed }) => received === '' && closed === 'open'),
    'the stalled clients keep their connections',
  );
  t.match(await memoryOf(proxy), { ended: 0, refusals: 0, waits: 0 });
});

t.test(
  'when memory is short, the requests stalled for longest are ended with 408, and no other request suffers',
  async (t) => {
    const proxy = await startWithHost(t, host, LITTLE);
    // 32 KiB each: more than the limit.
    const half = await sendPartialHeads(t, proxy, 800, 20_000);
    t.same(await wholeRequests(proxy, 200, 10), { 200: 200 });
    const answered = half.filter(({ received }) => received !== '');
    const first = half.slice(0, answered.length);
    t.ok(answered.length > 200 && answered.length < 700, `${answered.length} were ended`);
    t.ok(answered.filter((each) => first.includes(each)).length > answered.length * 0.8, 'the oldest');
    for (const { received } of answered) t.match(received, /^HTTP\/1.1 408 /);
    const { status, body } = await proxy.get('/', { method: 'POST', body: BODY });
    t.equal(status, 200);
    t.equal(body, DIGEST, 'a body that must be buffered completely has memory');
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

t.test(
  'clients stalled in their trailers are ended too, even if no other part of their requests is buffered',
  async (t) => {
    const proxy = await startWithHost(t, host, LITTLE);
    const port = proxy.ports['plain']!;
    // With a free connection to the host no part of a request is buffered.
    host.answersLater = true;
    const first = Array.from({ length: 300 }, () => httpRequest(port, '/'));
    await waitFor(() => waiting.length === first.length);
    host.answerAll();
    await Promise.all(first);
    const start = 'POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nx-sum: ';
    const half: RawConnection[] = [];
    while (half.length < first.length) {
      const client = await connectRaw(t, port);
      // 64 KiB each: more than the limit.
      client.write(start + 'x'.repeat(40_000));
      half.push(client);
    }
    await waitFor(() => half.some(({ received }) => received.startsWith('HTTP/1.1 408 ')));
    t.same(await wholeRequests(proxy, 50, 5), { 200: 50 });
  },
);

t.test('a worker that uses half of its memory logs that, once', async (t) => {
  const proxy = await startWithHost(t, host, LITTLE);
  // 32 KiB each.
  await sendPartialHeads(t, proxy, 280, 20_000);
  const warnings = () =>
    proxy.baton.stderr.match(/worker_0 holds much of .*: [89] of 16 MB are in use.* --worker-buffer-memory-mb/g) ?? [];
  await waitFor(() => warnings().length > 0);
  const steps = () => proxy.baton.stat('server.worker_0.buffer_memory_used');
  const before = await steps();
  await sendPartialHeads(t, proxy, 5, 20_000);
  await waitFor(async () => (await steps()) !== before, { what: 'the next sample of the memory' });
  t.equal(warnings().length, 1);
  t.notMatch(proxy.baton.stderr, 'is short of memory');
});

t.test('a request waits up to five seconds for memory held by requests that wait for their host', async (t) => {
  const proxy = await startWithHost(t, host, LITTLE);
  const clients = await fill(t, proxy);
  const [first] = await sendPartialHeads(t, proxy, 1, 30_000);
  t.match(await first!.readUntil('\r\n', 20_000), / 503 /);
  const late = await sendPartialHeads(t, proxy, 5, 30_000);
  await proxy.baton.waitForStat('server.worker_0.buffer_memory_waits', 6);
  const small = await connectRaw(t, proxy.port);
  small.write('GET /small HTTP/1.1\r\nhost: a\r\n\r\n');
  for (const client of late) client.write('\r\n\r\n');
  await waitFor(() => waiting.length === clients.length + 1);
  t.ok(
    late.every(({ received }) => received === ''),
    'a request that needs no memory does not wait',
  );
  host.answerAll();
  for (const client of [...clients, ...late, small]) t.match(await client.readUntil('\r\n'), / 200 OK/);
  t.match(await memoryOf(proxy), { ended: 0, waits: 6 });
});

/** Sends requests that the host holds and whose bodies take nearly all of the memory: 64 KiB each, or a bit more. */
async function fill(t: Teardown, { ports }: HttpProxy): Promise<RawConnection[]> {
  host.answersLater = true;
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
