// A held body released between two attempts, larger than the retry buffer.

import t from 'tap';
import { waitFor } from '../../harness/index.js';
import { dechunk } from '../message.js';
import { startScriptedProxy } from './scripted-proxy.js';

const LIMIT = 10_000;
const PIECE = 6000;
const proxy = await startScriptedProxy(t, {
  listener: { per_connection_buffer_limit_bytes: LIMIT },
  route: { retry_policy: { retry_on: '5xx', num_retries: 3, retry_back_off: { base_interval: '1s' } } },
});
t.afterEach(() => proxy.settle());

t.test('the next attempt has the whole body', async (t) => {
  const body = `${'a'.repeat(PIECE)}${'b'.repeat(PIECE)}`;
  const request = await proxy.send(
    { b: { decodeData: ['continue', 'buffer'] } },
    { method: 'POST', headers: 'transfer-encoding: chunked\r\n', body: chunk('a') },
  );
  const first = await proxy.host(request);
  await first.readUntil('a\r\n');
  request.client.write(chunk('b'));
  await request.sees(`b decodeData '(${PIECE})'`);
  first.write('HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n');
  await waitFor(async () => ((await proxy.baton.stat('cluster.host.upstream_rq_retry')) ?? 0) > 0);
  await request.perform('b', 'continueDecoding');
  const second = await proxy.host(request);
  await second.readUntil('\r\n\r\n');
  await waitFor(() => dechunk(second.received).body.length >= PIECE);
  request.client.write('0\r\n\r\n');
  await request.perform('b', 'continueDecoding');
  await waitFor(() => dechunk(second.received).isComplete);
  t.ok(dechunk(second.received).body === body);
  second.write('HTTP/1.1 204 None\r\nconnection: close\r\n\r\n');
  await request.client.readUntil(' 204 ');
});

function chunk(letter: string): string {
  return `${PIECE.toString(16)}\r\n${letter.repeat(PIECE)}\r\n`;
}
