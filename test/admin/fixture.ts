// A server without traffic behind an admin interface: real stats, real host lists, and a note of what was asked of it.

import type { Test } from 'tap';
import { AdminServer, type AdminServerOptions } from '../../src/admin/admin-server.js';
import type { AdminServices, ClusterView, HostView, ListenerView } from '../../src/admin/admin-services.js';
import type { Cluster } from '../../src/config/generated/api.js';
import { parseAddress } from '../../src/io/address.js';
import { HostStats } from '../../src/stats/layouts/cluster.js';
import { StatsStore } from '../../src/stats/store.js';
import type { ScopeRef } from '../../src/stats/thread-stats.js';
import { clusterDiscovery, clusterSpec, staticEndpoint } from '../../src/upstream/cluster-config.js';
import { HostDirectory } from '../../src/upstream/host-directory.js';

export const LOOPBACK = parseAddress('127.0.0.1:0')!;

export class FakeServices implements AdminServices {
  readonly stats = new StatsStore({ workers: 1 });
  flushesStatsOnAdmin = false;
  version = '0123456789abcdef/1.2.3/Clean/RELEASE';
  hotRestartVersion = 'disabled';
  node: AdminServices['node'] = { id: 'node-1', cluster: 'front', locality: { zone: 'z1' } };
  commandLineOptions: AdminServices['commandLineOptions'] = {};
  currentState: ReturnType<AdminServices['state']> = 'LIVE';
  listenerViews: ListenerView[] = [];
  readonly clusterViews: FakeCluster[] = [];
  /** Calls that change something, in their order. */
  readonly calls: string[] = [];

  state() {
    return this.currentState;
  }
  uptimes() {
    return { currentEpoch: 6.9, allEpochs: 3600.2 };
  }
  listeners() {
    return this.listenerViews;
  }
  clusters(): Iterable<ClusterView> {
    return this.clusterViews;
  }
  flushStats() {
    this.calls.push('flushStats');
    this.stats.flush();
  }
  reopenLogs() {
    this.calls.push('reopenLogs');
  }
  quit() {
    this.calls.push('quit');
  }

  /** Adds a cluster as its configuration describes it. */
  addCluster(config: Cluster): FakeCluster {
    const cluster = new FakeCluster(this.stats, config);
    this.clusterViews.push(cluster);
    return cluster;
  }
}

export class FakeCluster implements ClusterView {
  readonly spec;
  readonly directory: HostDirectory;
  isAddedViaApi = false;
  edsServiceName = '';
  /** Flags that health checking would have set, by address. */
  readonly flags = new Map<string, number>();
  readonly #scopes = new Map<number, ScopeRef>();
  readonly #stats: StatsStore;

  constructor(stats: StatsStore, config: Cluster) {
    this.#stats = stats;
    this.spec = clusterSpec(config);
    this.directory = new HostDirectory({
      allocate: (address) => {
        const scope = stats.addScope(`cluster.${config.name}.host.${address}.`, HostStats, { hidden: true });
        this.#scopes.set(scope.base, scope);
        return { block: scope.base, statsChunk: scope.chunk, statsBase: scope.base };
      },
      retire: ({ block }) => stats.removeScope(this.#scopes.get(block)!),
    });
    this.directory.update(clusterDiscovery(config).endpoints.flatMap((endpoint) => staticEndpoint(endpoint) ?? []));
  }

  get hosts(): HostView[] {
    return Array.from(this.directory.hosts, (host) => ({
      host,
      healthFlags: host.endpoint.healthFlags | (this.flags.get(host.address) ?? 0),
    }));
  }

  /** The counts of the host at this address. */
  statsOf(address: string) {
    for (const host of this.directory.hosts) {
      if (host.address === address) return this.#stats.scope(this.#scopes.get(host.block)!);
    }
    throw new Error(`no host ${address}`);
  }
}

export interface Fixture {
  readonly services: FakeServices;
  readonly server: AdminServer;
  readonly port: number;
}

/** An admin interface on a port of its own, closed when the test ends. */
export async function startAdmin(t: Test, options: AdminServerOptions = {}): Promise<Fixture> {
  const services = new FakeServices();
  const server = new AdminServer(services, options);
  t.teardown(() => server.close(0));
  const { port } = await server.listen({ address: LOOPBACK });
  return { services, server, port };
}
