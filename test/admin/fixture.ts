// An admin interface of a server without traffic: real stats, real host lists, and a record of the requested actions.

import type { Test } from 'tap';
import type { AdminHandler, Pieces } from '../../src/admin/admin-handler.js';
import type {
  AdminServices,
  ClusterView,
  DrainStatusView,
  ListenerView,
  TlsContextView,
  UnreadyView,
} from '../../src/admin/admin-services.js';
import type { ConfigDump } from '../../src/admin/config-dump/config-dump.js';
import type { ReloadRequest, ReloadView } from '../../src/admin/config-reload/reload-view.js';
import { HANDLERS } from '../../src/admin/handlers/index.js';
import { AdminServer, type AdminServerOptions } from '../../src/admin/http/admin-server.js';
import { RenderPool } from '../../src/admin/render/render-pool.js';
import type { ContentionSums } from '../../src/common/process/contention.js';
import { threadMemory } from '../../src/common/process/thread-memory.js';
import type { Cluster, LayeredRuntime as LayeredRuntimeConfig } from '../../src/config/generated/api.js';
import { EXTENSIONS } from '../../src/extensions/index.js';
import { ExtensionRegistry } from '../../src/extensions/registry.js';
import { parseAddress } from '../../src/io/addresses/address.js';
import type { LevelRules } from '../../src/log/level-rules.js';
import { setLevelRules } from '../../src/log/logger.js';
import type { AdminEntries } from '../../src/runtime/admin-layer.js';
import { LayeredRuntime } from '../../src/runtime/layered-runtime.js';
import { HostStats } from '../../src/stats/layouts/cluster.js';
import { RuntimeStats } from '../../src/stats/layouts/runtime.js';
import { StatsStore } from '../../src/stats/store.js';
import { clusterSpec } from '../../src/upstream/cluster-config.js';
import { discoverySpec, staticEndpoint } from '../../src/upstream/discovery-config.js';
import { HostDirectory, type KnownHost } from '../../src/upstream/hosts/host-directory.js';

export const LOOPBACK = parseAddress('127.0.0.1:0')!;

export class FakeServices implements AdminServices {
  readonly stats = new StatsStore({ workers: 1 });
  readonly renders: RenderPool;
  flushesStatsOnAdmin = false;
  version = '0123456789abcdef/1.2.3/Clean/RELEASE';
  hotRestartVersion = 'disabled';
  node: AdminServices['node'] = {
    id: 'node-1',
    cluster: 'front',
    locality: { zone: 'z1' },
    user_agent_name: 'baton',
    extensions: [{ name: 'envoy.filters.http.router', category: 'envoy.filters.http' }],
  };
  commandLineOptions: AdminServices['commandLineOptions'] = {};
  currentState: ReturnType<AdminServices['state']> = 'LIVE';
  listenerViews: ListenerView[] = [];
  contentionSums: ContentionSums | undefined;
  dumps: ConfigDump[] = [];
  tlsContextViews: TlsContextView[] = [];
  unreadyViews: UnreadyView[] = [];
  readonly clusterViews: FakeCluster[] = [];
  /** Profilers that are not running. */
  readonly profilers: AdminServices['profilers'] = {
    path: '/dev/null',
    start: async () => ({ isStarted: true }),
    stop: async () => new Uint8Array(),
    heap: async () => (async function* () {})(),
    peakHeap: async () => undefined,
  };
  runtime = fakeRuntime(undefined);
  /** Calls that change something, in order. */
  readonly calls: string[] = [];

  constructor(renders = new RenderPool()) {
    this.renders = renders;
  }

  state() {
    return this.currentState;
  }
  isHotRestartInitializing() {
    return false;
  }
  uptimes() {
    return { currentEpoch: 6.9, allEpochs: 3600.2 };
  }
  listeners() {
    return this.listenerViews;
  }
  clustersVersion(): string {
    return 'static';
  }
  clusters(): Iterable<ClusterView> {
    return this.clusterViews;
  }
  async updateStats() {}
  async flushStats() {
    this.calls.push('flushStats');
    this.stats.flush();
  }
  runtimeLayers() {
    return this.runtime.layers;
  }
  runtimeKeys() {
    return this.runtime.keysInSteps();
  }
  async modifyRuntime(entries: AdminEntries) {
    return this.runtime.modify(entries);
  }
  reloadView: ReloadView = { outcome: 'busy' };
  async reloadConfiguration({ applies, isPartial }: ReloadRequest): Promise<ReloadView> {
    this.calls.push(`reloadConfiguration ${applies} ${isPartial}`);
    return this.reloadView;
  }
  reopenLogs() {
    this.calls.push('reopenLogs');
  }
  async resetCounters() {
    this.calls.push('resetCounters');
    this.stats.resetCounters();
  }
  setLevelRules(rules: LevelRules) {
    this.calls.push('setLevelRules');
    setLevelRules(rules);
  }
  async workersUpdated() {}
  setHealthFailing(isFailing: boolean) {
    this.calls.push(`setHealthFailing ${isFailing}`);
  }
  async memory() {
    return [threadMemory('primary')];
  }
  configDumps() {
    return this.dumps;
  }
  async explain(): Promise<never[]> {
    return [];
  }

  contention() {
    return this.contentionSums;
  }
  drainListeners(inboundOnly: boolean, staysOpen: boolean) {
    this.calls.push(`drainListeners ${inboundOnly} ${staysOpen}`);
  }
  drainState: DrainStatusView = { drain: undefined, listeners: [] };
  async drainStatus() {
    return this.drainState;
  }
  async stopListeners(inboundOnly: boolean) {
    this.calls.push(`stopListeners ${inboundOnly}`);
  }
  tlsContexts() {
    return this.tlsContextViews;
  }
  unreadyTargets() {
    return this.unreadyViews;
  }
  quit() {
    this.calls.push('quit');
  }

  /** Adds a cluster from its configuration. */
  addCluster(config: Cluster): FakeCluster {
    const cluster = new FakeCluster(this.stats, config);
    this.clusterViews.push(cluster);
    return cluster;
  }
}

/** Runtime without stats. */
function fakeRuntime(config: LayeredRuntimeConfig | undefined): LayeredRuntime {
  const store = new StatsStore({ workers: 1 });
  const stats = store.scope(store.addScope('runtime.', RuntimeStats));
  return new LayeredRuntime({ config, serviceCluster: 'front', stats, changed: () => undefined });
}

class FakeCluster implements ClusterView {
  readonly spec;
  readonly directory: HostDirectory;
  isAddedViaApi = false;
  edsServiceName = '';
  outliers: ClusterView['outliers'] = undefined;
  /** Additional health flags, by address. */
  readonly flags = new Map<string, number>();
  readonly #stats: StatsStore;

  constructor(stats: StatsStore, config: Cluster) {
    this.#stats = stats;
    this.spec = clusterSpec(config, new ExtensionRegistry(EXTENSIONS));
    this.directory = new HostDirectory({
      allocate: (address) => {
        const scope = stats.addScope(`cluster.${config.name}.host.${address}.`, HostStats, { hidden: true });
        return { block: scope.base, scope };
      },
      retire: ({ scope }) => stats.removeScope(scope),
    });
    this.directory.update(discoverySpec(config).endpoints.flatMap((endpoint) => staticEndpoint(endpoint) ?? []));
  }

  get thresholds() {
    return this.spec.thresholds;
  }

  get hosts(): KnownHost[] {
    return Array.from(this.directory.hosts, (host) => {
      const healthFlags = host.healthFlags | (this.flags.get(host.address) ?? 0);
      return { ...host, healthFlags };
    });
  }

  /** The counts of the host at this address. */
  statsOf(address: string) {
    for (const host of this.directory.hosts) {
      if (host.address === address) return this.#stats.scope(host.scope);
    }
    throw new Error(`no host ${address}`);
  }
}

export interface Fixture {
  readonly services: FakeServices;
  readonly server: AdminServer;
  readonly port: number;
}

/** Starts an admin interface on a free port. It is closed when the test ends. */
export async function startAdmin(t: Test, options: AdminServerOptions = {}, renders?: RenderPool): Promise<Fixture> {
  const services = new FakeServices(renders);
  const server = new AdminServer(services, options);
  t.teardown(() => server.close(0));
  const { port } = await server.listen({ address: LOOPBACK });
  return { services, server, port };
}

/** Returns an endpoint at /stream with a body that the test produces. */
export function streaming(body: () => Pieces): readonly AdminHandler[] {
  const handler = { path: '/stream', mutates: false, help: '', parameters: [], handle: () => ({ body: body() }) };
  return [...HANDLERS, handler];
}
