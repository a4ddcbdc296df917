// The TLS of connections to the hosts of a cluster, on one thread.

import type { ThreadStats } from '../../stats/thread-stats.js';
import { HandshakeStats } from '../../tls/handshake-stats.js';
import type { ClusterTls } from '../cluster-config.js';
import type { Host } from '../hosts/host.js';

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

  /** Returns the SNI of a connection to `host`; '' sends none. */
  serverNameOf({ hostname }: Host): string {
    return (this.#usesHostname && hostname) || this.#serverName;
  }
}
