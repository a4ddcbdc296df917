// envoy.access_loggers.stdout: access log lines to standard output.

import { compileSubstitutionFormat, createStdoutAccessLogger } from '../../../access-log/access-logger.js';
import type { StdoutAccessLog } from '../../../config/generated/api.js';
import type { AccessLoggerExtension } from '../../factories.js';
import { reportMistakes } from '../../report-mistakes.js';

export const stdoutAccessLog: AccessLoggerExtension<StdoutAccessLog> = {
  category: 'envoy.access_loggers',
  name: 'envoy.access_loggers.stdout',
  typeUrls: ['type.googleapis.com/envoy.extensions.access_loggers.stream.v3.StdoutAccessLog'],
  validate(config, report) {
    reportMistakes(report, 'log_format', () => compileSubstitutionFormat(config.log_format));
  },
  createOnWorker: (config, context) => createStdoutAccessLogger(config, context.accessLogFiles),
  createOnPrimary: (config, context) => createStdoutAccessLogger(config, context.accessLogFiles),
};
