// Access loggers: what the connection manager and the TCP proxy call when a stream has ended.

import { readDataSource } from '../config/data-source.js';
import type { AccessLogFile, AccessLogFiles } from './file-log.js';
import { compileFormat, DEFAULT_FORMAT, type Format } from './format.js';
import { placed } from './format-error.js';
import { compileJsonFormat, type JsonObject } from './json-format.js';
import type { HeaderNeeds } from './operator.js';
import type { StreamInfo } from './stream-info.js';

export interface AccessLogger {
  /** Header names that it reads: heads that nobody reads need not be kept until the stream ends. */
  readonly needs: HeaderNeeds;
  /** Writes the line for a stream that has ended, whose heads can still be read. What it throws on a worker is logged. */
  log(info: StreamInfo): void;
  /** Gives up what the logger holds; it logs no more. */
  close(): void;
}

/** envoy.config.core.v3.SubstitutionFormatString, as far as access logs go. */
export interface SubstitutionFormat {
  readonly text_format?: string;
  readonly text_format_source?: TextSource;
  readonly json_format?: JsonObject;
  readonly omit_empty_values?: boolean;
}

/** envoy.config.core.v3.DataSource: one of the fields. */
export interface TextSource {
  readonly filename?: string;
  readonly inline_string?: string;
  /** In base64. */
  readonly inline_bytes?: string;
  readonly environment_variable?: string;
}

/** envoy.extensions.access_loggers.file.v3.FileAccessLog: at most one of the formats. */
export interface FileAccessLogConfig {
  readonly path?: string;
  readonly format?: string;
  readonly json_format?: JsonObject;
  readonly typed_json_format?: JsonObject;
  readonly log_format?: SubstitutionFormat;
}

/** envoy.extensions.access_loggers.stream.v3.StdoutAccessLog and StderrAccessLog. */
export interface StreamAccessLogConfig {
  readonly log_format?: SubstitutionFormat;
}

/** Logs to a file. Throws a BatonError for a wrong format and for a file that cannot be opened. */
export function createFileAccessLogger(config: FileAccessLogConfig, files: AccessLogFiles): AccessLogger {
  const format = compileFileFormat(config);
  return new FileAccessLogger(format, files.open(config.path ?? ''));
}

/** Logs to standard output. Throws a BatonError for a wrong format. */
export function createStdoutAccessLogger(config: StreamAccessLogConfig, files: AccessLogFiles): AccessLogger {
  return new FileAccessLogger(compileSubstitutionFormat(config.log_format), files.open('/dev/stdout'));
}

/** Logs to standard error. Throws a BatonError for a wrong format. */
export function createStderrAccessLogger(config: StreamAccessLogConfig, files: AccessLogFiles): AccessLogger {
  return new FileAccessLogger(compileSubstitutionFormat(config.log_format), files.open('/dev/stderr'));
}

/** The format of a file log. Throws a BatonError that says what is wrong with it: also good for checking a configuration. */
export function compileFileFormat(config: FileAccessLogConfig): Format {
  if (config.format) return compileFormat(config.format);
  if (config.json_format !== undefined) return compileJsonFormat(config.json_format, { asStrings: true });
  if (config.typed_json_format !== undefined) return compileJsonFormat(config.typed_json_format);
  return compileSubstitutionFormat(config.log_format);
}

/** The format of a configuration, or the default one without. Throws as compileFileFormat() does. */
export function compileSubstitutionFormat(config: SubstitutionFormat | undefined): Format {
  const options = { omitEmptyValues: config?.omit_empty_values === true };
  if (config?.json_format !== undefined)
    return compileJsonFormat(config.json_format, { ...options, where: ['json_format'] });
  const { text_format_source: source, text_format: text = DEFAULT_FORMAT } = config ?? {};
  if (source === undefined) return placed('text_format', () => compileFormat(text, options));
  return placed('text_format_source', () => compileFormat(readDataSource(source).toString(), options));
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
