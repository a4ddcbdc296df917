// The stats of the process itself, brought up to date before anybody reads them.

import { DnsStats } from '../stats/layouts/filesystem.js';
import { ServerStats } from '../stats/layouts/server.js';
import type { StatsStore } from '../stats/store.js';
import type { Scope } from '../stats/thread-stats.js';
import type { DnsCounters } from '../upstream/dns/resolver.js';
import type { ServerState } from './state.js';

export class ProcessStats {
  readonly #server: Scope;
  readonly #dns: Scope;
  readonly #seen: DnsCounters = {
    resolve_total: 0,
    not_found: 0,
    timeouts: 0,
    get_addr_failure: 0,
    pending_resolutions: 0,
  };

  constructor(store: StatsStore, concurrency: number, revision: string) {
    this.#server = store.scope(store.addScope('server.', ServerStats));
    this.#dns = store.scope(store.addScope('dns.cares.', DnsStats));
    const { at } = ServerStats;
    this.#server.set(at.concurrency, concurrency);
    this.#server.set(at.version, Number.parseInt(revision.slice(0, 6), 16) || 0);
    this.#server.set(at.live, 1);
    this.#server.set(at.hot_restart_epoch, 0);
    this.#server.set(at.hot_restart_generation, 1);
    // No certificate is loaded that could expire.
    this.#server.set(at.days_until_first_cert_expiring, MAX_UINT32);
    this.#server.set(at['compilation_settings.fips_mode'], 0);
  }

  /** `startedMs` and `nowMs` are monotonic. */
  update(state: ServerState, startedMs: number, nowMs: number, connections: number, dns: DnsCounters): void {
    const { at } = ServerStats;
    const { rss, heapUsed, heapTotal } = process.memoryUsage();
    const server = this.#server;
    server.set(at.uptime, Math.floor((nowMs - startedMs) / 1000));
    server.set(at.state, state);
    server.set(at.memory_allocated, heapUsed);
    server.set(at.memory_heap_size, heapTotal);
    server.set(at.memory_physical_size, rss);
    server.set(at.total_connections, connections);
    server.set(at.parent_connections, 0);
    this.#updateDns(dns);
  }

  countUnknownFields(count: number): void {
    this.#server.add(ServerStats.at.static_unknown_fields, count);
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
