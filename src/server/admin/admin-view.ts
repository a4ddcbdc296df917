// The server as seen by its admin interface.

import type {
  AdminServices,
  CertificateView,
  ClusterView,
  ListenerView,
  TlsContextView,
  UnreadyView,
} from '../../admin/admin-services.js';
import { nextPieceTurn } from '../../admin/http/turns.js';
import { inBatches, inTurns } from '../../common/time/next-turn.js';
import type { LoadedCertificate } from '../../tls/context-certificates.js';
import type { TlsContexts } from '../../tls/tls-contexts.js';
import { HealthFailure } from '../../worker/messages/server-health.js';
import type { DrainReach } from '../draining/drain-reach.js';
import { drainStatus } from '../draining/drain-status.js';
import type { ConfigurationReload } from '../reload/configuration-reload.js';
import type { RunningConfiguration } from '../running/running-configuration.js';
import type { Server } from '../server.js';
import { STATE_NAMES } from '../state.js';
import { uptimes } from '../stats/process-epoch.js';
import { configDumps, type DumpedConfiguration } from './dumps/config-dumps.js';
import { explainRequest } from './explanation/explain-request.js';

/** What the admin interface shows in addition to the server's own state. */
export interface AdminFacts
  extends Pick<
    AdminServices,
    'node' | 'renders' | 'profilers' | 'version' | 'hotRestartVersion' | 'commandLineOptions' | 'reopenLogs' | 'quit'
  > {
  dumped(): DumpedConfiguration;
  /** Reloads of the configuration. */
  readonly reload: Pick<ConfigurationReload, 'run'>;
}

export function adminServices(server: Server, { dumped, reload, ...facts }: AdminFacts): AdminServices {
  const { hotRestartVersion } = facts;
  const { epoch, store, threads } = server.primary;
  const { drains } = server.configuration.listeners;
  return {
    ...facts,
    stats: store,
    updateStats: () => server.updateStats(),
    flushesStatsOnAdmin: server.flushes.isOnAdmin,
    state: () => STATE_NAMES[server.state],
    isHotRestartInitializing: () =>
      hotRestartVersion !== 'disabled' && (!server.isLive || server.primary.takeOver.isBeginning),
    uptimes: () => uptimes(epoch),
    listeners: () => listenerViews(server.configuration),
    clusters: () => clusterViews(server.configuration),
    clustersVersion: () => server.configuration.clustersVersion,
    flushStats: () => server.flushes.run(),
    runtimeLayers: () => server.configuration.runtime.layers,
    runtimeKeys: () => server.configuration.runtime.keysInSteps(),
    modifyRuntime: async (entries) => {
      const { runtime, runtimePublication } = server.configuration;
      const isModified = runtime.modify(entries);
      await runtimePublication.sent();
      return isModified;
    },
    reloadConfiguration: (request) => reload.run(request),
    resetCounters: () => inTurns(store.resetInSteps()),
    setLevelRules: (rules) => threads.setLevelRules(rules),
    workersUpdated: () => threads.handled(),
    setHealthFailing: (isFailing) => {
      server.setHealth(HealthFailure.Requested, isFailing);
    },
    memory: () => threads.memory(),
    configDumps: (includeEds) => configDumps(server.configuration, dumped(), includeEds),
    explain: (question) =>
      inTurns(inBatches(explainRequest(server.configuration, question), ROUTES_PER_TURN), nextPieceTurn),
    contention: () => threads.contention,
    stopListeners: (inboundOnly) => drains.stopListeners(reachOf(inboundOnly), { acceptRest: false }),
    drainListeners: (inboundOnly, staysOpen) => {
      const stopsAccepting = staysOpen ? 'never' : 'at-end';
      drains.start({ reach: reachOf(inboundOnly), reason: 'admin', stopsAccepting });
    },
    drainStatus: () => drainStatus(server.configuration.listeners),
    tlsContexts: () => tlsContextViews(server.primary.tls),
    unreadyTargets: () => unreadyViews(server),
  };
}

/** Compiling the regular expression of one route takes about 10 µs. */
const ROUTES_PER_TURN = 100;

function reachOf(inboundOnly: boolean): DrainReach {
  return inboundOnly ? 'inbound' : 'all';
}

function* listenerViews({ listeners }: RunningConfiguration): Generator<ListenerView> {
  for (const { name, address, statPrefix } of listeners.byName.values())
    yield { name, addresses: [address], statPrefix };
}

function* unreadyViews({ configuration, waitingFor }: Server): Generator<UnreadyView> {
  const targets = waitingFor?.unreadyTargets ?? [];
  // The server itself waits for the init targets of listeners that exist before the workers start.
  const isListener = configuration.listeners.byName.size > 0;
  if (waitingFor !== undefined && targets.length > 0) yield { name: waitingFor.name, isListener, targets };
  for (const { init } of configuration.listeners.warming.values()) {
    const { name, unreadyTargets } = init;
    if (unreadyTargets.length > 0) yield { name, isListener: true, targets: unreadyTargets };
  }
}

function* clusterViews({ clusters }: RunningConfiguration): Generator<ClusterView> {
  for (const cluster of clusters.byName.values()) {
    yield {
      spec: cluster.spec,
      thresholds: cluster.breakers.thresholds,
      isAddedViaApi: cluster.origin.isAddedViaApi,
      edsServiceName: cluster.edsServiceName,
      get hosts() {
        return cluster.hosts;
      },
      outliers: cluster.membership.outliers,
    };
  }
}

function* tlsContextViews(contexts: TlsContexts): Generator<TlsContextView, void> {
  for (const { ca, chain } of contexts.certificates()) {
    yield { caCertificates: ca.map(certificateView), chain: chain.map(certificateView) };
  }
}

function certificateView({ certificate, ocsp, path }: LoadedCertificate): CertificateView {
  const { dnsSans, ipSans, serial, uriSans, validFromMs, validUntilMs } = certificate;
  return {
    path,
    serialNumber: serial,
    subjectAltNames: [
      ...dnsSans.map((dns) => ({ dns })),
      ...uriSans.map((uri) => ({ uri })),
      ...ipSans.map((ip_address) => ({ ip_address })),
    ],
    validFrom: new Date(validFromMs),
    expiration: new Date(validUntilMs),
    ocsp: ocsp && {
      validFrom: new Date(ocsp.thisUpdate * 1000),
      expiration: ocsp.nextUpdate === 0 ? undefined : new Date(ocsp.nextUpdate * 1000),
    },
  };
}
