// Runs the program: prints a text and exits, validates a configuration, or serves until a signal.

import { readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { messageOf } from '../common/errors/errors.js';
import { fileIdentity } from '../common/files/file-watch.js';
import { programFile } from '../common/package/package-root.js';
import { print, printed } from '../common/process/print.js';
import type { SignalName, Signals } from '../common/process/signals.js';
import type { LocatedScript } from '../config/fields/scripts.js';
import type { Bootstrap } from '../config/generated/api.js';
import type { LoadResult } from '../config/load/load.js';
import { loadInThread } from '../config/load/load-in-thread.js';
import { jsonSchemaPath } from '../config/schema/json-schema-path.js';
import { formatProblem, formatProblems, problemOf } from '../config/text/problem.js';
import { loadShim } from '../io/shim.js';
import { applicationLogFormat } from '../log/application-log.js';
import { getLogger, initLogging, setLogFormat } from '../log/logger.js';
import { repeatOnStderr } from '../log/repeat-on-stderr.js';
import { writeBaseIdFile } from '../restart/base-id-file.js';
import { hotRestartVersion } from '../restart/version.js';
import type { ReadScript } from '../scripts/reading/task.js';
import type { HotRestart } from '../server/restart/hot-restart.js';
import { firstSteps, helpText, USAGE_HINT } from './help.js';
import { overrideNode } from './node.js';
import type { Options } from './options.js';
import { parseArguments, withoutRest } from './parse.js';
import {
  hotRestartOptions,
  type Logging,
  loadOptions,
  loggingOptions,
  readsStandardInput,
  serverSettings,
} from './settings.js';
import { readStandardInput } from './standard-input.js';
import { validationReport } from './validation-report.js';
import { versionText } from './version.js';

const CONFIG_THREAD = programFile('server/configuration/config-thread.js');

/** Read at start, because the parent may exit before endWithParent() takes effect. */
const PARENT_PID = process.ppid;

const logger = getLogger('main');

/** Runs the program; resolves with its exit status. */
export async function run(argv: readonly string[], signals: Signals): Promise<number> {
  const read = withoutRest(argv);
  if (read.includes('--help') || read.includes('-h')) {
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
  // The server has flushed everything by now. Pending work, such as an unanswered connection, ends with the process.
  if (options.mode === 'serve') {
    await printed();
    process.exit(status);
  }
  return status;
}

async function serveOrValidate(options: Options, logging: Logging, signals: Signals): Promise<number> {
  const hasNoConfiguration = options.configPath === '' && options.configYaml === '';
  // Without a configuration, hot restart is not opened, because the start fails anyway.
  if (options.mode !== 'serve' || options.disableHotRestart || hasNoConfiguration)
    return loadAndServe(options, logging, signals, undefined);
  let restart: HotRestart;
  try {
    restart = await openHotRestart(options);
  } catch (error) {
    reportFatal(options, messageOf(error));
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

/** `restart`: undefined without hot restart. */
async function loadAndServe(
  options: Options,
  logging: Logging,
  signals: Signals,
  restart: HotRestart | undefined,
): Promise<number> {
  if (options.mode !== 'serve') signals.handle(terminateBy);
  // Taken before the file is read, so that a write during the read counts as a change.
  const identity = options.watchConfig ? fileIdentity(options.configPath) : '';
  // Kept, because a reload needs the text again.
  const input = readsStandardInput(options) ? readStandardInput(signals.ending) : undefined;
  // The server's modules are loaded only if they are needed, and in parallel with the configuration.
  const loading = Promise.all([
    load(options, input, signals.ending),
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
    // Same text as Envoy's, on one line unless excerpts of the configuration follow.
    reportFatal(options, `error initializing ${what} '${nameOf(options)}':${why.includes('\n') ? '\n' : ' '}${why}`);
    if (options.format === 'json') print(process.stdout, validationReport(nameOf(options), loaded));
    if (nameOf(options) === '') print(process.stderr, firstSteps());
    return 1;
  }
  if (options.mode === 'validate') {
    const { validate } = await import('./validate.js');
    return validate(options, nameOf(options), loaded);
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
      scripts: loaded.scripts,
      loadConfiguration: () => load(options, input),
      watched: options.watchConfig ? { path: options.configPath, identity } : undefined,
      logging: { ...logging, format },
      restart,
    },
    signals,
  );
}

/** Opens hot restart. Rejects with a BatonError if another process owns the names of this epoch. */
async function openHotRestart(options: Options): Promise<HotRestart> {
  // The parent supervises this process: without it, the next epoch would never be started.
  loadShim().endWithParent(constants.signals.SIGTERM);
  if (process.ppid !== PARENT_PID) process.kill(process.pid, 'SIGTERM');
  const { HotRestart } = await import('../server/restart/hot-restart.js');
  return HotRestart.open(hotRestartOptions(options));
}

function reportFatal(options: Options, message: string): void {
  logger.critical(message);
  repeatOnStderr(logger, options.logPath, message);
}

/** Returns the name of the configuration for messages: its file, or what else contains it. */
function nameOf(options: Options): string {
  if (readsStandardInput(options)) return 'standard input';
  return options.configPath || (options.configYaml === '' ? '' : '--config-yaml');
}

/** Lets a termination signal end the process by its default action. Validation has nothing to clean up. */
function terminateBy(signal: SignalName): void {
  if (signal !== 'SIGTERM' && signal !== 'SIGINT') return;
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
}

/** Enables core dumps; called before anything that could crash. A failure is logged and does not stop the server. */
function enableCoreDump(): void {
  try {
    loadShim().enableCoreDump();
    logger.info('core dump enabled');
  } catch (error) {
    logger.warning(`failed to enable core dump: ${messageOf(error)}`);
  }
}

/** A loaded configuration with the modules of scripts that it registers. */
type Loaded = LoadResult & { readonly scripts: readonly ReadScript[] };

/**
 * Loads the configuration and its scripts, and applies the node overrides of the command line.
 * @param input the text of standard input, if the configuration comes from there
 */
async function load(options: Options, input: Promise<string> | undefined, signal?: AbortSignal): Promise<Loaded> {
  let text: string | undefined;
  try {
    text = await input;
  } catch (error) {
    if (signal?.aborted === true) throw error;
    return { ok: false, errors: [problemOf('', messageOf(error))], warnings: [], scripts: [] };
  }
  const loaded = await loadInThread(CONFIG_THREAD, loadOptions(options, text), signal);
  if (!loaded.ok) return { ...loaded, scripts: [] };
  const { scriptPlaces: places } = loaded;
  const scripts = await scriptsOf(loaded.bootstrap, places.uses);
  const placesOfUses = new Map(places.uses.map(({ place }) => [place.path, place]));
  const errors = scripts.flatMap(({ mistakes, name }) =>
    mistakes.map(({ message, path }) => ({ ...(placesOfUses.get(path) ?? places.modules.get(name)!), message })),
  );
  if (errors.length > 0) return { ok: false, errors, warnings: loaded.warnings, scripts };
  const { serviceCluster, serviceNode, serviceZone } = options;
  const node = overrideNode(loaded.bootstrap.node, { serviceCluster, serviceNode, serviceZone });
  return { ...loaded, bootstrap: { ...loaded.bootstrap, node }, scripts };
}

async function scriptsOf(bootstrap: Bootstrap, uses: readonly LocatedScript[]): Promise<readonly ReadScript[]> {
  if (bootstrap.bootstrap_extensions === undefined) return [];
  const { loadScripts } = await import('../server/scripts/load-scripts.js');
  return loadScripts(bootstrap, uses);
}
