// Notifies the primary's gRPC channels of changes of their clusters' hosts.

import { durationMs } from '../../common/time/duration.js';
import { http2Options } from '../../config/fields/http-options.js';
import type { CallLimits, ClusterHosts, Http2Keepalive, OnHosts } from '../../grpc/cluster-hosts.js';
import type { Address } from '../../io/addresses/address.js';
import type { Keepalive } from '../../io/shim.js';
import { forEachGuarded } from '../../log/internal-errors.js';
import { UNHEALTHY_FLAGS } from '../../upstream/hosts/health-flags.js';
import type { PrimaryCluster } from './version/primary-cluster.js';

export class HostWatch implements ClusterHosts {
  readonly #clusters: ReadonlyMap<string, PrimaryCluster>;
  readonly #keepAlive: (fd: number, settings: Keepalive) => void;
  readonly #watchers = new Map<string, Set<OnHosts>>();

  /** `clusters`: the live map of the server's clusters; `keepAlive` sets TCP keepalive of a socket. */
  constructor(clusters: ReadonlyMap<string, PrimaryCluster>, keepAlive: (fd: number, settings: Keepalive) => void) {
    this.#clusters = clusters;
    this.#keepAlive = keepAlive;
  }

  watchHosts(name: string, onHosts: OnHosts): () => void {
    const watchers = this.#watchers.get(name) ?? new Set();
    this.#watchers.set(name, watchers.add(onHosts));
    const cluster = this.#clusters.get(name);
    // Before the cluster has looked for its hosts there is nothing to report.
    if (cluster?.isInitialized)
      setImmediate(() => watchers.has(onHosts) && onHosts(addressesOf(cluster), keepaliveOf(cluster)));
    return () => {
      watchers.delete(onHosts);
      if (watchers.size === 0 && this.#watchers.get(name) === watchers) this.#watchers.delete(name);
    };
  }

  connectTimeoutMs(name: string): number {
    return this.#clusters.get(name)?.spec.connectTimeoutMs ?? DEFAULT_CONNECT_MS;
  }

  callLimits(name: string): CallLimits | undefined {
    return this.#clusters.get(name)?.grpcLimits;
  }

  connected(name: string, fd: number): void {
    const settings = this.#clusters.get(name)?.spec.keepalive;
    if (settings !== undefined) this.#keepAlive(fd, settings);
  }

  /** Called when a cluster's hosts or their health have changed. */
  clusterChanged(cluster: PrimaryCluster): void {
    const watchers = this.#watchers.get(cluster.spec.name);
    if (watchers === undefined || watchers.size === 0) return;
    const addresses = addressesOf(cluster);
    const keepalive = keepaliveOf(cluster);
    forEachGuarded(watchers, CALLBACK_FAILED, (onHosts) => onHosts(addresses, keepalive));
  }

  /** Called when the cluster was removed: its channels have no host left to call. */
  clusterRemoved(name: string): void {
    forEachGuarded(this.#watchers.get(name) ?? [], CALLBACK_FAILED, (onHosts) => onHosts([], undefined));
  }
}

const DEFAULT_CONNECT_MS = 5000;

const CALLBACK_FAILED = 'internal error: a gRPC channel failed to take the hosts of its cluster';

/** Returns the addresses of the healthy hosts, or of all hosts if none is healthy. */
function addressesOf(cluster: PrimaryCluster): Address[] {
  // Channels have no TLS: what the configuration wants encrypted is not sent at all.
  if (cluster.spec.tls !== undefined) return [];
  const all = [...cluster.hosts];
  const healthy = all.filter((host) => (host.healthFlags & UNHEALTHY_FLAGS) === 0);
  return (healthy.length > 0 ? healthy : all).map((host) => host.endpoint.address);
}

function keepaliveOf({ config }: PrimaryCluster): Http2Keepalive | undefined {
  const { interval, timeout } = http2Options(config)?.connection_keepalive ?? {};
  if (interval === undefined || timeout === undefined) return undefined;
  return { intervalMs: durationMs(interval), timeoutMs: durationMs(timeout) };
}
