// What the admin interface may see and do of the server: all that its handlers lean on.

import type { Node } from '../config/generated/api.js';
import type { Address } from '../io/address.js';
import type { StatsStore } from '../stats/store.js';
import type { ClusterSpec } from '../upstream/cluster-config.js';
import type { KnownHost } from '../upstream/host-directory.js';

/** envoy.admin.v3.ServerInfo.State */
export type ServerStateName = 'LIVE' | 'DRAINING' | 'PRE_INITIALIZING' | 'INITIALIZING';

/** An active listener. */
export interface ListenerView {
  readonly name: string;
  /** Where it really listens, its main address first: port 0 has become a port. */
  readonly addresses: readonly Address[];
}

/** A host with what the primary thinks of it now. */
export interface HostView {
  readonly host: KnownHost;
  /** HealthFlag bits: those of discovery and those of the host's health word. */
  readonly healthFlags: number;
}

/** An active cluster; one that is still warming is none. */
export interface ClusterView {
  readonly spec: ClusterSpec;
  /** It came from a management server, not from the bootstrap. */
  readonly isAddedViaApi: boolean;
  /** '' when it has none. */
  readonly edsServiceName: string;
  /** In the order of discovery. */
  readonly hosts: Iterable<HostView>;
}

/** The server as its admin interface knows it. Methods are called on the primary, between two turns of its loop. */
export interface AdminServices {
  readonly stats: StatsStore;
  /** stats_flush_on_admin: an answer about stats flushes them first. */
  readonly flushesStatsOnAdmin: boolean;
  /** `{revision}/{version}/{status}/{build type}` */
  readonly version: string;
  /** Opaque; 'disabled' without hot restarts. */
  readonly hotRestartVersion: string;
  /** The node with what the command line overrides, in proto JSON form. */
  readonly node: Node;
  /** command_line_options of /server_info, in proto JSON form. */
  readonly commandLineOptions: { readonly [name: string]: unknown };

  state(): ServerStateName;
  /** Seconds since this process started, and since the first epoch did. */
  uptimes(): { readonly currentEpoch: number; readonly allEpochs: number };
  /** May be read piece by piece: a listener or cluster that goes away in between is left out. */
  listeners(): Iterable<ListenerView>;
  /** See listeners(). */
  clusters(): Iterable<ClusterView>;
  /** Merges histograms now: a new interval begins. */
  flushStats(): void;
  /** Opens log files anew, as SIGUSR1 does. */
  reopenLogs(): void;
  /** Begins a clean exit and returns; AdminServer.close() lets answers in flight go out. */
  quit(): void;
}
