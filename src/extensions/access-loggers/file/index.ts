// envoy.access_loggers.file: access log lines to a file, appended to by all workers.

import { createFileAccessLogger } from '../../../access-log/access-logger.js';
import type { FileAccessLog } from '../../../config/generated/api.js';
import type { AccessLoggerExtension } from '../../factories.js';

export const fileAccessLog: AccessLoggerExtension<FileAccessLog> = {
  category: 'envoy.access_loggers',
  name: 'envoy.access_loggers.file',
  typeUrls: ['type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog'],
  createOnWorker: (config, context) => createFileAccessLogger(config, context.accessLogFiles),
};
