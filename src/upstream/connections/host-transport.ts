// What connections to hosts begin with, by the transport socket of the cluster: a header of the PROXY protocol or the CONNECT of a proxy,
// then TLS; and what they bring to internal listeners.

import type { ThreadStats } from '../../stats/thread-stats.js';
import type { ClusterTransport, ProxyHeaderSpec } from '../cluster-config.js';
import type { Host } from '../hosts/host.js';
import { ClientTls } from './client-tls.js';
import { type ConnectProxy, connectProxy } from './connect-proxy.js';
import { Passthrough } from './passthrough.js';
import { type ClientEnds, localProxyHeader, proxyHeader } from './proxy-header.js';

export class HostTransport {
  /** Undefined: the connections are plain. */
  readonly tls: ClientTls | undefined;
  /** Undefined: connections to internal listeners bring nothing. */
  readonly passthrough: Passthrough | undefined;
  readonly #header: ProxyHeaderSpec | undefined;
  readonly #tlvs: Uint8Array;
  readonly #proxies: ClusterTransport['proxies'];

  constructor({ passthrough, proxies, proxyHeader: header, tls }: ClusterTransport, stats: ThreadStats) {
    this.tls = tls && new ClientTls(tls, stats);
    this.passthrough = passthrough && new Passthrough(passthrough, stats);
    this.#header = header;
    this.#proxies = proxies;
    this.#tlvs = Buffer.from(header?.tlvs ?? '', 'base64');
  }

  /** Returns the proxy through which connections to the host go; undefined: none. */
  proxyOf(host: Host): ConnectProxy | undefined {
    if (this.#proxies === undefined || host.isInternal) return undefined;
    return connectProxy(host, this.#proxies.defaultAddress, this.tls !== undefined);
  }

  /** The first bytes name the client, so that each client has connections of its own. */
  get namesClient(): boolean {
    return this.#header !== undefined;
  }

  /**
   * Returns the first bytes of a connection, with namesClient. `client`: whose bytes the connection carries; undefined: it has no client.
   * `own`: the ends of the connection itself, the host's first.
   */
  opening(client: ClientEnds | undefined, own: () => ClientEnds): Uint8Array {
    const { version } = this.#header!;
    return client === undefined ? localProxyHeader(version, own) : proxyHeader(version, client, this.#tlvs);
  }
}
