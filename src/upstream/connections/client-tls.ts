// The TLS of connections to the hosts of a cluster, on one thread.

import { isIP } from 'node:net';
import type { Transport } from '../../io/transport/transport.js';
import { TlsFactoryStats } from '../../stats/layouts/tls.js';
import type { ThreadStats } from '../../stats/thread-stats.js';
import { TlsHandshake } from '../../tls/handshake.js';
import { HandshakeStats } from '../../tls/handshake-stats.js';
import { KeyLog } from '../../tls/key-log.js';
import type { ClusterTls } from '../cluster-config.js';
import type { Host } from '../hosts/host.js';
import type { ConnectOptions } from './connect-options.js';

export class ClientTls {
  readonly #stats: HandshakeStats;
  readonly #settings: ClusterTls;
  readonly #keyLog: KeyLog | undefined;

  constructor(settings: ClusterTls, stats: ThreadStats) {
    this.#settings = settings;
    this.#keyLog = settings.keyLog && new KeyLog(settings.keyLog);
    const { factoryScope, scope } = settings;
    this.#stats = new HandshakeStats(stats.scope(scope), stats, scope.prefix, {
      scope: stats.scope(factoryScope),
      notReady: TlsFactoryStats.at.upstream_context_secrets_not_ready,
    });
  }

  /** Begins the handshake of a connection to `host`, which may not be connected yet. Earlier submissions precede it. */
  begin(transport: Transport, id: number, host: Host, { alpn, replacesAlpn, traits }: ConnectOptions): TlsHandshake {
    const authority = traits?.authority;
    const { context, requestNames, verifiesServerName } = this.#settings;
    const serverName = this.#serverName(host, authority);
    const listed = requestNames?.areVerified === true ? authority : undefined;
    // Connections that need no name are a group of their own.
    const sessionGroup = listed === undefined ? '' : `name:${listed}`;
    transport.startTls(id, context, { serverName, alpn, sessionGroup, replacesAlpn });
    const names = { listed, serverName: verifiesServerName ? serverName : '' };
    return new TlsHandshake(this.#stats, names, this.#keyLog);
  }

  /** Returns the SNI of a connection to `host`; '' sends none. */
  #serverName({ hostname }: Host, authority: string | undefined): string {
    const { requestNames, serverName, usesHostname } = this.#settings;
    if (requestNames?.areSent === true && authority && isIP(authority) === 0) return authority;
    return (usesHostname && hostname) || serverName;
  }
}
