// The configured admin interface of a server: its address, access rules, access log and stats.

import { AccessLogFiles, type FileLogOptions } from '../../access-log/files/file-log.js';
import type { HandlerTable } from '../../admin/handler-table.js';
import { AdminServer } from '../../admin/http/admin-server.js';
import { writeAddressFile } from '../../admin/http/connections/address-file.js';
import { AdminTraffic } from '../../admin/http/connections/admin-traffic.js';
import { RequestLog } from '../../admin/http/request-log.js';
import { RenderPool } from '../../admin/render/render-pool.js';
import { messageOf } from '../../common/errors/errors.js';
import { Random } from '../../common/random.js';
import { atMostMs } from '../../common/time/within-ms.js';
import type { AccessLog, Admin, Any, Bootstrap } from '../../config/generated/api.js';
import { EXTENSIONS } from '../../extensions/index.js';
import { createFiltered } from '../../extensions/log-filters.js';
import { ExtensionRegistry } from '../../extensions/registry.js';
import type { LogFilterContext } from '../../http/log-filters/log-filter.js';
import { addressText } from '../../io/addresses/address.js';
import { loadShim, type NativeShim } from '../../io/shim.js';
import { getLogger } from '../../log/logger.js';
import type { Offer } from '../../restart/parent-end.js';
import type { Runtime } from '../../runtime/runtime.js';
import { FilesystemStats } from '../../stats/layouts/filesystem.js';
import { FilesystemStatsUpdate } from '../../worker/stats/filesystem-stats.js';
import type { InheritedSockets } from '../listeners/version/inherited-sockets.js';
import { listenAddress } from '../listeners/version/listen-sockets.js';
import { ProfileFile } from '../profiling/profile-file.js';
import { Profilers } from '../profiling/profilers.js';
import type { ConfigurationReload } from '../reload/configuration-reload.js';
import type { Server } from '../server.js';
import { AdminSocket } from './admin-socket.js';
import { type AdminFacts, adminServices } from './admin-view.js';

export interface AdminInterfaceOptions
  extends Pick<AdminFacts, 'version' | 'hotRestartVersion' | 'commandLineOptions' | 'quit' | 'reopenLogs'> {
  /** A bootstrap with an admin interface. */
  readonly bootstrap: Bootstrap & { readonly admin: Admin };
  readonly reload: ConfigurationReload;
  /** --admin-allowed-hosts */
  readonly allowedHosts: readonly string[];
  /** --admin-max-connections */
  readonly maxConnections: number;
  /** File that the address is written to; '': none. */
  readonly addressPath: string;
  readonly fileFlush: FileLogOptions;
  /** This machine's address. */
  readonly localIp: string;
}

const logger = getLogger('main');

/** Limit for writing the last lines of the access log. */
const FINAL_FLUSH_MS = 1000;

export class AdminInterface {
  readonly #config: Admin;
  readonly #addressPath: string;
  /** Another process, which this one is about to replace, answers admin requests. */
  #isParentAnswering = false;
  readonly #server: AdminServer;
  readonly #profilers: Profilers;
  #socket: AdminSocket | undefined;
  readonly #files: AccessLogFiles | undefined;
  readonly #filesystemStats: FilesystemStatsUpdate | undefined;

  /** Throws BatonError when a file of the access log cannot be opened. */
  constructor(options: AdminInterfaceOptions, server: Server) {
    const { bootstrap, allowedHosts, addressPath, fileFlush, maxConnections, reload } = options;
    const { configuration, primary } = server;
    const { store, threads } = primary;
    this.#config = bootstrap.admin;
    this.#addressPath = addressPath;
    const node = server.completed(reload.running.shown.node);
    const dumped = () => {
      const { loadedAt, shown } = reload.running;
      return { bootstrap: { ...shown, node }, loadedAt };
    };
    const { version, hotRestartVersion, commandLineOptions, quit, reopenLogs } = options;
    const loggers = accessLoggers(this.#config);
    if (loggers.length > 0) {
      this.#files = new AccessLogFiles(fileFlush);
      const scope = store.scope(store.addScope('filesystem.', FilesystemStats));
      this.#filesystemStats = new FilesystemStatsUpdate(this.#files, scope);
    }
    const renders = new RenderPool();
    const profileFile = new ProfileFile(this.#config.profile_path ?? '');
    this.#profilers = new Profilers(threads, profileFile, (set) => renders.render('profile', set));
    const profilers = this.#profilers;
    this.#server = new AdminServer(
      adminServices(server, {
        ...{ version, hotRestartVersion, commandLineOptions, quit, reopenLogs },
        ...{ renders, profilers, dumped, node, reload },
      }),
      {
        allowPaths: this.#config.allow_paths,
        allowedHosts,
        maxConnections,
        connectionLimit: this.#config.ignore_global_conn_limit ? undefined : configuration.connectionLimits.ofPrimary,
        traffic: new AdminTraffic(store),
        requestLog:
          this.#files &&
          new RequestLog(createLoggers(loggers, this.#files, configuration.runtime.runtime), options.localIp),
      },
    );
  }

  /** The table of endpoints, to which some configurations add endpoints. */
  get handlers(): HandlerTable {
    return this.#server.handlers;
  }

  /** Answers are in flight. */
  get isAnswering(): boolean {
    return this.#server.isAnswering;
  }

  /**
   * Binds a socket that a child process can take over, or takes the one of `parent`, which answers until start(). Returns whether
   * the socket is the parent's. Rejects with a ListenError.
   */
  async openSocket(shim: NativeShim, parent: InheritedSockets | undefined): Promise<boolean> {
    this.#isParentAnswering = parent !== undefined;
    this.#socket = await AdminSocket.open(shim, this.#config, parent);
    return this.#socket.isInherited;
  }

  /** Starts to listen. Beside a parent process, takeOver() writes the address file. Rejects with a BatonError when bind fails. */
  async start(): Promise<void> {
    const { address: config } = this.#config;
    const target = this.#socket?.target() ?? {
      address: listenAddress(config),
      mode: config?.pipe?.mode,
      ipv4Compat: config?.socket_address?.ipv4_compat,
    };
    const address = await this.#server.listen(target);
    logger.info(`admin address: ${addressText(address)}`);
    if (!this.#isParentAnswering) this.#writeAddressFile();
  }

  /**
   * Returns the socket as offered to a child process; the descriptor stays with this object. Undefined when it does not listen.
   */
  offer(id: number): Offer | undefined {
    const { address } = this.#server;
    return address && this.#socket?.offer(id, address);
  }

  /** Called when the parent process, if there was one, no longer answers. */
  takeOver(): void {
    if (!this.#isParentAnswering) return;
    this.#isParentAnswering = false;
    this.#socket?.ownFile();
    this.#writeAddressFile();
  }

  /**
   * Called when a child process answers: on this socket if `isTaken`, else on another one or none. Resolves when the answers in
   * flight are sent, or after a short time limit.
   */
  handOver(isTaken: boolean): Promise<void> {
    const stopped = this.#server.stopListening();
    if (isTaken) this.#socket?.handOver();
    else this.#socket?.close();
    return stopped;
  }

  /** Called when the process that replaced this one is dead. Failures are logged. */
  async reclaim(): Promise<void> {
    try {
      if (this.#socket !== undefined && !this.#socket.reclaim()) {
        this.#socket.close();
        this.#socket = await AdminSocket.open(loadShim(), this.#config, undefined);
      }
      await this.start();
    } catch (error) {
      logger.error(`the admin interface could not be resumed: ${messageOf(error)}`);
    }
  }

  /** Reopens the files of the access log. */
  reopenLogs(): void {
    void this.#files?.reopenAll();
  }

  /** Ends the profilers and writes their profiles. Called while the threads still run. */
  finishProfiles(): Promise<void> {
    return this.#profilers.close();
  }

  #writeAddressFile(): void {
    const { address } = this.#server;
    if (this.#addressPath !== '' && address !== undefined) writeAddressFile(this.#addressPath, address);
  }

  /** Waits for the answers in flight, and writes the access log. */
  async close(): Promise<void> {
    await this.#server.close();
    this.#socket?.close();
    if (this.#files === undefined) return;
    await atMostMs(this.#files.flush(), FINAL_FLUSH_MS);
    this.#filesystemStats?.close();
  }
}

/** The configured access logs. access_log_path stands for a file log with the default format. */
function accessLoggers({ access_log = [], access_log_path: path = '' }: Admin): readonly AccessLog[] {
  return path === '' ? access_log : [...access_log, { typed_config: { '@type': FILE_ACCESS_LOG, path } as Any }];
}

const FILE_ACCESS_LOG = 'type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog';

function createLoggers(logs: readonly AccessLog[], accessLogFiles: AccessLogFiles, runtime: Runtime) {
  const extensions = new ExtensionRegistry(EXTENSIONS);
  const context: LogFilterContext = { runtime, random: new Random(), recordType: 'DownstreamEnd' };
  return logs.map((log) => {
    const { typed_config: config } = log;
    const create = () => extensions.accessLogger(config!).createOnPrimary!(config!, { accessLogFiles });
    return createFiltered(log, context, create);
  });
}
