// envoy.access_loggers.stderr: access log lines to standard error.

import { createStderrAccessLogger } from '../../../access-log/access-logger.js';
import type { StderrAccessLog } from '../../../config/generated/api.js';
import type { AccessLoggerExtension } from '../../factories.js';

export const stderrAccessLog: AccessLoggerExtension<StderrAccessLog> = {
  category: 'envoy.access_loggers',
  name: 'envoy.access_loggers.stderr',
  typeUrls: ['type.googleapis.com/envoy.extensions.access_loggers.stream.v3.StderrAccessLog'],
  createOnWorker: (config, context) => createStderrAccessLogger(config, context.accessLogFiles),
};
