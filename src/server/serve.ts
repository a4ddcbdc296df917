// Serves one configuration: the server, its admin interface and the signals, until the server ends.

import { removeAddressFile } from '../admin/http/connections/address-file.js';
import { BatonError, messageOf } from '../common/errors/errors.js';
import { isMemoryShortage } from '../common/errors/shortages.js';
import type { SignalName, Signals } from '../common/process/signals.js';
import type { LoadResult } from '../config/load/load.js';
import type { SensitiveValue } from '../config/schema/sensitive.js';
import { loadShim } from '../io/shim.js';
import { forEachGuarded, guardThread } from '../log/internal-errors.js';
import { getLogger } from '../log/logger.js';
import { repeatOnStderr } from '../log/repeat-on-stderr.js';
import { hotRestartVersion } from '../restart/version.js';
import { HealthFailure } from '../worker/messages/server-health.js';
import { AdminInterface } from './admin/admin-interface.js';
import { eventStreamEndpoint } from './admin/event-stream-endpoint.js';
import { postEndpoint } from './admin/post-endpoint.js';
import { drainBeforeExit } from './draining/exit-drain.js';
import { extensionLines } from './extension-lines.js';
import { localIp } from './local-ip.js';
import { ConfigurationReload, configuration } from './reload/configuration-reload.js';
import type { WatchedFile, WatchedReload } from './reload/watched-reload.js';
import { type EpochFacts, firstEpoch } from './restart/epoch-facts.js';
import type { HotRestart } from './restart/hot-restart.js';
import { Notifier } from './restart/notify.js';
import { Succession } from './restart/succession.js';
import { Server, type ServerOptions } from './server.js';

export interface ServeOptions
  extends Omit<ServerOptions, 'epoch' | 'localIp' | 'restart' | 'revision' | 'serveEndpoint' | 'serveEvents'> {
  /** Loads the configuration again, as the command line says. */
  readonly loadConfiguration: () => Promise<LoadResult>;
  /** The bootstrap file. It is loaded again when its identity differs from this one (--watch-config). */
  readonly watched: WatchedFile | undefined;
  /** `{revision}/{version}/{status}/{build type}` */
  readonly version: string;
  /** SIGTERM drains before it ends the server (--drain-on-sigterm). */
  readonly drainsOnSigterm: boolean;
  readonly localAddressFamily: string;
  /** Values of the bootstrap that must not be shown. */
  readonly sensitive: readonly SensitiveValue[];
  /** File that the admin interface's address is written to; '': none. */
  readonly adminAddressPath: string;
  /** --admin-allowed-hosts; empty: all. */
  readonly adminAllowedHosts: readonly string[];
  /** --admin-max-connections */
  readonly adminMaxConnections: number;
  /** As shown by /server_info. */
  readonly commandLineOptions: Readonly<Record<string, unknown>>;
  readonly baseId: number;
  readonly epoch: number;
  /** Undefined with --disable-hot-restart. */
  readonly restart: HotRestart | undefined;
}

const logger = getLogger('main');

/** Serves until the server ends. Resolves with the exit status. */
export async function serve(options: ServeOptions, signals: Signals): Promise<number> {
  const notifier = Notifier.open(loadShim(), process.env, options.restart !== undefined && options.epoch > 0);
  try {
    const version = hotRestartVersion(options.restart === undefined);
    logger.info(`initializing epoch ${options.epoch} (base id=${options.baseId}, hot restart version=${version})`);
    logger.info('statically linked extensions:');
    for (const line of extensionLines()) logger.info(`  ${line}`);
    const epoch = await join(options, signals);
    return typeof epoch === 'number' ? epoch : await new ServerInstance(options, epoch, notifier).run(signals);
  } finally {
    notifier?.close();
  }
}

/** A server with the other parts of its process, from start to end. */
class ServerInstance {
  readonly #options: ServeOptions;
  readonly #notifier: Notifier | undefined;
  readonly #server: Server;
  readonly #reload: ConfigurationReload;
  /** Undefined when the bootstrap has no admin interface. */
  #admin: AdminInterface | undefined;
  #watch: WatchedReload | undefined;
  /** A no-op without --watch-config. */
  #watchFile = () => {};
  #isDraining = false;
  readonly #ending = new AbortController();
  #ended: (status: number) => void = () => {};

  constructor(options: ServeOptions, epoch: EpochFacts, notifier: Notifier | undefined) {
    this.#options = options;
    this.#notifier = notifier;
    const server = new Server({
      ...options,
      revision: options.version,
      localIp: localIp(options.localAddressFamily),
      epoch,
      serveEndpoint: (endpoint) => {
        const handler = postEndpoint(endpoint);
        this.#admin?.handlers.add(handler);
        return () => this.#admin?.handlers.remove(handler);
      },
      serveEvents: (stream) => this.#admin?.handlers.add(eventStreamEndpoint(stream)),
    });
    this.#server = server;
    const running = { ...configuration(options.bootstrap, options.sensitive), loadedAt: new Date() };
    this.#reload = new ConfigurationReload(server, options.loadConfiguration, running);
  }

  /** Runs the server. Resolves with the exit status. */
  run(signals: Signals): Promise<number> {
    const ended = new Promise<number>((resolve) => {
      this.#ended = resolve;
    });
    try {
      this.#admin = this.#createAdmin();
    } catch (error) {
      this.#failed(error);
    }
    if (!this.#isEnding) this.#options.restart?.begin(this.#createSuccession());
    signals.handle((name) => this.#handleSignal(name));
    guardThread((error) => this.#mustEnd(error));
    // A signal caught while the configuration was read has already ended everything.
    if (!this.#isEnding) this.#start().catch((error) => this.#failed(error));
    return ended;
  }

  get #isEnding(): boolean {
    return this.#ending.signal.aborted;
  }

  /**
   * Returns whether an uncaught exception outside any connection or stream ends the process. A live server continues: nothing
   * that is thrown on the primary affects traffic. A server that is not live may be missing something that it needs to become
   * live.
   */
  #mustEnd(error: unknown): boolean {
    if (isMemoryShortage(error)) {
      logger.critical({ err: error }, 'the server ends: out of memory');
      process.exit(1);
    }
    if (this.#server.isLive || this.#isEnding) return false;
    logger.critical({ err: error }, 'internal error: uncaught exception');
    this.#failed(error);
    return true;
  }

  #createAdmin(): AdminInterface | undefined {
    const { bootstrap, adminAddressPath: addressPath, adminAllowedHosts: allowedHosts } = this.#options;
    const { adminMaxConnections: maxConnections } = this.#options;
    const { admin } = bootstrap;
    if (admin?.address === undefined) {
      logger.info('the configuration has no admin address: there is no admin interface');
      return undefined;
    }
    return new AdminInterface(
      {
        ...this.#options,
        ...{ addressPath, allowedHosts, maxConnections },
        bootstrap: { ...bootstrap, admin },
        hotRestartVersion: hotRestartVersion(this.#options.restart === undefined),
        localIp: localIp(this.#options.localAddressFamily),
        reload: this.#reload,
        quit: () => this.#end(0),
        reopenLogs: () => this.#reopenLogs(),
      },
      this.#server,
    );
  }

  #createSuccession(): Succession {
    const isDraining = () => this.#isDraining;
    return new Succession(this.#server, this.#admin, {
      get isDraining() {
        return isDraining();
      },
      servingStarted: () => this.#notifier?.servingStarted(),
      handedOver: () => {
        this.#watch?.close();
        this.#notifier?.replaced();
      },
      reclaimed: () => {
        this.#notifier?.live();
        this.#watchFile();
      },
      end: (status) => this.#end(status),
    });
  }

  /** Resolves when the server and the admin interface serve, or when the server is ending. */
  async #start(): Promise<void> {
    const { adminAddressPath, restart, watched } = this.#options;
    const admin = this.#admin;
    const { parentSockets } = this.#server.primary.epoch;
    // A process that waits for the file must not read the address of a process that was killed.
    if (parentSockets === undefined && adminAddressPath !== '') removeAddressFile(adminAddressPath);
    // Bound now, so that an address in use is reported before anything else is started.
    const isAnswered = (await admin?.openSocket(loadShim(), parentSockets)) === true;
    // Loaded before traffic arrives: if the file could not be read for want of a descriptor later, a serving server would end.
    const reload = watched === undefined ? undefined : await import('./reload/watched-reload.js');
    // The admin interface answers before the server is live, for /ready. Where a parent listens, the parent answers until then.
    await this.#server.start(async () => {
      if (!isAnswered && !this.#isEnding) await admin?.start();
    });
    if (this.#isEnding) return;
    if (isAnswered) await admin?.start();
    if (this.#isEnding) return;
    await restart?.live();
    if (this.#isEnding) return;
    admin?.takeOver();
    if (admin === undefined && adminAddressPath !== '') removeAddressFile(adminAddressPath);
    // After the parent, which serves again if this process dies: the wrapper that started both must be notified in this order.
    if (!this.#isReplaced) this.#notifier?.live();
    if (reload === undefined) return;
    this.#watchFile = () => {
      this.#watch = new reload.WatchedReload(this.#reload, watched!);
    };
    if (!this.#isReplaced) this.#watchFile();
  }

  /** A child process has taken over. */
  get #isReplaced(): boolean {
    return this.#server.primary.takeOver.isDone;
  }

  #handleSignal(signal: SignalName): void {
    switch (signal) {
      case 'SIGTERM':
        logger.warning('caught SIGTERM');
        return this.#terminate();
      case 'SIGINT':
        logger.warning('caught SIGINT');
        return this.#end(0);
      case 'SIGUSR1':
        logger.info('caught SIGUSR1. Reopening access logs.');
        return this.#reopenLogs();
      case 'SIGHUP':
        logger.warning('caught and eating SIGHUP. See documentation for how to hot restart.');
    }
  }

  #reopenLogs(): void {
    this.#server.primary.threads.reopenLogs();
    this.#admin?.reopenLogs();
    this.#server.configuration.upstream.reopenLog();
  }

  #terminate(): void {
    const server = this.#server;
    const { draining, drainsOnSigterm, restart } = this.#options;
    // A second SIGTERM ends at once. A server that is not live has no connections to drain.
    if (!drainsOnSigterm || this.#isDraining || !server.isLive) return this.#end(0);
    this.#isDraining = true;
    this.#notifier?.stopping('draining');
    server.setHealth(HealthFailure.Ending, true);
    const { drains } = server.configuration.listeners;
    const exiting = {
      isAccepting: !this.#isReplaced,
      isParentIdle: async () => restart === undefined || restart.isParentIdle(),
    };
    void drainBeforeExit(drains, draining.timeMs, this.#ending.signal, exiting).then(() => this.#end(0));
  }

  #failed(error: unknown): void {
    if (this.#isEnding) return;
    // A defect, perhaps of an extension: the stack shows where.
    const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
    if (cause instanceof TypeError || cause instanceof ReferenceError)
      logger.error({ err: cause }, 'the server cannot be started');
    const remedy = error instanceof BatonError && error.remedy !== undefined ? `; ${error.remedy}` : '';
    reportFatal(this.#options, `error initializing configuration: ${messageOf(error)}${remedy}`);
    this.#end(1);
  }

  #end(status: number): void {
    if (this.#isEnding) return;
    this.#ending.abort();
    logger.info('shutting down server instance');
    const steps = [
      () => this.#watch?.close(),
      () => this.#options.restart?.ending(),
      () => this.#notifier?.stopping('shutting down'),
    ];
    forEachGuarded(steps, 'internal error: a part of the server failed to shut down', (step) => step());
    this.#shutDown().then(
      () => this.#ended(status),
      (error: unknown) => {
        logger.critical({ err: error }, 'the server failed to shut down cleanly');
        this.#ended(1);
      },
    );
  }

  async #shutDown(): Promise<void> {
    await this.#admin?.finishProfiles();
    await Promise.all([this.#server.shutDown(), this.#admin?.close()]);
    await this.#options.restart?.close();
    logger.info('main dispatch loop exited');
    logger.info('exiting');
  }
}

/** Connects to the parent process, if there is one. Resolves with the exit status when that fails or a signal ends it. */
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
    if (signal === '') reportFatal({ logging }, `cannot take over from the parent process: ${messageOf(error)}`);
    else logger.warning(`caught ${signal}`);
    await restart.close();
    return signal === '' ? 1 : 0;
  }
}

function reportFatal({ logging }: Pick<ServeOptions, 'logging'>, message: string): void {
  logger.critical(message);
  repeatOnStderr(logger, logging.path, message);
}
