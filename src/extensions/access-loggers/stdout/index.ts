// envoy.access_loggers.stdout: writes access log lines to standard output.

import type { StdoutAccessLog } from '../../../config/generated/api.js';
import {
  type AccessLoggerExtension,
  compileSubstitutionFormat,
  createStdoutAccessLogger,
  reportMistakes,
} from '../../sdk.js';

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
