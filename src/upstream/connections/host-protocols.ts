// The protocols of connections to a cluster's hosts, and which of them a request uses.

import { Protocol } from '../../access-log/stream/stream-info.js';
import type { HostProtocol } from '../../config/fields/http-options.js';
import type { ClientProtocol, PoolProtocol } from '../../http/codec/connections.js';
import { h1Client } from '../../http/h1/protocol.js';
import { h2Client } from '../../http/h2/protocol.js';
import type { Memory } from '../../io/memory.js';
import type { Scope } from '../../stats/thread-stats.js';
import { alpnBytes } from '../../tls/algorithms.js';
import type { ClusterSpec } from '../cluster-config.js';

/** A choice of protocols, with what TLS offers for it. */
export interface OfferedProtocol {
  readonly protocol: PoolProtocol;
  /** In wire form. */
  readonly alpn: Uint8Array;
}

/** The names in ALPN. */
export const ALPN_HTTP1 = 'http/1.1';
export const ALPN_HTTP2 = 'h2';

export class HostProtocols {
  readonly #http1: OfferedProtocol;
  readonly #http2: OfferedProtocol | undefined;
  /** For calls of Baton itself, and for all requests unless their own protocol decides. */
  readonly #usual: OfferedProtocol;
  readonly #followsClient: boolean;

  /** `http2Stats`: undefined if the hosts never use HTTP/2. */
  constructor(memory: Memory, spec: ClusterSpec, http2Stats: Scope | undefined) {
    const http1 = h1Client(memory, spec.http1);
    const http2 = spec.http2 && http2Stats && h2Client(memory, spec.http2, http2Stats);
    this.#http1 = { protocol: http1, alpn: HTTP1_ONLY };
    this.#http2 = http2 && { protocol: http2, alpn: HTTP2_ONLY };
    this.#followsClient = spec.hostProtocol === 'AS_CLIENT';
    this.#usual = this.#usualOf(spec.hostProtocol, http1, http2);
  }

  /** Returns the protocol for a request. `client`: that of its client; undefined: the request is Baton's own. */
  of(client: Protocol | undefined): OfferedProtocol {
    if (!this.#followsClient || client === undefined) return this.#usual;
    return client === Protocol.Http2 ? this.#http2! : this.#http1;
  }

  #usualOf(hosts: HostProtocol, http1: ClientProtocol, http2: ClientProtocol | undefined): OfferedProtocol {
    if (http2 === undefined || hosts === 'AS_CLIENT') return this.#http1;
    return hosts === 'NEGOTIATED' ? { protocol: negotiated(http1, http2), alpn: BOTH } : this.#http2!;
  }
}

/** As in Envoy, connections are expected to be HTTP/2 until one of them is not. */
function negotiated(http1: ClientProtocol, http2: ClientProtocol): PoolProtocol {
  return {
    streamsPerConnection: http2.streamsPerConnection,
    negotiated: (name) => (name === ALPN_HTTP2 ? http2 : http1),
  };
}

const HTTP1_ONLY = alpnBytes([ALPN_HTTP1]);
const HTTP2_ONLY = alpnBytes([ALPN_HTTP2]);
const BOTH = alpnBytes([ALPN_HTTP2, ALPN_HTTP1]);
