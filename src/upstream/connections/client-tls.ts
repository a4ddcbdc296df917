// The TLS of connections to the hosts of a cluster, on one thread.

import type { TlsStart } from '../../io/shim.js';
import type { ThreadStats } from '../../stats/thread-stats.js';
import { HandshakeStats } from '../../tls/handshake-stats.js';
import type { ClusterTls } from '../cluster-config.js';
import type { Host } from '../hosts/host.js';

const NO_ALPN = new Uint8Array();

export class ClientTls {
  /** Number of the context in the native engine. */
  readonly context: number;
  readonly stats: HandshakeStats;
  readonly #serverName: string;
  readonly #usesHostname: boolean;

  constructor({ context, scope, serverName, usesHostname }: ClusterTls, stats: ThreadStats) {
    this.context = context;
    this.stats = new HandshakeStats(stats.scope(scope), stats, scope.prefix);
    this.#serverName = serverName;
    this.#usesHostname = usesHostname;
  }

  /** Returns what a connection to `host` sends. */
  start({ hostname }: Host): TlsStart {
    return { serverName: (this.#usesHostname && hostname) || this.#serverName, alpn: NO_ALPN };
  }
}
