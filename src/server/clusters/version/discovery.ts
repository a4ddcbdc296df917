// The interfaces of the sources of a cluster version's hosts.

import type { Random } from '../../../common/random.js';
import type { Timers } from '../../../io/time/timing-wheel.js';
import type { AssignmentPolicy } from '../../../upstream/assignment-policy.js';
import type { ClusterSpec } from '../../../upstream/cluster-config.js';
import type { DnsResolver } from '../../../upstream/dns/resolver.js';
import type { ResolvedEndpoint } from '../../../upstream/hosts/host.js';
import type { Shards } from '../../../upstream/hosts/shards.js';
import type { DynamicState } from '../../../xds/dynamic-state.js';
import type { HeldDnsCache } from '../dns-caches.js';
import type { CheckThread } from '../health-checks/check-thread.js';
import type { EndpointSubscriptions } from './endpoint-subscription.js';

export interface HostDiscovery {
  /** Starts to look for hosts. */
  start(): void;
  /** Called when its version replaces another one: it may take over what `former` has found. */
  inheritFrom?(former: HostDiscovery): void;
  stop(): void;
  /** Called when a thread has a request for a host that the cluster does not have. Absent: requests name no hosts. */
  request?(key: string): void;
  /** Called with events after which there may be other hosts. Absent: they cause nothing. */
  note?(events: HostEvents): void;
  /** State of the assignment, for endpoints from EDS. */
  readonly assignment?: DynamicState | undefined;
}

/** Events since the last call. */
export interface HostEvents {
  readonly redirections: number;
  readonly failures: number;
  /** Hosts that have become unhealthy or degraded. */
  readonly degradedHosts: number;
}

/** The hosts found by discovery. */
export interface FoundHosts {
  /** In the order of the configuration. */
  readonly endpoints: readonly ResolvedEndpoint[];
  /** Of their assignment. */
  readonly policy: AssignmentPolicy;
  /** Of a Redis cluster with slots, by keys of the endpoints. */
  readonly shards?: Shards<string> | undefined;
}

/** The receiver of what a discovery finds. */
export interface DiscoveryListener {
  /** Called with the hosts. Returns whether they differ from the previous ones. */
  onHosts(hosts: FoundHosts): boolean;
  /** Called when memory is too short for these hosts: the previous ones stay. */
  onUnusable(endpoints: readonly ResolvedEndpoint[], error: unknown): void;
  /** Called when the first answer has arrived, with or without hosts, or when none is awaited; possibly more than once. */
  onLooked(): void;
}

/**
 * Pause between two publications of hosts that requests name, for each host: all threads get the whole list, and clients could occupy the
 * primary with names.
 */
export const PAUSE_MS_PER_HOST = 0.05;

export interface DiscoveryContext {
  readonly cluster: ClusterSpec;
  /** The thread with which nodes of Redis clusters are asked. */
  readonly checks: Pick<CheckThread, 'ask'>;
  readonly resolver: DnsResolver;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly timers: Timers;
  readonly random: Random;
  /** The cache of a dynamic forward proxy. */
  readonly dnsCache?: HeldDnsCache | undefined;
  readonly subscriptions: EndpointSubscriptions;
  /** Called when the cluster does not get the requested host with this key. */
  refuseHost(key: string, details: string): void;
}
