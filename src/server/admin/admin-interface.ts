// The admin interface of a server as it is configured: where it listens, who may ask, its access log, what is counted of it.

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
  /** It has an admin interface. */
  readonly bootstrap: Bootstrap & { readonly admin: Admin };
  readonly reload: ConfigurationReload;
  /** --admin-allowed-hosts */
  readonly allowedHosts: readonly string[];
  /** --admin-max-connections */
  readonly maxConnections: number;
  /** File that the address is written to; '': none. */
  readonly addressPath: string;
  readonly fileFlush: FileLogOptions;
}

const logger = getLogger('main');

/** How long the last lines of the access log may take to be written. */
const FINAL_FLUSH_MS = 1000;

export class AdminInterface {
  readonly #config: Admin;
  readonly #addressPath: string;
  /** A process that answers admin requests is about to be replaced by this one. */
  #isBesideAnother = false;
  readonly #server: AdminServer;
  readonly #profilers: Profilers;
  #socket: AdminSocket | undefined;
  readonly #files: AccessLogFiles | undefined;
  readonly #filesystemStats: FilesystemStatsUpdate | undefined;

  /** Throws BatonError when a file of its access log cannot be opened. */
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
        requestLog: this.#files && new RequestLog(createLoggers(loggers, this.#files, configuration.runtime.runtime)),
      },
    );
  }

  /** Its endpoints: those that only some configurations have come and go. */
  get handlers(): HandlerTable {
    return this.#server.handlers;
  }

  /** There are requests whose answers are not out yet, and will be. */
  get isAnswering(): boolean {
    return this.#server.isAnswering;
  }

  /**
   * Binds a socket that a child process can take over, or takes the one of `parent`, which answers until start(). Returns
   * whether it does. Rejects with a ListenError.
   */
  async openSocket(shim: NativeShim, parent: InheritedSockets | undefined): Promise<boolean> {
    this.#isBesideAnother = parent !== undefined;
    this.#socket = await AdminSocket.open(shim, this.#config, parent);
    return this.#socket.isInherited;
  }

  /** Begins to listen. Where a parent process answers, its address is told of in takeOver(). Rejects with a BatonError when the address cannot be had. */
  async start(): Promise<void> {
    const { address: config } = this.#config;
    const target = this.#socket?.target() ?? {
      address: listenAddress(config),
      mode: config?.pipe?.mode,
      ipv4Compat: config?.socket_address?.ipv4_compat,
    };
    const address = await this.#server.listen(target);
    logger.info(`admin address: ${addressText(address)}`);
    if (!this.#isBesideAnother) this.#writeAddressFile();
  }

  /** Its socket for a child process; the descriptor stays this one's. Undefined when it listens at none. */
  offer(id: number): Offer | undefined {
    const { address } = this.#server;
    return address && this.#socket?.offer(id, address);
  }

  /** The parent process, if there was one, does not answer any more. */
  takeOver(): void {
    if (!this.#isBesideAnother) return;
    this.#isBesideAnother = false;
    this.#socket?.ownFile();
    this.#writeAddressFile();
  }

  /**
   * A child process answers from now on, on this socket or (not `isTaken`) elsewhere or not at all. Resolves when answers in flight are
   * out, as far as they take no longer than a moment.
   */
  handOver(isTaken: boolean): Promise<void> {
    const stopped = this.#server.stopListening();
    if (isTaken) this.#socket?.handOver();
    else this.#socket?.close();
    return stopped;
  }

  /** The process that answered in its place is dead. What does not work is logged. */
  async takeBack(): Promise<void> {
    try {
      if (this.#socket !== undefined && !this.#socket.takeBack()) {
        this.#socket.close();
        this.#socket = await AdminSocket.open(loadShim(), this.#config, undefined);
      }
      await this.start();
    } catch (error) {
      logger.error(`the admin interface does not answer again: ${messageOf(error)}`);
    }
  }

  /** Opens the files of its access log anew. */
  reopenLogs(): void {
    void this.#files?.reopenAll();
  }

  /** Ends profilers and writes what they have, while the threads are still there to tell. */
  finishProfiles(): Promise<void> {
    return this.#profilers.close();
  }

  #writeAddressFile(): void {
    const { address } = this.#server;
    if (this.#addressPath !== '' && address !== undefined) writeAddressFile(this.#addressPath, address);
  }

  /** Lets answers in flight go out, and writes the access log. */
  async close(): Promise<void> {
    await this.#server.close();
    this.#socket?.close();
    if (this.#files === undefined) return;
    await atMostMs(this.#files.flush(), FINAL_FLUSH_MS);
    this.#filesystemStats?.close();
  }
}

/** Its access logs: access_log_path stands for a file log with the default format. */
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
