// The stats of the process itself, updated before each read.

import { ownHeapBytes, residentBytes } from '../../common/process/thread-memory.js';
import type { LoadCounts } from '../../config/load/load.js';
import { DnsStats } from '../../stats/layouts/filesystem.js';
import { RuntimeStats } from '../../stats/layouts/runtime.js';
import { ServerStats } from '../../stats/layouts/server.js';
import type { StatsStore } from '../../stats/store.js';
import type { Scope, ScopeRef } from '../../stats/thread-stats.js';
import type { FirstExpiries } from '../../tls/tls-contexts.js';
import type { DnsCounters } from '../../upstream/dns/resolver.js';
import type { ServerState } from '../state.js';
import { type ProcessEpoch, uptimes } from './process-epoch.js';

/** What a process holds. The parent's is added to that of its child. */
export interface ProcessHoldings {
  readonly memoryAllocated: number;
  readonly connections: number;
}

export const NO_HOLDINGS: ProcessHoldings = { memoryAllocated: 0, connections: 0 };

export class ProcessStats {
  readonly #store: StatsStore;
  readonly #epoch: ProcessEpoch;
  readonly #serverRef: ScopeRef;
  readonly #server: Scope;
  readonly #dns: Scope;
  readonly #runtime: Scope;
  #deprecatedSeen = 0;
  readonly #seen: DnsCounters = {
    resolve_total: 0,
    not_found: 0,
    timeouts: 0,
    get_addr_failure: 0,
    pending_resolutions: 0,
  };

  /** `version`: the value of server.version. */
  constructor(store: StatsStore, concurrency: number, version: number, epoch: ProcessEpoch) {
    this.#store = store;
    this.#epoch = epoch;
    this.#serverRef = store.addScope('server.', ServerStats);
    this.#server = store.scope(this.#serverRef);
    this.#dns = store.scope(store.addScope('dns.cares.', DnsStats));
    this.#runtime = store.scope(store.addScope('runtime.', RuntimeStats));
    const { at } = ServerStats;
    this.#server.set(at.concurrency, concurrency);
    this.#server.set(at.version, version);
    this.#server.set(at.live, 1);
    this.#server.set(at.hot_restart_epoch, epoch.number);
    this.#server.set(at.hot_restart_generation, epoch.generation);
    this.#server.set(at.days_until_first_cert_expiring, MAX_UINT32);
    this.#server.set(at['compilation_settings.fips_mode'], 0);
  }

  /** `parent`: what the parent process still holds. `first`: of TLS. */
  update(
    state: ServerState,
    connections: number,
    parent: ProcessHoldings,
    dns: DnsCounters,
    first: FirstExpiries,
  ): void {
    const { at } = ServerStats;
    const { allocated, reserved } = ownHeapBytes();
    const server = this.#server;
    server.set(at.uptime, uptimes(this.#epoch).allEpochs);
    server.set(at.state, state);
    // Workers add their own share.
    server.set(at.memory_allocated, allocated + parent.memoryAllocated);
    server.set(at.memory_heap_size, reserved);
    server.set(at.memory_physical_size, residentBytes());
    server.set(at.total_connections, connections + parent.connections);
    server.set(at.parent_connections, parent.connections);
    server.set(at.stats_recent_lookups, this.#store.recentLookups.total);
    const now = Date.now();
    const daysLeft = Math.max(0, Math.floor((first.certificateMs - now) / DAY_MS));
    // As in Envoy, 0 without any.
    const secondsLeft = Number.isFinite(first.ocspMs) ? Math.max(0, Math.floor((first.ocspMs - now) / 1000)) : 0;
    server.set(at.seconds_until_first_ocsp_response_expiring, secondsLeft);
    server.set(at.days_until_first_cert_expiring, Math.min(daysLeft, MAX_UINT32));
    this.#updateDns(dns);
  }

  /** Returns what all threads of this process have allocated, as they last reported. */
  memoryAllocated(parent: ProcessHoldings): number {
    return this.#store.valueOf(this.#serverRef, ServerStats.at.memory_allocated) - parent.memoryAllocated;
  }

  countConfiguration(counts: LoadCounts): void {
    this.#server.add(ServerStats.at.static_unknown_fields, counts.unknownFields);
    this.#server.add(ServerStats.at.wip_protos, counts.unfinishedUses);
    this.#server.add(ServerStats.at.optional_filters_left_out, counts.leftOutFilters);
    const { at } = RuntimeStats;
    this.#runtime.add(at.deprecated_feature_use, counts.deprecatedUses);
    this.#deprecatedSeen = counts.deprecatedUses;
    this.#runtime.set(at.deprecated_feature_seen_since_process_start, this.#deprecatedSeen);
  }

  /** Counts resources that arrived after the start. */
  countDynamic({ unknownFields, unfinishedUses, deprecatedUses, leftOutFilters }: LoadCounts): void {
    this.#server.add(ServerStats.at.optional_filters_left_out, leftOutFilters);
    this.#server.add(ServerStats.at.dynamic_unknown_fields, unknownFields);
    this.#server.add(ServerStats.at.wip_protos, unfinishedUses);
    const { at } = RuntimeStats;
    this.#runtime.add(at.deprecated_feature_use, deprecatedUses);
    this.#deprecatedSeen += deprecatedUses;
    this.#runtime.set(at.deprecated_feature_seen_since_process_start, this.#deprecatedSeen);
  }

  /** server.live: whether health checks pass. */
  setLive(isLive: boolean): void {
    this.#server.set(ServerStats.at.live, isLive ? 1 : 0);
  }

  countDroppedFlush(): void {
    this.#server.increment(ServerStats.at.dropped_stat_flushes);
  }

  recordInitialization(milliseconds: number): void {
    this.#server.record(ServerStats.at.initialization_time_ms, milliseconds);
  }

  #updateDns(counters: DnsCounters): void {
    const { at } = DnsStats;
    const seen = this.#seen;
    this.#dns.add(at.resolve_total, counters.resolve_total - seen.resolve_total);
    this.#dns.add(at.not_found, counters.not_found - seen.not_found);
    this.#dns.add(at.timeouts, counters.timeouts - seen.timeouts);
    this.#dns.add(at.get_addr_failure, counters.get_addr_failure - seen.get_addr_failure);
    this.#dns.set(at.pending_resolutions, counters.pending_resolutions);
    Object.assign(seen, counters);
  }
}

const MAX_UINT32 = 2 ** 32 - 1;
const DAY_MS = 24 * 3_600_000;
