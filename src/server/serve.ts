// Serves one configuration: the server, its admin interface and the signals that steer them, until it is told to end.

import { networkInterfaces } from 'node:os';
import { writeAddressFile } from '../admin/address-file.js';
import { AdminServer } from '../admin/admin-server.js';
import { messageOf } from '../common/errors.js';
import type { Bootstrap } from '../config/generated/api.js';
import { addressText } from '../io/address.js';
import { getLogger, type LoggingOptions } from '../log/logger.js';
import { adminServices } from './admin-view.js';
import { listenAddress } from './listen-sockets.js';
import { Server } from './server.js';
import type { Signals } from './signals.js';

export interface ServeOptions {
  readonly bootstrap: Bootstrap;
  readonly concurrency: number;
  /** `{revision}/{version}/{status}/{build type}` */
  readonly version: string;
  readonly logging: LoggingOptions;
  readonly fileFlush: { readonly flushMinBytes: number; readonly flushIntervalMs: number };
  readonly localAddressFamily: string;
  readonly unknownFields: number;
  /** File that the admin interface's address is written to; '': none. */
  readonly adminAddressPath: string;
  /** As /server_info shows them. */
  readonly commandLineOptions: Readonly<Record<string, unknown>>;
  readonly baseId: number;
}

const logger = getLogger('main');

/** Resolves with the exit status when the server has ended. */
export async function serve(options: ServeOptions, signals: Signals): Promise<number> {
  logger.info(`initializing epoch 0 (base id=${options.baseId}, hot restart version=disabled)`);
  const server = new Server({
    bootstrap: options.bootstrap,
    concurrency: options.concurrency,
    revision: options.version,
    logging: options.logging,
    fileFlush: options.fileFlush,
    localIp: localIp(options.localAddressFamily),
    unknownFields: options.unknownFields,
  });
  return new Promise((resolve) => {
    let isEnding = false;
    const end = (status: number) => {
      if (isEnding) return;
      isEnding = true;
      logger.info('shutting down server instance');
      void Promise.all([server.shutDown(), admin?.close()]).then(() => {
        logger.info('main dispatch loop exited');
        logger.info('exiting');
        resolve(status);
      });
    };
    const admin = createAdmin(options, server, () => end(0));
    signals.handle((name) => {
      switch (name) {
        case 'SIGTERM':
          logger.warning('caught SIGTERM');
          return end(0);
        case 'SIGINT':
          logger.warning('caught SIGINT');
          return end(0);
        case 'SIGUSR1':
          logger.info('caught SIGUSR1. Reopening access logs.');
          return server.reopenLogs();
        case 'SIGHUP':
          logger.warning('caught and eating SIGHUP. See documentation for how to hot restart.');
      }
    });
    // A signal that came while the configuration was read has ended everything already.
    if (isEnding) return;
    startAdmin(admin, options)
      .then(() => {
        logger.info('starting main dispatch loop');
        return server.start();
      })
      .catch((error: unknown) => {
        if (isEnding) return;
        logger.critical(`error initializing configuration: ${messageOf(error)}`);
        end(1);
      });
  });
}

/** Undefined when the bootstrap has no admin interface. */
function createAdmin(options: ServeOptions, server: Server, quit: () => void): AdminServer | undefined {
  const config = options.bootstrap.admin;
  if (config?.address === undefined) return undefined;
  const { version, commandLineOptions } = options;
  const facts = { version, commandLineOptions, node: options.bootstrap.node ?? {}, quit };
  return new AdminServer(adminServices(server, facts), { allowPaths: config.allow_paths });
}

/** It answers before the server is live: /ready says how far it is. */
async function startAdmin(admin: AdminServer | undefined, options: ServeOptions): Promise<void> {
  if (admin === undefined) return;
  const config = options.bootstrap.admin!.address;
  const address = await admin.listen({ address: listenAddress(config), mode: config?.pipe?.mode });
  logger.info(`admin address: ${addressText(address)}`);
  if (options.adminAddressPath !== '') writeAddressFile(options.adminAddressPath, address);
}

/** The first address of this machine that others could use; the loopback address when there is none. */
function localIp(family: string): string {
  const wanted = family === 'v6' ? 'IPv6' : 'IPv4';
  for (const entries of Object.values(networkInterfaces())) {
    for (const entry of entries ?? []) {
      if (entry.family === wanted && !entry.internal && !entry.address.startsWith('fe80:')) return entry.address;
    }
  }
  return wanted === 'IPv6' ? '::1' : '127.0.0.1';
}
