// envoy.access_loggers.file: writes access log lines to a file, to which all workers append.

import type { FileAccessLog } from '../../../config/generated/api.js';
import { type AccessLoggerExtension, compileFileFormat, createFileAccessLogger, reportMistakes } from '../../sdk.js';

export const fileAccessLog: AccessLoggerExtension<FileAccessLog> = {
  category: 'envoy.access_loggers',
  name: 'envoy.access_loggers.file',
  typeUrls: ['type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog'],
  validate(config, report) {
    const field = (['format', 'json_format', 'typed_json_format'] as const).find((name) => config[name] !== undefined);
    reportMistakes(report, field ?? 'log_format', () => compileFileFormat(config));
  },
  createOnWorker: (config, context) => createFileAccessLogger(config, context.accessLogFiles),
  createOnPrimary: (config, context) => createFileAccessLogger(config, context.accessLogFiles),
};
