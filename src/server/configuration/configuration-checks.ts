// Checks of a whole bootstrap at load time that find what start-up would refuse, by building what start-up builds.

import { checkWritable } from '../../access-log/files/writable.js';
import { reportMissingFiles } from '../../config/checks/services/config-sources.js';
import type { BootstrapCheck } from '../../config/load/bootstrap-check.js';
import { loadSchema } from '../../config/schema/schema.js';
import { formatPath } from '../../config/text/path.js';
import { EXTENSIONS } from '../../extensions/index.js';
import { reportLogFiles } from '../../extensions/log-files.js';
import { reportLogFilters } from '../../extensions/log-filters.js';
import { ExtensionRegistry } from '../../extensions/registry.js';
import { reportMistakes } from '../../extensions/report-mistakes.js';
import { applicationLogFormat } from '../../log/application-log.js';
import { checkStatsConfig } from '../../stats/settings/check-config.js';
import { checkTlsContexts } from './check-tls-contexts.js';

/** In the order in which they run. Their errors are reported in order of position. */
export const CONFIGURATION_CHECKS: readonly BootstrapCheck[] = [
  checkApplicationLog,
  checkStatsConfig,
  checkAdminAccessLog,
  checkListenerLogs,
  checkLogFiles,
  checkTlsContexts,
  checkResourceFiles,
];

/** Checks that the log format compiles, and that the command line does not set another one. */
function checkApplicationLog(
  ...[{ application_log_config: config }, report, options]: Parameters<BootstrapCheck>
): void {
  if (config?.log_format === undefined) return;
  const path = 'application_log_config';
  if (options.logFormat === 'given') {
    report(`${path}.log_format`, 'only one of log_format and the option --log-format can be given');
  }
  if (options.logFormat === 'escaped' && config.log_format.json_format) {
    report(`${path}.log_format.json_format`, 'the option --log-format-escaped would escape the quotes of JSON');
  }
  reportMistakes(report, path, () => applicationLogFormat(config));
}

/** Refuses access loggers that need a worker: the primary answers admin requests. Checks that their filters compile. */
function checkAdminAccessLog(...[{ admin }, report]: Parameters<BootstrapCheck>): void {
  const extensions = new ExtensionRegistry(EXTENSIONS);
  for (const [index, { typed_config }] of (admin?.access_log ?? []).entries()) {
    if (extensions.accessLogger(typed_config!).createOnPrimary !== undefined) continue;
    report(`admin.access_log[${index}]`, 'Baton does not implement this access logger for the admin interface');
  }
  reportLogFilters(admin?.access_log, 'admin.access_log', report);
}

/** Checks that the filters of the access logs of listeners compile. */
function checkListenerLogs(...[{ static_resources: resources }, report]: Parameters<BootstrapCheck>): void {
  for (const [index, listener] of (resources?.listeners ?? []).entries()) {
    reportLogFilters(listener.access_log, `static_resources.listeners[${index}].access_log`, report);
  }
}

/** Checks, without opening them, that the log files of listeners and of the admin interface can be opened. */
function checkLogFiles(...[{ admin, static_resources: resources }, report]: Parameters<BootstrapCheck>): void {
  reportLogFiles(admin, ['admin'], report);
  const path = admin?.access_log_path ?? '';
  if (path !== '') reportMistakes(report, 'admin.access_log_path', () => checkWritable(path));
  reportLogFiles(resources?.listeners, ['static_resources', 'listeners'], report);
}

/** Refuses sources whose file does not exist. As in Envoy, --mode validate does not look for the file of listeners. */
function checkResourceFiles(...[bootstrap, report, options]: Parameters<BootstrapCheck>): void {
  reportMissingFiles(loadSchema(), 'envoy.config.bootstrap.v3.Bootstrap', bootstrap, (path, message) => {
    const isOfListeners = path[0] === 'dynamic_resources' && path[1] === 'lds_config';
    if (!isOfListeners || options.isServed === true) report(formatPath(path), message);
  });
}
