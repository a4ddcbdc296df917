// One host of a cluster: the endpoint that discovery yields on the primary, and a worker's object for it.

import type { Metadata } from '../../config/generated/api.js';
import { type Address, addressText, decodeSockaddr, isInternal } from '../../io/addresses/address.js';
import type { Scope } from '../../stats/thread-stats.js';
import type { HostMonitor } from '../outliers/host-monitor.js';
import type { HostDescription } from './host-set.js';
import type { Locality } from './locality.js';

/** The endpoint's own health check settings: `health_check_config`. */
export interface EndpointCheck {
  /** Undefined: the endpoint's address. */
  readonly address: Address | undefined;
  /** Port to check; 0: the address's port. */
  readonly port: number;
  /** Host field of its checks; '': that of the cluster's checks. */
  readonly hostname: string;
  /** Checks are disabled, and the host counts as healthy. */
  readonly isDisabled: boolean;
}

/** Configuration of an endpoint besides its address. */
export interface EndpointTraits {
  /** load_balancing_weight, at least 1. */
  readonly weight: number;
  /** 0 is the highest. */
  readonly priority: number;
  readonly locality: Locality;
  /** HealthFlag bits from discovery. */
  readonly healthFlags: number;
  /** Its responses also count as those of a canary. */
  readonly isCanary: boolean;
  readonly check?: EndpointCheck;
  /** For logs, headers and the dump of endpoints. */
  readonly metadata?: Metadata;
  /** Metadata of the host's group of endpoints, for expressions. */
  readonly localityMetadata?: Metadata;
  /** Number of its transport socket: see TransportMatches. Absent: OWN_TRANSPORT. */
  readonly transport?: number;
  /** load_balancing_weight of its locality, which must be named. */
  readonly localityWeight?: number;
}

/** Returns the traits of an endpoint alone, without what else its object has. */
export function traitsOf(endpoint: EndpointTraits): EndpointTraits {
  const { check, healthFlags, isCanary, locality, localityMetadata, localityWeight } = endpoint;
  const { metadata, priority, transport, weight } = endpoint;
  return {
    weight,
    priority,
    locality,
    healthFlags,
    isCanary,
    check,
    metadata,
    localityMetadata,
    localityWeight,
    transport,
  };
}

/** A resolved endpoint. */
export interface ResolvedEndpoint extends EndpointTraits {
  readonly address: Address;
  /** Other addresses of the same host, which are tried when connects to the first one fail or hang; undefined: it has none. */
  readonly additional?: readonly Address[] | undefined;
  /** Identifies the host if it is not its address: a logical host stays the same host when its address changes. */
  readonly key?: string;
  /** Names the host in stats if its address does not: other hosts of the cluster may have the same one. */
  readonly statName?: string;
  /** The resolved name, or the endpoint's `hostname`; '' when there is none. */
  readonly hostname: string;
}

/** Returns what identifies a host of a cluster: its `key`, or its address. */
export function keyOf(endpoint: ResolvedEndpoint): string {
  return endpoint.key ?? addressText(endpoint.address);
}

/** Instead of a block: no other thread knows the host. */
export const NO_BLOCK = -1;

/** A connection that closes when its host becomes unhealthy. */
export interface FailingSocket {
  hostFailed(): void;
}

/** A worker's object for a host. It outlives host sets, so its pools do too. */
export class Host<Pools = unknown> {
  /** Index of its first HostWord word, which identifies the host, or NO_BLOCK. */
  readonly block: number;
  hostname: string;
  locality: Locality;
  localityMetadata: Metadata | undefined;
  isCanary: boolean;
  metadata: Metadata | undefined;
  transport: number;
  /** Other addresses of it, as text; undefined: it has none. */
  additional: readonly string[] | undefined;
  /** This thread's stats of the host. */
  readonly stats: Scope;
  /** Records outcomes of its tries; undefined without outlier detection. */
  readonly monitor: HostMonitor | undefined;
  /** The cluster's pools, stored here to save a look-up. */
  pools: Pools | undefined = undefined;
  /** Health checks or outlier detection have marked it as failed. */
  isFailing = false;
  /** TCP connections to it that close when it fails; undefined: none. */
  sockets: Set<FailingSocket> | undefined = undefined;
  /** The cluster snapshot in which a failed check was last reported to the primary. */
  failureReportedIn: unknown = undefined;
  #sockaddr: Uint8Array;
  #address: string | undefined;

  constructor(block: number, described: HostDescription, sockaddr: Uint8Array, stats: Scope, monitor?: HostMonitor) {
    this.block = block;
    this.hostname = described.hostname;
    this.locality = described.locality;
    this.localityMetadata = described.localityMetadata;
    this.isCanary = described.isCanary;
    this.metadata = described.metadata;
    this.transport = described.transport;
    this.additional = described.additional;
    this.stats = stats;
    this.monitor = monitor;
    this.#sockaddr = sockaddr;
  }

  /** Raw sockaddr of new connections. */
  get sockaddr(): Uint8Array {
    return this.#sockaddr;
  }

  /** Its address is that of a listener of this process, which has no socket. */
  get isInternal(): boolean {
    return isInternal(this.#sockaddr);
  }

  /** `127.0.0.1:80`, for logs. */
  get address(): string {
    this.#address ??= addressText(decodeSockaddr(this.#sockaddr, 0, this.#sockaddr.length));
    return this.#address;
  }

  /** Called when a logical host resolves to another address. */
  moveTo(sockaddr: Uint8Array): void {
    this.#sockaddr = sockaddr;
    this.#address = undefined;
  }
}
