// Servers that violate the protocol: calls fail and the process continues. With Node 20, nghttp2 ended the process for some of
// these.

import t from 'tap';
import type { ClusterHosts } from '../../src/grpc/cluster-hosts.js';
import { GrpcChannel } from '../../src/grpc/grpc-channel.js';
import { FrameFlag, FrameType, frame, uint32 } from '../e2e/harness/http2-frames.js';
import { startTcpUpstream } from '../e2e/harness/index.js';

const SETTINGS = Buffer.concat([frame(FrameType.Settings, 0, 0), frame(FrameType.Settings, FrameFlag.Ack, 0)]);
const goAway = (code: number) => frame(FrameType.GoAway, 0, 0, Buffer.concat([uint32(0), uint32(code)]));
const SHORT_PING = frame(FrameType.Ping, 0, 0, Buffer.alloc(7));
const IDLE_DATA = frame(FrameType.Data, 0, 2, Buffer.alloc(1));
/** ALTSVC with an origin on a stream, which RFC 7838, section 4, forbids: Node ends the session for it. */
const WRONG_ALTERNATIVE = frame(10, 0, 1, Buffer.from('0003613a6263', 'hex'));
const LONG_WINDOW_UPDATE = frame(FrameType.WindowUpdate, 0, 1, Buffer.alloc(5));
const RESET = frame(FrameType.RstStream, 0, 1, uint32(2));

for (const [what, frames] of Object.entries({
  'goes away with an error, and sends a malformed frame': [goAway(2), SHORT_PING],
  'goes away, and sends a malformed frame': [goAway(0), SHORT_PING],
  'goes away with an error, and sends data on an idle stream': [goAway(2), IDLE_DATA],
  'resets a call, goes away, and sends a malformed frame': [RESET, goAway(2), SHORT_PING],
  'sends an invalid ALTSVC, and a malformed frame': [WRONG_ALTERNATIVE, LONG_WINDOW_UPDATE],
  'goes away twice': [goAway(0), goAway(2), RESET, SHORT_PING],
})) {
  for (const isFirst of [true, false]) {
    t.test(`a server that ${what}, ${isFirst ? 'in its first segment' : 'later'}`, async (t) => {
      const { port } = await startTcpUpstream(t, (socket) => {
        socket.once('data', () => {
          socket.write(isFirst ? Buffer.concat([SETTINGS, ...frames]) : SETTINGS);
          if (!isFirst) socket.on('data', () => socket.write(Buffer.concat(frames)));
        });
      });
      const service = { google_grpc: { target_uri: `ipv4:127.0.0.1:${port}`, stat_prefix: 'a' } };
      for (let round = 0; round < 5; round++) {
        const channel = new GrpcChannel(service, {} as ClusterHosts);
        t.teardown(() => channel.close());
        await t.rejects(channel.unary('/a.B/C', Buffer.alloc(10), 2000));
        channel.close();
      }
    });
  }
}
