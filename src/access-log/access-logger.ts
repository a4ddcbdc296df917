// Access loggers: what the connection manager and the TCP proxy call when a stream has ended.

import type { AccessLogFile, AccessLogFiles } from './file-log.js';
import { compileFormat, DEFAULT_FORMAT, type Format } from './format.js';
import { compileJsonFormat, type JsonObject } from './json-format.js';
import type { HeaderNeeds } from './operator.js';
import type { StreamInfo } from './stream-info.js';

export interface AccessLogger {
  /** Header names that it reads: heads that nobody reads need not be kept until the stream ends. */
  readonly needs: HeaderNeeds;
  /** Writes the line for a stream that has ended. Heads must still be readable. */
  log(info: StreamInfo): void;
  /** Gives up what the logger holds; it logs no more. */
  close(): void;
}

/** envoy.config.core.v3.SubstitutionFormatString, as far as access logs go. */
export interface SubstitutionFormat {
  readonly text_format?: string;
  readonly text_format_source?: { readonly inline_string?: string };
  readonly json_format?: JsonObject;
  readonly omit_empty_values?: boolean;
}

/** envoy.extensions.access_loggers.file.v3.FileAccessLog. */
export interface FileAccessLogConfig {
  readonly path: string;
  readonly format?: string;
  readonly log_format?: SubstitutionFormat;
}

/** envoy.extensions.access_loggers.stream.v3.StdoutAccessLog and StderrAccessLog. */
export interface StreamAccessLogConfig {
  readonly log_format?: SubstitutionFormat;
}

/** Logs to a file. Throws an Error for a wrong format and for a file that cannot be opened. */
export function createFileAccessLogger(config: FileAccessLogConfig, files: AccessLogFiles): AccessLogger {
  const format =
    config.format === undefined || config.format === ''
      ? compileSubstitutionFormat(config.log_format)
      : compileFormat(config.format);
  return new FileAccessLogger(format, files.open(config.path));
}

/** Logs to standard output. Throws an Error for a wrong format. */
export function createStdoutAccessLogger(config: StreamAccessLogConfig, files: AccessLogFiles): AccessLogger {
  return new FileAccessLogger(compileSubstitutionFormat(config.log_format), files.open('/dev/stdout'));
}

/** Logs to standard error. Throws an Error for a wrong format. */
export function createStderrAccessLogger(config: StreamAccessLogConfig, files: AccessLogFiles): AccessLogger {
  return new FileAccessLogger(compileSubstitutionFormat(config.log_format), files.open('/dev/stderr'));
}

/** The format of a configuration, or the default one without. Throws as compileFormat() and compileJsonFormat() do. */
export function compileSubstitutionFormat(config: SubstitutionFormat | undefined): Format {
  const options = { omitEmptyValues: config?.omit_empty_values === true };
  if (config?.json_format !== undefined) return compileJsonFormat(config.json_format, options);
  return compileFormat(config?.text_format_source?.inline_string ?? config?.text_format ?? DEFAULT_FORMAT, options);
}

class FileAccessLogger implements AccessLogger {
  readonly needs: HeaderNeeds;
  readonly #format: Format;
  readonly #file: AccessLogFile;

  constructor(format: Format, file: AccessLogFile) {
    this.needs = format.needs;
    this.#format = format;
    this.#file = file;
  }

  log(info: StreamInfo): void {
    const file = this.#file;
    this.#format.write(info, file.buffer);
    file.endLine();
  }

  close(): void {
    this.#file.release();
  }
}
