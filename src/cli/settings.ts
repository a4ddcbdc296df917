// Converts the options into the settings of the process log, the loader, the server and hot restart.

import { resolve } from 'node:path';
import { workingDirectory } from '../common/files/working-directory.js';
import { fullVersionString, versionString } from '../common/package/version.js';
import { isSupervised } from '../common/process/supervisor.js';
import type { ThreadOptions } from '../config/load/load-in-thread.js';
import type { Component } from '../log/components.js';
import type { ComponentLevel } from '../log/level-rules.js';
import { parseLevel } from '../log/levels.js';
import type { LoggingOptions } from '../log/logger.js';
import type { HotRestartOptions } from '../server/restart/hot-restart.js';
import type { ServeOptions } from '../server/serve.js';
import { workerCount } from './concurrency.js';
import { listOf } from './option-row.js';
import type { Options } from './options.js';
import { commandLineOptions } from './server-info.js';
import { workerMemory } from './worker-memory.js';

/** Relative log paths are resolved against this directory on every reopen, even if the process has left it or it was removed. */
const STARTED_IN = workingDirectory();

/** Some launchers pass the bootstrap through a named pipe that they write to after they have started this process. */
const PIPE_MS = 10_000;

export type Logging = LoggingOptions & { readonly format: string };

export function loggingOptions(options: Options): Logging {
  return {
    level: parseLevel(options.logLevel) ?? 'info',
    componentLevels: componentLevels(options.componentLogLevel),
    path: options.logPath === '' ? undefined : resolve(STARTED_IN, options.logPath),
    format: options.logFormat,
    escaped: options.logFormatEscaped,
    fineGrain: options.enableFineGrainLogging,
    singleEntryStacks: options.logStacktraceSingleEntry,
    version: fullVersionString(),
  };
}

/** @param input the text of standard input, if the configuration comes from there */
export function loadOptions(options: Options, input?: string): ThreadOptions {
  return {
    path: readsStandardInput(options) ? undefined : options.configPath || undefined,
    input,
    pipeMs: PIPE_MS,
    yaml: options.configYaml || undefined,
    expandsEnvironment: options.expandEnv,
    unknownStaticFields: options.allowUnknownStaticFields || options.allowUnknownFields ? 'warn' : 'refuse',
    skipDeprecatedLogs: options.skipDeprecatedLogs,
    isServed: options.mode === 'serve',
    logFormat: options.given.includes('log-format') ? 'given' : options.logFormatEscaped ? 'escaped' : undefined,
    disabledExtensions: listOf(options.disableExtensions),
  };
}

/** Returns whether the configuration comes from standard input. */
export function readsStandardInput({ configPath }: Options): boolean {
  return configPath === '-';
}

export function hotRestartOptions(options: Options): HotRestartOptions {
  return {
    socketPath: options.socketPath,
    socketMode: Number.parseInt(options.socketMode, 8),
    baseId: options.useDynamicBaseId ? undefined : options.baseId,
    epoch: options.restartEpoch,
    isParentOptional: options.skipHotRestartOnNoParent,
    isSupervised: isSupervised(process.env),
    takesParentStats: !options.skipHotRestartParentStats,
    parentShutdownTimeS: options.parentShutdownTimeS,
    handsOverConnections: options.handOverConnections,
  };
}

/** Returns the server settings that depend on the options alone; the others follow from the configuration. */
export function serverSettings(
  options: Options,
): Omit<
  ServeOptions,
  'bootstrap' | 'counts' | 'loadConfiguration' | 'logging' | 'restart' | 'scripts' | 'sensitive' | 'watched'
> {
  const concurrency = workerCount(options.given.includes('concurrency') ? options.concurrency : undefined);
  return {
    concurrency,
    version: versionString(),
    fileFlush: {
      flushMinBytes: options.fileFlushMinSizeKb * 1024,
      flushIntervalMs: options.fileFlushIntervalMsec,
      directory: STARTED_IN,
    },
    workerMemory: workerMemory(
      options.given.includes('worker-buffer-memory-mb') ? options.workerBufferMemoryMb : undefined,
      concurrency,
    ),
    tracesContention: options.enableMutexTracing,
    draining: {
      timeMs: options.drainTimeS * 1000,
      strategy: options.drainStrategy === 'immediate' ? 'immediate' : 'gradual',
    },
    drainsOnSigterm: options.drainOnSigterm,
    handsOverConnections: options.handOverConnections && !options.disableHotRestart,
    localAddressFamily: options.localAddressIpVersion,
    dynamic: {
      rejectsUnknown: options.rejectUnknownDynamicFields,
      ignoresUnknown: options.ignoreUnknownDynamicFields,
      skipsDeprecatedLogs: options.skipDeprecatedLogs,
      disabledExtensions: listOf(options.disableExtensions),
    },
    statsTags: options.statsTag,
    adminAllowedHosts: listOf(options.adminAllowedHosts),
    adminMaxConnections: options.adminMaxConnections,
    adminAddressPath: options.adminAddressPath,
    commandLineOptions: commandLineOptions(options, concurrency),
    baseId: options.baseId,
    epoch: options.restartEpoch,
  };
}

/** Parses a text that checkComponentLevels() accepts. */
function componentLevels(text: string): ComponentLevel[] {
  return listOf(text).map((item) => {
    const [component, level] = item.split(':');
    return { component: component as Component, level: parseLevel(level!)! };
  });
}
