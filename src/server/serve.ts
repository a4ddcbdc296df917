// Serves one configuration: the server, its admin interface and the signals that steer them, until it is told to end.

import { messageOf } from '../common/errors.js';
import type { FileWatch } from '../common/file-watch.js';
import { localIp } from '../common/local-ip.js';
import { HealthFailure } from '../common/server-health.js';
import type { Signals } from '../common/signals.js';
import type { LoadResult } from '../config/load/load.js';
import type { SensitiveValue } from '../config/schema/sensitive.js';
import { loadShim } from '../io/shim.js';
import { repeatOnStderr } from '../log/last-words.js';
import { getLogger } from '../log/logger.js';
import { hotRestartVersion } from '../restart/version.js';
import { ConfigReloadStats } from '../stats/layouts/config-reload.js';
import { AdminInterface, type AdminInterfaceOptions } from './admin/admin-interface.js';
import type { AdminFacts } from './admin/admin-view.js';
import { eventStreamEndpoint } from './admin/event-stream-endpoint.js';
import { postEndpoint } from './admin/post-endpoint.js';
import { drainBeforeExit } from './draining/exit-drain.js';
import { extensionLines } from './extension-lines.js';
import { ConfigurationReload, configuration } from './reload/configuration-reload.js';
import type { WatchedFile } from './reload/watched-reload.js';
import { type EpochFacts, firstEpoch } from './restart/epoch-facts.js';
import type { HotRestart, RestartedServer } from './restart/hot-restart.js';
import { Notifier } from './restart/notify.js';
import { Server, type ServerOptions } from './server.js';

export interface ServeOptions
  extends Pick<
    ServerOptions,
    | 'bootstrap'
    | 'concurrency'
    | 'logging'
    | 'fileFlush'
    | 'tracesContention'
    | 'draining'
    | 'handsOverConnections'
    | 'counts'
    | 'dynamic'
    | 'statsTags'
  > {
  /** Loads the configuration once more, as the command line says. */
  readonly loadAnew: () => Promise<LoadResult>;
  /** The bootstrap file, which is loaded anew when it is no longer the one with this identity (--watch-config). */
  readonly watched: WatchedFile | undefined;
  /** `{revision}/{version}/{status}/{build type}` */
  readonly version: string;
  /** SIGTERM drains before it ends the server (--drain-on-sigterm). */
  readonly drainsOnSigterm: boolean;
  readonly localAddressFamily: string;
  /** Values of the bootstrap that are not to be shown. */
  readonly sensitive: readonly SensitiveValue[];
  /** File that the admin interface's address is written to; '': none. */
  readonly adminAddressPath: string;
  /** --admin-allowed-hosts; empty: all. */
  readonly adminAllowedHosts: readonly string[];
  /** As /server_info shows them. */
  readonly commandLineOptions: Readonly<Record<string, unknown>>;
  readonly baseId: number;
  readonly epoch: number;
  /** Undefined with --disable-hot-restart. */
  readonly restart: HotRestart | undefined;
}

/** Number of the admin interface among the sockets that are offered: listeners have small ones. */
const ADMIN_ID = 2 ** 32 - 1;

const logger = getLogger('main');

/** Resolves with the exit status when the server has ended. */
export async function serve(options: ServeOptions, signals: Signals): Promise<number> {
  const notifier = Notifier.open(loadShim(), process.env);
  try {
    return await serveUntilEnd(options, signals, notifier);
  } finally {
    notifier?.close();
  }
}

async function serveUntilEnd(options: ServeOptions, signals: Signals, notifier: Notifier | undefined): Promise<number> {
  const { baseId, restart } = options;
  const version = hotRestartVersion(restart === undefined);
  logger.info(`initializing epoch ${options.epoch} (base id=${baseId}, hot restart version=${version})`);
  logger.info('statically linked extensions:');
  for (const line of extensionLines()) logger.info(`  ${line}`);
  const joined = await join(options, signals);
  if (typeof joined === 'number') return joined;
  let admin: AdminInterface | undefined;
  const server = new Server({
    ...options,
    revision: options.version,
    localIp: localIp(options.localAddressFamily),
    epoch: joined,
    serveEndpoint: (endpoint) => {
      const handler = postEndpoint(endpoint);
      admin?.handlers.add(handler);
      return () => admin?.handlers.remove(handler);
    },
    serveEvents: (stream) => admin?.handlers.add(eventStreamEndpoint(stream)),
  });
  const reload = new ConfigurationReload(
    {
      load: options.loadAnew,
      obstacle: () => server.obstacleToReload,
      takeOver: () => server.succession.takeOver,
      isReplaced: () => server.succession.isReplaced,
      namedSources: () => server.configuration.namedSources(),
      apply: (plan, next) => server.reload(plan, next),
      stats: () => server.store.scope(server.store.addScope('config_reload.', ConfigReloadStats)),
    },
    { ...configuration(options.bootstrap, options.sensitive), loadedAt: new Date() },
  );
  return new Promise((resolve) => {
    let isEnding = false;
    let watch: FileWatch | undefined;
    const ending = new AbortController();
    const end = (status: number) => {
      if (isEnding) return;
      isEnding = true;
      ending.abort();
      watch?.close();
      logger.info('shutting down server instance');
      restart?.ending();
      notifier?.stopping('shutting down');
      const profiles = admin?.finishProfiles() ?? Promise.resolve();
      const shutDown = () => Promise.all([server.shutDown(), admin?.close()]);
      void profiles
        .then(shutDown)
        .then(() => restart?.close())
        .then(() => {
          logger.info('main dispatch loop exited');
          logger.info('exiting');
          resolve(status);
        });
    };
    const failed = (error: unknown) => {
      if (isEnding) return;
      tellWhy(options, `error initializing configuration: ${messageOf(error)}`);
      end(1);
    };
    let isDraining = false;
    const terminate = () => {
      // Whoever asks again is in a hurry; and a server that is not live yet has no connections.
      if (!options.drainsOnSigterm || isDraining || !server.isLive) return end(0);
      isDraining = true;
      notifier?.stopping('draining');
      server.setHealth(HealthFailure.Ending, true);
      const parentIsQuiet = async () => restart === undefined || restart.parentIsQuiet();
      void drainBeforeExit(server.drains, options.draining.timeMs, ending.signal, parentIsQuiet).then(() => end(0));
    };
    const reopenLogs = () => {
      server.threads.reopenLogs();
      admin?.reopenLogs();
    };
    try {
      admin = createAdmin({ ...options, hotRestartVersion: version, reload }, server, {
        quit: () => end(0),
        reopenLogs,
      });
    } catch (error) {
      failed(error);
    }
    if (!isEnding) restart?.begin(restarted(server, () => admin, { replaced: () => watch?.close(), end }));
    signals.handle((name) => {
      switch (name) {
        case 'SIGTERM':
          logger.warning('caught SIGTERM');
          return terminate();
        case 'SIGINT':
          logger.warning('caught SIGINT');
          return end(0);
        case 'SIGUSR1':
          logger.info('caught SIGUSR1. Reopening access logs.');
          return reopenLogs();
        case 'SIGHUP':
          logger.warning('caught and eating SIGHUP. See documentation for how to hot restart.');
      }
    });
    // A signal that came while the configuration was read has ended everything already.
    if (isEnding) return;
    start(server, admin, options, joined, () => isEnding)
      .then(async () => {
        if (isEnding) return;
        notifier?.live();
        if (options.watched === undefined) return;
        const { watchConfiguration } = await import('./reload/watched-reload.js');
        if (!isEnding && !server.succession.isReplaced) watch = watchConfiguration(reload, options.watched);
      })
      .catch(failed);
  });
}

/** Comes to the parent process, when there is one. Gives the exit status when that fails, or a signal ends it. */
async function join({ epoch, logging, restart }: ServeOptions, signals: Signals): Promise<EpochFacts | number> {
  if (restart === undefined) return firstEpoch(epoch);
  if (epoch === 0) return restart.facts;
  const abort = new AbortController();
  let signal = '';
  signals.handle((name) => {
    if (name !== 'SIGTERM' && name !== 'SIGINT') return;
    signal = name;
    abort.abort();
  });
  try {
    const facts = await restart.join(abort.signal);
    abort.signal.throwIfAborted();
    return facts;
  } catch (error) {
    if (signal === '') tellWhy({ logging }, `cannot take over from the parent process: ${messageOf(error)}`);
    else logger.warning(`caught ${signal}`);
    await restart.close();
    return signal === '' ? 1 : 0;
  }
}

/** Resolves when the server is live, or has been told to end. */
async function start(
  server: Server,
  admin: AdminInterface | undefined,
  { restart }: ServeOptions,
  { parentSockets }: EpochFacts,
  isEnding: () => boolean,
): Promise<void> {
  const isAnswered = restart !== undefined && (await admin?.openSocket(loadShim(), parentSockets)) === true;
  // It answers before the server is live: /ready says how far it is. Where a parent listens, that one answers till then.
  if (!isAnswered) await admin?.start();
  await server.start();
  if (isEnding()) return;
  if (isAnswered) {
    await admin?.start();
    if (isEnding()) return;
    admin?.takeOver();
  }
  restart?.live();
}

/** The server as its parent and its child see it. */
function restarted(
  { succession }: Server,
  admin: () => AdminInterface | undefined,
  { replaced, end }: { replaced(): void } & Pick<RestartedServer, 'end'>,
): RestartedServer {
  return {
    offer: () => {
      const sockets = succession.offerSockets();
      const ofAdmin = admin()?.offer(ADMIN_ID);
      return ofAdmin === undefined ? sockets : [...sockets, ofAdmin];
    },
    childLost: () => succession.childLost(),
    handOver: (taken) => {
      replaced();
      admin()?.handOver(taken.has(ADMIN_ID));
      succession.handOver(taken);
    },
    concurrency: succession.concurrency,
    handOverConnections: (childWorkers) => succession.handOverConnections(childWorkers),
    takeConnections: (channels) => succession.takeConnections(channels),
    empty: () => succession.empty(() => admin()?.isAnswering ?? false),
    exportStats: () => succession.exportStats(),
    importStats: (piece) => succession.importStats(piece),
    parentEnded: () => succession.parentEnded(),
    end,
  };
}

/** Undefined when the bootstrap has no admin interface. */
function createAdmin(
  options: ServeOptions & Pick<AdminInterfaceOptions, 'hotRestartVersion' | 'reload'>,
  server: Server,
  actions: Pick<AdminFacts, 'quit' | 'reopenLogs'>,
): AdminInterface | undefined {
  const { bootstrap } = options;
  const { admin } = bootstrap;
  if (admin?.address === undefined) return undefined;
  const { adminAddressPath: addressPath, adminAllowedHosts: allowedHosts } = options;
  return new AdminInterface(
    { ...options, bootstrap: { ...bootstrap, admin }, addressPath, allowedHosts, ...actions },
    server,
  );
}

function tellWhy({ logging }: Pick<ServeOptions, 'logging'>, message: string): void {
  logger.critical(message);
  repeatOnStderr(logger, logging.path, message);
}
