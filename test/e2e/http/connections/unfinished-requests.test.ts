// Requests whose clients stop sending: when memory is short, their buffers are released, those of the oldest first.

import t from 'tap';
import { connectRaw, type RawConnection, waitFor } from '../../harness/index.js';
import { BODY, DIGEST, LITTLE, startHost, startWithHost, wholeRequests } from './limited-memory.js';

const host = await startHost(t);

t.test('stalled bodies buffered by a filter are ended too, the oldest first', async (t) => {
  const proxy = await startWithHost(t, host, LITTLE);
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
  t.match(await left.at(-1)!.readUntil(DIGEST), / 200 OK/, 'the newest can still complete');
});

for (const [what, head, rest] of [
  ['bodies after long header sections', `content-length: 5\r\nx-long: ${'a'.repeat(40_000)}`, 'hell'],
  ['trailers', 'transfer-encoding: chunked', `0\r\nx-long: ${'a'.repeat(40_000)}`],
] as const) {
  t.test(`stalled ${what} are ended too`, async (t) => {
    const proxy = await startWithHost(t, host, LITTLE);
    const slow: RawConnection[] = [];
    const isPassedOn = async (count: number) =>
      (await proxy.baton.stat('cluster.host.upstream_rq_total'))! >= count &&
      (await proxy.baton.stat('cluster.host.upstream_rq_pending_active')) === 0;
    while (slow.length < 300) {
      const few = await Promise.all(Array.from({ length: 20 }, () => connectRaw(t, proxy.ports['kept']!)));
      slow.push(...few);
      for (const client of few) client.write(`POST / HTTP/1.1\r\nhost: a\r\n${head}\r\n\r\n`);
      // Without a connection to the host they wait for one first.
      await waitFor(() => isPassedOn(slow.length));
      for (const client of few) client.write(rest);
    }
    await waitFor(() => slow.filter(({ received }) => received !== '').length >= 100);
    const answers = new Set(slow.map(({ received }) => received.slice(0, 12)));
    t.strictSame([...answers].sort(), ['', 'HTTP/1.1 408']);
    t.same(await wholeRequests(proxy, 50, 5), { 200: 50 });
  });
}
