// Heads that never end take the arena's larger blocks; streams under way go on with the smaller ones.

import { createHash } from 'node:crypto';
import t from 'tap';
import { BLOCK_SIZES, DEFAULT_LAYOUT } from '../../../../src/io/memory.js';
import { connectRaw, startUpstream, staticCluster, waitFor } from '../../harness/index.js';
import { managerOf, routeTo, startProxy } from '../proxy.js';

const HEAD_BYTES = 20_000;
/** As many as there are blocks for. */
const HEADS = BLOCK_SIZES.filter((size) => size >= HEAD_BYTES)
  .map((size) => Math.floor(DEFAULT_LAYOUT.arenaBytesPerSize / size))
  .reduce((sum, count) => sum + count);
const BODY = Buffer.from(Array.from({ length: 1_000_000 }, (_, index) => (index * 31 + (index >> 8) * 7) & 255));
const FILTERS = 'type.googleapis.com/envoy.extensions.filters.http.';

const upstream = await startUpstream(t, (incoming, outgoing) => {
  const hash = createHash('sha256');
  incoming.on('data', (chunk: Buffer) => hash.update(chunk));
  incoming.on('end', () => outgoing.end(hash.digest('hex')));
});
const proxy = await startProxy(t, {
  listeners: {
    main: managerOf([routeTo({ prefix: '/' }, 'host')], {
      http_filters: [
        { name: 'buffer', typed_config: { '@type': `${FILTERS}buffer.v3.Buffer`, max_request_bytes: BODY.length } },
        { name: 'router', typed_config: { '@type': `${FILTERS}router.v3.Router` } },
      ],
    }),
  },
  clusters: [staticCluster('host', upstream.port)],
});

t.test('an upload that has to be kept whole passes while unfinished heads hold all blocks of their size', async (t) => {
  const head = `GET / HTTP/1.1\r\nhost: a\r\nx-long: ${'a'.repeat(HEAD_BYTES)}`;
  for (let i = 0; i < HEADS; i++) (await connectRaw(t, proxy.port)).write(head);
  await waitFor(
    async () => (await proxy.baton.stat('http.main.downstream_cx_rx_bytes_buffered'))! >= HEADS * HEAD_BYTES,
  );
  const late = await connectRaw(t, proxy.port);
  late.write(head);
  t.match(await late.readUntil('\r\n'), / 503 /, 'there is none for one more');
  const { status, body } = await proxy.get('/', { method: 'POST', body: BODY });
  t.equal(status, 200);
  t.equal(body, createHash('sha256').update(BODY).digest('hex'), 'every byte arrives');
});
