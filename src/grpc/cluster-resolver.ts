// A grpc-js name resolver for clusters: the target `baton-cluster:name` resolves to the current hosts of a cluster.

import { type ChannelOptions, experimental, status } from '@grpc/grpc-js';
import { MAX_TIMER_MS } from '../common/time/max-timer.js';
import { type Address, AddressKind } from '../io/addresses/address.js';
import { LIMITS_OPTION } from './call-breaker.js';
import type { ClusterHosts, Http2Keepalive } from './cluster-hosts.js';

const SCHEME = 'baton-cluster';

type ResolverClass = Parameters<typeof experimental.registerResolver>[1];
type Resolver = InstanceType<ResolverClass>;
type Target = ConstructorParameters<ResolverClass>[0];
type Listener = ConstructorParameters<ResolverClass>[1];

let hosts: ClusterHosts | undefined;

/** Returns the channel target of a cluster. `source` must be the same object in the whole process. */
export function clusterTarget(source: ClusterHosts, cluster: string): string {
  if (hosts === undefined) experimental.registerResolver(SCHEME, ClusterResolver);
  hosts = source;
  return `${SCHEME}:${encodeURIComponent(cluster)}`;
}

class ClusterResolver implements Resolver {
  readonly #cluster: string;
  readonly #listener: Listener;
  #stop: (() => void) | undefined;

  constructor(target: Target, listener: Listener) {
    this.#cluster = decodeURIComponent(target.path);
    this.#listener = listener;
  }

  updateResolution(): void {
    this.#stop ??= hosts!.watchHosts(this.#cluster, (addresses, keepalive) => this.#update(addresses, keepalive));
  }

  destroy(): void {
    this.#stop?.();
    this.#stop = undefined;
  }

  #options(keepalive: Http2Keepalive | undefined): ChannelOptions {
    const limits = hosts!.callLimits(this.#cluster);
    return { ...keepaliveOptions(keepalive), ...(limits && { [LIMITS_OPTION]: limits }) };
  }

  static getDefaultAuthority(target: Target): string {
    return decodeURIComponent(target.path);
  }

  #update(addresses: readonly Address[], keepalive: Http2Keepalive | undefined): void {
    const endpoints = addresses.map((address) => ({ addresses: [subchannelAddress(address)] }));
    this.#listener(experimental.statusOrFromValue(endpoints), this.#options(keepalive), null, '');
    if (endpoints.length > 0) return;
    // Both updates are needed: an error alone keeps connections in use; an empty list alone makes calls wait for hosts.
    const details = `cluster '${this.#cluster}' has no host`;
    this.#listener(experimental.statusOrFromError({ code: status.UNAVAILABLE, details }), {}, null, '');
  }
}

/** Returns the channel options for connections to new hosts. */
function keepaliveOptions(keepalive: Http2Keepalive | undefined): ChannelOptions {
  if (keepalive === undefined) return {};
  return {
    'grpc.keepalive_time_ms': Math.min(MAX_TIMER_MS, keepalive.intervalMs),
    'grpc.keepalive_timeout_ms': Math.min(MAX_TIMER_MS, keepalive.timeoutMs),
    'grpc.keepalive_permit_without_calls': 1,
  };
}

function subchannelAddress({ kind, ip, port, path }: Address): { host: string; port: number } | { path: string } {
  if (kind !== AddressKind.Unix) return { host: ip, port };
  return { path: path.startsWith('@') ? `\0${path.slice(1)}` : path };
}
