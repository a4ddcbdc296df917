// The server as its admin interface sees it.

import type { AdminServices, ClusterView, ListenerView } from '../admin/admin-services.js';
import type { Node } from '../config/generated/api.js';
import { monotonicMs } from '../io/timer-driver.js';
import type { Server } from './server.js';
import { STATE_NAMES } from './state.js';

/** What the admin interface shows that the server itself does not know. */
export interface AdminFacts {
  readonly version: string;
  readonly node: Node;
  readonly commandLineOptions: Readonly<Record<string, unknown>>;
  quit(): void;
}

export function adminServices(server: Server, facts: AdminFacts): AdminServices {
  return {
    // Gauges that the primary keeps are brought up to date by whoever looks.
    get stats() {
      server.updateStats();
      return server.store;
    },
    flushesStatsOnAdmin: false,
    version: facts.version,
    hotRestartVersion: 'disabled',
    node: facts.node,
    commandLineOptions: facts.commandLineOptions,
    state: () => STATE_NAMES[server.state],
    uptimes: () => {
      const seconds = Math.floor((monotonicMs() - server.startedMs) / 1000);
      return { currentEpoch: seconds, allEpochs: seconds };
    },
    listeners: () => listenerViews(server),
    clusters: () => clusterViews(server),
    flushStats: () => server.flushStats(),
    reopenLogs: () => server.reopenLogs(),
    quit: facts.quit,
  };
}

function* listenerViews(server: Server): Generator<ListenerView> {
  for (const listener of server.listeners.values()) yield { name: listener.name, addresses: [listener.address] };
}

function* clusterViews(server: Server): Generator<ClusterView> {
  for (const cluster of server.clusters.values()) {
    yield {
      spec: cluster.spec,
      isAddedViaApi: false,
      edsServiceName: '',
      hosts: [...cluster.hosts].map((host) => ({ host, healthFlags: cluster.healthFlags(host) })),
    };
  }
}
