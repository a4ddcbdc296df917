// Assembles the wrapper: command line, notify socket, children, service manager.

import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';
import { messageOf } from '../common/errors/errors.js';
import { print } from '../common/process/print.js';
import type { Signals } from '../common/process/signals.js';
import { SUPERVISOR } from '../common/process/supervisor.js';
import { watchdogIntervalMs } from '../io/notify/notify-address.js';
import { loadShim, type NativeShim } from '../io/shim.js';
import { logger } from './log.js';
import { type NotifyListener, NotifySocket, notifyDirectory } from './notify-socket.js';
import { type Options, readCommandLine } from './options.js';
import { reapOrphans } from './orphans.js';
import { Restarter } from './restarter.js';
import { ServiceManager } from './service-manager.js';

/** Interval of checks for a removed socket file. */
const SOCKET_CHECK_MS = 5000;

/** Executes the command line. A supervised program ends this process itself. */
export function run(argv: readonly string[], signals: Signals): void {
  const command = readCommandLine(argv);
  if (command.kind === 'run') return supervise(command.options, signals);
  const isMistake = command.kind === 'mistake';
  print(isMistake ? process.stderr : process.stdout, command.text);
  process.exitCode = isMistake ? 1 : 0;
}

function supervise(options: Options, signals: Signals): void {
  const { env } = process;
  const shim = loadShim();
  const socket = openSocket(shim, notifyDirectory(env), (pid, assignments) =>
    restarter.receiveNotification(pid, assignments),
  );
  if (socket === undefined) return;
  const manager = new ServiceManager(socket, env);
  const intervalMs = watchdogIntervalMs(env);
  const restarter = new Restarter(
    { ...options, program: findProgram(options.program, env) },
    {
      env: childEnvironment(env, socket.path, intervalMs),
      manager,
      ensureNotifySocket: () => socket.ensure(),
      exit: (status) => process.exit(status),
    },
  );
  setInterval(() => socket.ensure(), SOCKET_CHECK_MS);
  reapOrphans(shim, (pid) => restarter.owns(pid));
  if (intervalMs !== undefined) {
    // Twice as often as required, as sd_watchdog_enabled(3) recommends.
    setInterval(() => {
      if (restarter.isHealthy(intervalMs)) manager.pingWatchdog();
    }, intervalMs / 2);
  }
  logger.info(`children say that they are live on ${socket.path}`);
  restarter.start();
  signals.handle((signal) => restarter.receive(signal));
}

/** Returns undefined when the socket cannot be created, after logging that and setting the exit code. */
function openSocket(shim: NativeShim, directory: string, listener: NotifyListener): NotifySocket | undefined {
  try {
    return new NotifySocket(shim, directory, listener);
  } catch (error) {
    logger.error(`no notify socket can be made in ${directory}; RUNTIME_DIRECTORY names another: ${messageOf(error)}`);
    process.exitCode = 1;
    return undefined;
  }
}

/** Returns the children's environment: they notify this wrapper instead of the service manager, at the same watchdog interval. */
function childEnvironment(
  env: NodeJS.ProcessEnv,
  socketPath: string,
  intervalMs: number | undefined,
): NodeJS.ProcessEnv {
  const { WATCHDOG_PID: _, WATCHDOG_USEC: usec, ...rest } = env;
  const own = { NOTIFY_SOCKET: socketPath, [SUPERVISOR]: String(process.pid) };
  return { ...rest, ...own, ...(intervalMs === undefined ? {} : { WATCHDOG_USEC: usec }) };
}

/** Looks a name up in PATH, then in the working directory, as hot-restarter.py does. */
function findProgram(name: string, env: NodeJS.ProcessEnv): string {
  if (name.includes('/')) return name;
  const path = (env['PATH'] ?? '').split(delimiter).filter((directory) => directory !== '');
  if (path.some((directory) => isExecutable(join(directory, name)))) return name;
  return isExecutable(name) ? resolve(name) : name;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
