// What the program does with its command line: answer and leave, check a configuration, or serve until a signal ends it.

import { messageOf } from '../common/errors.js';
import { versionString } from '../common/version.js';
import type { LoadResult } from '../config/load.js';
import { loadInThread } from '../config/load-in-thread.js';
import { overrideNode } from '../config/node.js';
import { formatProblem, formatProblems } from '../config/problem.js';
import { Level, parseLevel } from '../log/levels.js';
import { getLogger, initLogging, type LoggingOptions, parseComponentLevels } from '../log/logger.js';
import { serve } from '../server/serve.js';
import type { Signals } from '../server/signals.js';
import { workerCount } from './concurrency.js';
import { helpText, USAGE_HINT } from './help.js';
import type { Options } from './options.js';
import { parseArguments } from './parse.js';
import { commandLineOptions } from './server-info.js';
import { versionText } from './version.js';

const CONFIG_THREAD = new URL('../server/config-thread.js', import.meta.url);

const logger = getLogger('main');

/** Runs the program; resolves with its exit status. */
export async function run(argv: readonly string[], signals: Signals): Promise<number> {
  if (argv.includes('--help') || argv.includes('-h')) {
    process.stdout.write(helpText());
    return 0;
  }
  const parsed = parseArguments(argv);
  if (!parsed.ok) {
    process.stderr.write(`error: ${parsed.error}\n${USAGE_HINT}\n`);
    return 1;
  }
  const { options } = parsed;
  if (options.version) {
    process.stdout.write(versionText('baton'));
    return 0;
  }
  const logging = loggingOptions(options);
  try {
    initLogging(logging);
  } catch (error) {
    process.stderr.write(`error: ${messageOf(error)}\n`);
    return 1;
  }
  for (const warning of parsed.warnings) logger.warning(warning);
  return serveOrValidate(options, logging, signals);
}

async function serveOrValidate(options: Options, logging: LoggingOptions, signals: Signals): Promise<number> {
  const loaded = await load(options);
  const name = options.configPath || '--config-yaml';
  for (const warning of loaded.warnings) logger.warning(formatProblem(warning));
  if (!loaded.ok) {
    logger.critical(`error initializing configuration '${name}':\n${formatProblems(loaded.errors)}`);
    return 1;
  }
  if (options.mode === 'validate') {
    process.stdout.write(`configuration '${name}' OK\n`);
    return 0;
  }
  if (options.mode === 'init_only') return 0;
  const concurrency = workerCount(options.given.includes('concurrency') ? options.concurrency : undefined);
  const bootstrap = {
    ...loaded.bootstrap,
    node: overrideNode(loaded.bootstrap.node, {
      serviceCluster: options.serviceCluster,
      serviceNode: options.serviceNode,
      serviceZone: options.serviceZone,
    }),
  };
  return serve(
    {
      bootstrap,
      concurrency,
      version: versionString(),
      logging,
      fileFlush: { flushMinBytes: options.fileFlushMinSizeKb * 1024, flushIntervalMs: options.fileFlushIntervalMsec },
      localAddressFamily: options.localAddressIpVersion,
      unknownFields: loaded.unknownFields,
      adminAddressPath: options.adminAddressPath,
      commandLineOptions: commandLineOptions(options, concurrency),
      baseId: options.baseId,
    },
    signals,
  );
}

/** Never rejects: what goes wrong in the loading thread is an error of the configuration, or a defect that is logged. */
async function load(options: Options): Promise<LoadResult> {
  return loadInThread(CONFIG_THREAD, {
    path: options.configPath || undefined,
    yaml: options.configYaml || undefined,
    unknownStaticFields: options.allowUnknownStaticFields || options.allowUnknownFields ? 'warn' : 'refuse',
    disabledExtensions: options.disableExtensions === '' ? [] : options.disableExtensions.split(','),
  });
}

function loggingOptions(options: Options): LoggingOptions {
  return {
    level: parseLevel(options.logLevel) ?? Level.Info,
    componentLevels: parseComponentLevels(options.componentLogLevel),
    path: options.logPath || undefined,
    format: options.logFormat,
    escaped: options.logFormatEscaped,
    fineGrain: options.enableFineGrainLogging,
    singleEntryStacks: options.logStacktraceSingleEntry,
    version: versionString(),
  };
}
