// What the program does with its command line: answer and leave, check a configuration, or serve until a signal ends it.

import { readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { messageOf } from '../common/errors/errors.js';
import { fileIdentity } from '../common/files/file-watch.js';
import { programFile } from '../common/package/package-root.js';
import { print, printed } from '../common/process/print.js';
import type { SignalName, Signals } from '../common/process/signals.js';
import type { LoadResult } from '../config/load/load.js';
import { loadInThread } from '../config/load/load-in-thread.js';
import { jsonSchemaPath } from '../config/schema/json-schema-path.js';
import { formatProblem, formatProblems } from '../config/text/problem.js';
import { loadShim } from '../io/shim.js';
import { applicationLogFormat } from '../log/application-log.js';
import { repeatOnStderr } from '../log/last-words.js';
import { getLogger, initLogging, setLogFormat } from '../log/logger.js';
import { writeBaseIdFile } from '../restart/base-id-file.js';
import { hotRestartVersion } from '../restart/version.js';
import type { HotRestart } from '../server/restart/hot-restart.js';
import { firstSteps, helpText, USAGE_HINT } from './help.js';
import { overrideNode } from './node.js';
import type { Options } from './options.js';
import { parseArguments } from './parse.js';
import { hotRestartOptions, type Logging, loadOptions, loggingOptions, serverSettings } from './settings.js';
import { versionText } from './version.js';

const CONFIG_THREAD = programFile('server/configuration/config-thread.js');

/** The process that started this one may end before it can be said that this one is to end with it. */
const STARTED_BY = process.ppid;

const logger = getLogger('main');

/** Runs the program; resolves with its exit status. */
export async function run(argv: readonly string[], signals: Signals): Promise<number> {
  if (argv.includes('--help') || argv.includes('-h')) {
    print(process.stdout, helpText());
    return 0;
  }
  const parsed = parseArguments(argv);
  if (!parsed.ok) {
    print(process.stderr, `error: ${parsed.error}\n${USAGE_HINT}\n`);
    return 1;
  }
  const { options } = parsed;
  if (options.version) {
    print(process.stdout, versionText());
    return 0;
  }
  if (options.schema) {
    print(process.stdout, readFileSync(jsonSchemaPath()));
    return 0;
  }
  if (options.hotRestartVersion) {
    print(process.stderr, hotRestartVersion(options.disableHotRestart));
    return 0;
  }
  const logging = loggingOptions(options);
  try {
    initLogging(logging);
  } catch (error) {
    print(process.stderr, `error: ${messageOf(error)}\n`);
    return 1;
  }
  for (const warning of parsed.warnings) logger.warning(warning);
  if (options.enableCoreDump) enableCoreDump();
  const status = await serveOrValidate(options, logging, signals);
  // A server has written all by now. What is still under way, such as a connection that nobody answers, ends with the process.
  if (options.mode === 'serve') {
    await printed();
    process.exit(status);
  }
  return status;
}

async function serveOrValidate(options: Options, logging: Logging, signals: Signals): Promise<number> {
  const hasNone = options.configPath === '' && options.configYaml === '';
  // Without a configuration it does not matter whose the names of this epoch are.
  if (options.mode !== 'serve' || options.disableHotRestart || hasNone)
    return loadAndServe(options, logging, signals, undefined);
  let restart: HotRestart;
  try {
    restart = await openHotRestart(options);
  } catch (error) {
    tellWhy(options, messageOf(error));
    return 1;
  }
  try {
    const { baseId } = restart;
    if (options.baseIdPath !== '') writeBaseIdFile(options.baseIdPath, baseId);
    return await loadAndServe({ ...options, baseId }, logging, signals, restart);
  } finally {
    await restart.close();
  }
}

/** `restart`: undefined where no process takes over from another. */
async function loadAndServe(
  options: Options,
  logging: Logging,
  signals: Signals,
  restart: HotRestart | undefined,
): Promise<number> {
  if (options.mode !== 'serve') signals.handle(dieOf);
  // Taken before it is read: what is written meanwhile is a change.
  const identity = options.watchConfig ? fileIdentity(options.configPath) : '';
  // The server is loaded only where one will run, and while the configuration is read.
  const loading = Promise.all([
    load(options, signals.ending),
    options.mode === 'serve' ? import('../server/serve.js') : undefined,
  ]);
  const [loaded, server] = await loading.catch((error) => {
    if (signals.ending.aborted) return [];
    throw error;
  });
  if (loaded === undefined) {
    logger.warning(`caught ${signals.ending.reason}`);
    logger.info('exiting');
    return 0;
  }
  for (const warning of loaded.warnings) logger.warning(formatProblem(warning));
  if (!loaded.ok) {
    const what = options.mode === 'serve' ? 'config' : 'configuration';
    const why = formatProblems(loaded.errors);
    // As Envoy says it, in one line, unless lines of the configuration are shown.
    tellWhy(options, `error initializing ${what} '${nameOf(options)}':${why.includes('\n') ? '\n' : ' '}${why}`);
    if (nameOf(options) === '') print(process.stderr, firstSteps());
    return 1;
  }
  if (options.mode === 'validate') {
    print(process.stdout, `configuration '${nameOf(options)}' OK\n`);
    return 0;
  }
  if (server === undefined) return 0;
  const format = applicationLogFormat(loaded.bootstrap.application_log_config) ?? logging.format;
  setLogFormat(format, logging);
  return server.serve(
    {
      ...serverSettings(options),
      bootstrap: loaded.bootstrap,
      sensitive: loaded.sensitive,
      counts: loaded.counts,
      loadAnew: () => load(options),
      watched: options.watchConfig ? { path: options.configPath, identity } : undefined,
      logging: { ...logging, format },
      restart,
    },
    signals,
  );
}

/** Rejects with a BatonError when the names of this epoch belong to another process. */
async function openHotRestart(options: Options): Promise<HotRestart> {
  // Whoever started this process watches over it: without it nobody would start the next epoch.
  loadShim().endWithParent(constants.signals.SIGTERM);
  if (process.ppid !== STARTED_BY) process.kill(process.pid, 'SIGTERM');
  const { HotRestart } = await import('../server/restart/hot-restart.js');
  return HotRestart.open(hotRestartOptions(options));
}

function tellWhy(options: Options, message: string): void {
  logger.critical(message);
  repeatOnStderr(logger, options.logPath, message);
}

/** What the configuration is called: its file, or the option that held it. */
function nameOf({ configPath, configYaml }: Options): string {
  return configPath || (configYaml === '' ? '' : '--config-yaml');
}

/** While a configuration is only checked nothing has to be taken down: a signal to end ends the process as any other. */
function dieOf(signal: SignalName): void {
  if (signal !== 'SIGTERM' && signal !== 'SIGINT') return;
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
}

/** Before anything that could crash; a failure is told, and no reason not to serve. */
function enableCoreDump(): void {
  try {
    loadShim().enableCoreDump();
    logger.info('core dump enabled');
  } catch (error) {
    logger.warning(`failed to enable core dump: ${messageOf(error)}`);
  }
}

/** The configuration with the node that the command line makes of it. */
async function load(options: Options, signal?: AbortSignal): Promise<LoadResult> {
  const loaded = await loadInThread(CONFIG_THREAD, loadOptions(options), signal);
  if (!loaded.ok) return loaded;
  const { serviceCluster, serviceNode, serviceZone } = options;
  const node = overrideNode(loaded.bootstrap.node, { serviceCluster, serviceNode, serviceZone });
  return { ...loaded, bootstrap: { ...loaded.bootstrap, node } };
}
