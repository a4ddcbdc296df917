// HTTP/1 as a ServerProtocol and a ClientProtocol: its codecs and its stats.

import type { Memory } from '../../io/memory.js';
import { ClusterStats } from '../../stats/layouts/cluster.js';
import { HttpStats } from '../../stats/layouts/http.js';
import type { ClientProtocol, ServerProtocol } from '../codec/connections.js';
import type { Http1Options } from '../codec/options.js';
import { StepPool } from '../step-pool.js';
import { H1ClientCodec } from './client-codec.js';
import { H1ServerCodec } from './server-codec.js';

/** Returns the protocol for one connection manager. */
export function h1Server(memory: Memory, options: Http1Options): ServerProtocol {
  return {
    connectionsTotal: HttpStats.at.downstream_cx_http1_total,
    connectionsActive: HttpStats.at.downstream_cx_http1_active,
    requestsTotal: HttpStats.at.downstream_rq_http1_total,
    codecs: new StepPool(memory, () => new H1ServerCodec(memory, options)),
  };
}

/** Returns the protocol for one cluster. */
export function h1Client(memory: Memory, options: Http1Options): ClientProtocol {
  return {
    connectionsTotal: ClusterStats.at.upstream_cx_http1_total,
    streamsPerConnection: 1,
    codec: (sink, events) => new H1ClientCodec(memory, sink, events, options),
  };
}
