// envoy.access_loggers.stderr: writes access log lines to standard error.

import type { StderrAccessLog } from '../../../config/generated/api.js';
import {
  type AccessLoggerExtension,
  compileSubstitutionFormat,
  createStderrAccessLogger,
  reportMistakes,
} from '../../sdk.js';

export const stderrAccessLog: AccessLoggerExtension<StderrAccessLog> = {
  category: 'envoy.access_loggers',
  name: 'envoy.access_loggers.stderr',
  typeUrls: ['type.googleapis.com/envoy.extensions.access_loggers.stream.v3.StderrAccessLog'],
  validate(config, report) {
    reportMistakes(report, 'log_format', () => compileSubstitutionFormat(config.log_format));
  },
  createOnWorker: (config, context) => createStderrAccessLogger(config, context.accessLogFiles),
  createOnPrimary: (config, context) => createStderrAccessLogger(config, context.accessLogFiles),
};
