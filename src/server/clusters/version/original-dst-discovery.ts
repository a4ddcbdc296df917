// The hosts of a cluster of type ORIGINAL_DST: each address that a request or connection is directed to, as long as it is used.

import { shownName } from '../../../common/text/shown.js';
import { addressText } from '../../../io/addresses/address.js';
import { PacedRun } from '../../../io/time/paced-run.js';
import { Timer, type Timers } from '../../../io/time/timing-wheel.js';
import { getLogger } from '../../../log/logger.js';
import type { AssignmentPolicy } from '../../../upstream/assignment-policy.js';
import type { DiscoverySpec } from '../../../upstream/discovery-config.js';
import type { ResolvedEndpoint } from '../../../upstream/hosts/host.js';
import type { KnownHost } from '../../../upstream/hosts/host-directory.js';
import { NOWHERE } from '../../../upstream/hosts/locality.js';
import { destinationAddress } from '../../../upstream/requested-hosts/destination.js';
import type { ClusterResources } from './cluster-resources.js';
import { type DiscoveryContext, type DiscoveryListener, type HostDiscovery, PAUSE_MS_PER_HOST } from './discovery.js';

const logger = getLogger('upstream');

/** Envoy's %RESPONSE_CODE_DETAILS% where no host is available. */
const NO_HOST = 'no_healthy_upstream';

/** Clients choose the addresses: a cluster has at most this many hosts, and refuses others until some are unused. */
const MAX_HOSTS = 8192;

export class OriginalDstDiscovery implements HostDiscovery {
  readonly #name: string;
  readonly #cleanupMs: number;
  readonly #policy: AssignmentPolicy;
  readonly #resources: ClusterResources;
  readonly #listener: DiscoveryListener;
  readonly #timers: Timers;
  readonly #refuse: DiscoveryContext['refuseHost'];
  readonly #cleanup: Timer<OriginalDstDiscovery>;
  /** By key, with the number of requests that the host had at the last cleanup; -1: it was added since then. */
  readonly #hosts = new Map<string, { readonly endpoint: ResolvedEndpoint; requests: number }>();
  readonly #addition: PacedRun;
  /** Requested since the last addition. */
  #requested = new Set<string>();
  #isFull = false;

  constructor(
    { cleanupMs, name, policy }: DiscoverySpec,
    resources: ClusterResources,
    listener: DiscoveryListener,
    { now, refuseHost, timers }: Pick<DiscoveryContext, 'now' | 'refuseHost' | 'timers'>,
  ) {
    this.#name = name;
    this.#cleanupMs = cleanupMs;
    this.#policy = policy;
    this.#resources = resources;
    this.#listener = listener;
    this.#timers = timers;
    this.#refuse = refuseHost;
    this.#cleanup = new Timer<OriginalDstDiscovery>(this, removeUnused);
    const pauseMs = () => this.#hosts.size * PAUSE_MS_PER_HOST;
    this.#addition = new PacedRun({ now, timers, pauseMs, work: () => this.#addRequested() });
  }

  start(): void {
    this.#publish();
    this.#listener.onLooked();
    this.#timers.reschedule(this.#cleanup, this.#cleanupMs);
  }

  stop(): void {
    this.#addition.stop();
    this.#timers.cancel(this.#cleanup);
  }

  /** Hosts that are requested shortly after another are added together. */
  request(key: string): void {
    this.#requested.add(key);
    this.#addition.request();
  }

  #addRequested(): void {
    const requested = this.#requested;
    this.#requested = new Set();
    const added = [...requested].filter((key) => this.#add(key));
    if (added.length === 0 || this.#publish()) return;
    // There is no memory for them.
    for (const key of added) {
      this.#hosts.delete(key);
      this.#refuse(key, NO_HOST);
    }
  }

  /** Returns whether the host is new. */
  #add(key: string): boolean {
    // A request that has met its answer.
    if (this.#hosts.has(key)) return false;
    const address = destinationAddress(key);
    const isFull = this.#hosts.size >= MAX_HOSTS;
    if (isFull && !this.#isFull) {
      logger.warning(`cluster '${shownName(this.#name)}': it has ${MAX_HOSTS} hosts, and refuses further ones`);
    }
    this.#isFull = isFull;
    // Threads would not find a host with another text.
    if (address === undefined || isFull || addressText(address) !== key) {
      this.#refuse(key, NO_HOST);
      return false;
    }
    const traits = { weight: 1, priority: 0, locality: NOWHERE, healthFlags: 0, isCanary: false };
    // Envoy's hostname of such hosts.
    this.#hosts.set(key, { endpoint: { address, hostname: `${this.#name}${key}`, ...traits }, requests: -1 });
    return true;
  }

  /** Returns whether the hosts have changed. */
  #publish(): boolean {
    const endpoints = Array.from(this.#hosts.values(), ({ endpoint }) => endpoint);
    return this.#listener.onHosts({ endpoints, policy: this.#policy });
  }

  /** Removes hosts that have no connection and had no request since the last time. */
  removeUnused(): void {
    let isChanged = false;
    for (const host of this.#resources.directory.hosts) isChanged = this.#isRemoved(host) || isChanged;
    if (isChanged) this.#publish();
    this.#timers.reschedule(this.#cleanup, this.#cleanupMs);
  }

  #isRemoved(host: KnownHost): boolean {
    const known = this.#hosts.get(host.key);
    if (known === undefined) return false;
    const { active, requests } = this.#resources.usageOf(host);
    const isUsed = active > 0 || requests !== known.requests;
    known.requests = requests;
    if (!isUsed) this.#hosts.delete(host.key);
    return !isUsed;
  }
}

function removeUnused(discovery: OriginalDstDiscovery): void {
  discovery.removeUnused();
}
