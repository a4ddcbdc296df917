// HTTP/2 as a ServerProtocol and a ClientProtocol: its codecs and its stats.

import type { Memory } from '../../io/memory.js';
import { ClusterStats } from '../../stats/layouts/cluster.js';
import { HttpStats } from '../../stats/layouts/http.js';
import type { ClientProtocol, ServerProtocol } from '../codec/connections.js';
import type { Http2Options } from '../codec/options.js';
import { StepPool } from '../step-pool.js';
import { H2ClientCodec } from './client-codec.js';
import { H2ClientStream } from './client-stream.js';
import type { CodecStats } from './connection.js';
import { H2ServerCodec } from './server-codec.js';
import { H2ServerStream } from './server-stream.js';

/** Returns the protocol for one connection manager. `stats`: http2. of downstream codecs. */
export function h2Server(memory: Memory, options: Http2Options, stats: CodecStats): ServerProtocol {
  const streams = new StepPool(memory, () => new H2ServerStream());
  return {
    connectionsTotal: HttpStats.at.downstream_cx_http2_total,
    connectionsActive: HttpStats.at.downstream_cx_http2_active,
    requestsTotal: HttpStats.at.downstream_rq_http2_total,
    // A codec serves one connection.
    codecs: new StepPool(memory, () => new H2ServerCodec(memory, options, stats, streams)),
  };
}

/** Returns the protocol for one cluster. `stats`: cluster.<name>.http2. */
export function h2Client(memory: Memory, options: Http2Options, stats: CodecStats): ClientProtocol {
  const streams = new StepPool(memory, () => new H2ClientStream());
  return {
    connectionsTotal: ClusterStats.at.upstream_cx_http2_total,
    streamsPerConnection: options.maxStreams,
    codec: (sink, events, expectedStreams) =>
      new H2ClientCodec(memory, sink, events, options, stats, streams, expectedStreams),
  };
}
