// The two directions of a stream that is a tunnel, which end one by one.
//
// As in Envoy, the peer that ends its direction first is logged and counted as one that ends the stream early. In HTTP/2 a direction of a stream
// ends in order.

import { ResponseFlag } from '../../access-log/stream/response-flags.js';
import { Protocol, type StreamInfo } from '../../access-log/stream/stream-info.js';
import { HttpStats } from '../../stats/layouts/http.js';
import type { Scope } from '../../stats/thread-stats.js';

export class TunnelEnds {
  /** Raw bytes pass in both directions. */
  isTunnel = false;
  /** The host has ended its direction; the client's goes on. */
  isHalfClosed = false;
  /** The whole request has reached the host. */
  isRequestForwarded = false;

  begin(): void {
    this.isTunnel = this.isHalfClosed = this.isRequestForwarded = false;
  }

  /** The end of the host's direction does not end the stream. */
  get clientGoesOn(): boolean {
    return this.isTunnel && !this.isRequestForwarded;
  }

  clientEnded(info: StreamInfo, http: Scope): void {
    if (!this.isTunnel || this.isHalfClosed || info.protocol === Protocol.Http2) return;
    info.responseFlags |= ResponseFlag.DownstreamConnectionTermination;
    info.responseCodeDetails = 'downstream_remote_disconnect';
    http.increment(HttpStats.at.downstream_rq_rx_reset);
  }

  hostEnded(info: StreamInfo, http: Scope): void {
    this.isHalfClosed = true;
    if (info.upstreamProtocol === Protocol.Http2) return;
    info.responseFlags |= ResponseFlag.UpstreamConnectionTermination;
    info.responseCodeDetails = 'upstream_reset_after_response_started{connection_termination}';
    http.increment(HttpStats.at.downstream_rq_rx_reset);
    http.increment(HttpStats.at.downstream_rq_tx_reset);
  }
}
