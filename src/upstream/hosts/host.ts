// One host of a cluster: the endpoint that discovery gives the primary, and the object by which a worker knows it.

import type { Metadata } from '../../config/generated/api.js';
import { type Address, addressText, decodeSockaddr } from '../../io/addresses/address.js';
import type { Scope } from '../../stats/thread-stats.js';
import type { HostMonitor } from '../outliers/host-monitor.js';
import type { HostDescription } from './host-set.js';

export interface Locality {
  readonly region: string;
  readonly zone: string;
  readonly subZone: string;
}

/** How an endpoint is checked, as far as that is its own: `health_check_config`. */
export interface EndpointCheck {
  /** Undefined: that of the endpoint itself. */
  readonly address: Address | undefined;
  /** Of that address; 0: its own one. */
  readonly port: number;
  /** The Host field of its checks; '' when it has none of its own. */
  readonly hostname: string;
  /** It is not checked, and passes for healthy. */
  readonly isDisabled: boolean;
}

/** What an endpoint is configured with besides its address. */
export interface EndpointTraits {
  /** load_balancing_weight, at least 1. */
  readonly weight: number;
  /** 0 is used first. */
  readonly priority: number;
  readonly locality: Locality;
  /** HealthFlag bits that discovery itself gives. */
  readonly healthFlags: number;
  /** It tries out what other hosts do not have yet: its responses are counted once more, as those of canaries. */
  readonly isCanary: boolean;
  readonly check?: EndpointCheck;
  /** For the dump of endpoints; workers do not know it. */
  readonly metadata?: Metadata;
}

/** A resolved endpoint. */
export interface ResolvedEndpoint extends EndpointTraits {
  readonly address: Address;
  /** What the host is known by when it is not its address: a logical host moves and stays the same host. */
  readonly key?: string;
  /** The name that was resolved, or the endpoint's `hostname`; '' when there is none. */
  readonly hostname: string;
}

/** What a host of a cluster is known by: its `key`, or its address. */
export function keyOf(endpoint: ResolvedEndpoint): string {
  return endpoint.key ?? addressText(endpoint.address);
}

/** A connection that ends when its host is found to be unhealthy. */
export interface FailingSocket {
  hostFailed(): void;
}

/** A host as one worker uses it. The object outlives host sets: what hangs on it, its pool, lives on with it. */
export class Host<Pools = unknown> {
  /** First of its HostWord words; the host's identity. */
  readonly block: number;
  hostname: string;
  zone: string;
  isCanary: boolean;
  /** This thread's counts of the host. */
  readonly stats: Scope;
  /** Notes how its tries end; undefined where the cluster has no outlier detection. */
  readonly monitor: HostMonitor | undefined;
  /** Its cluster's: here they are found without a look-up. */
  pools: Pools | undefined = undefined;
  /** Checks, or requests, have found it to be unhealthy. */
  isFailing = false;
  /** TCP connections to it that end when it fails; undefined where none do. */
  sockets: Set<FailingSocket> | undefined = undefined;
  /** The hosts of the cluster when the primary was told last that its checks fail. */
  toldFailedIn: unknown = undefined;
  #sockaddr: Uint8Array;
  #address: string | undefined;

  constructor(block: number, described: HostDescription, sockaddr: Uint8Array, stats: Scope, monitor?: HostMonitor) {
    this.block = block;
    this.hostname = described.hostname;
    this.zone = described.zone;
    this.isCanary = described.isCanary;
    this.stats = stats;
    this.monitor = monitor;
    this.#sockaddr = sockaddr;
  }

  /** Raw sockaddr that new connections go to. */
  get sockaddr(): Uint8Array {
    return this.#sockaddr;
  }

  /** `127.0.0.1:80`, as logs show it. */
  get address(): string {
    this.#address ??= addressText(decodeSockaddr(this.#sockaddr, 0, this.#sockaddr.length));
    return this.#address;
  }

  /** A logical host resolves to another address now. */
  moveTo(sockaddr: Uint8Array): void {
    this.#sockaddr = sockaddr;
    this.#address = undefined;
  }
}
