// The stream of segments to SkyWalking, at its end.

import t from 'tap';
import { SegmentStream } from '../../../src/extensions/tracers/skywalking/segment-stream.js';
import { type Teardown, waitFor } from '../../e2e/harness/index.js';
import { startGrpcCollector } from '../../e2e/tracing/collector.js';
import { http2Cluster, startCalls } from '../../grpc/calls.js';

const TIMERS = { reschedule() {}, cancel() {} };

async function streamTo(t: Teardown, port: number) {
  const counts = { sent: 0, dropped: 0 };
  const { calls } = startCalls(t, [http2Cluster('oap', port)]);
  const stream = new SegmentStream({ envoy_grpc: { cluster_name: 'oap' } }, 10, calls, TIMERS, {
    sent: () => void counts.sent++,
    dropped: (segments) => void (counts.dropped += segments),
    flushed() {},
  });
  return { counts, stream };
}

t.test('a stream that is closed before it is connected sends its segments and ends', async (t) => {
  const collector = await startGrpcCollector(t, (message) => Buffer.from(message).toString());
  const { counts, stream } = await streamTo(t, collector.port);
  for (const segment of ['a', 'b']) stream.add(Buffer.from(segment));
  stream.close();
  t.strictSame(await collector.collect(2, (message) => [message]), ['a', 'b']);
  t.strictSame(counts, { sent: 2, dropped: 0 });
  stream.add(Buffer.from('c'));
  t.strictSame(counts, { sent: 2, dropped: 1 }, 'nothing follows the end');
});

t.test('segments that cannot be sent at the end are counted', async (t) => {
  const { counts, stream } = await streamTo(t, 1);
  for (const segment of ['a', 'b']) stream.add(Buffer.from(segment));
  stream.close();
  await waitFor(() => counts.dropped === 2, { what: 'the lost segments' });
  t.equal(counts.sent, 0);
});
