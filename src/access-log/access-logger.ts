// Access loggers: what the connection manager and the TCP proxy call when a stream has ended.

import type { FileAccessLog, StderrAccessLog, StdoutAccessLog } from '../config/generated/api.js';
import type { AccessLogFile, AccessLogFiles } from './files/file-log.js';
import { compileFormat, type Format } from './formats/format.js';
import { compileJsonFormat } from './formats/json-format.js';
import { compileSubstitutionFormat } from './formats/substitution-format.js';
import type { HeaderNeeds } from './operators/operator.js';
import type { StreamInfo } from './stream/stream-info.js';

export interface AccessLogger {
  /** Header names that it reads: heads that nobody reads need not be kept until the stream ends. */
  readonly needs: HeaderNeeds;
  /** Writes the line for a stream that has ended, whose heads can still be read. What it throws on a worker is logged. */
  log(info: StreamInfo): void;
  /** Gives up what the logger holds; it logs no more. */
  close(): void;
}

/** Logs to a file. Throws a BatonError for a wrong format and for a file that cannot be opened. */
export function createFileAccessLogger(config: FileAccessLog, files: AccessLogFiles): AccessLogger {
  const format = compileFileFormat(config);
  return new FileAccessLogger(format, files.open(config.path ?? ''));
}

/** Logs to standard output. Throws a BatonError for a wrong format. */
export function createStdoutAccessLogger(config: StdoutAccessLog, files: AccessLogFiles): AccessLogger {
  return new FileAccessLogger(compileSubstitutionFormat(config.log_format), files.open('/dev/stdout'));
}

/** Logs to standard error. Throws a BatonError for a wrong format. */
export function createStderrAccessLogger(config: StderrAccessLog, files: AccessLogFiles): AccessLogger {
  return new FileAccessLogger(compileSubstitutionFormat(config.log_format), files.open('/dev/stderr'));
}

/** The format of a file log. Throws a BatonError that says what is wrong with it: also good for checking a configuration. */
export function compileFileFormat(config: FileAccessLog): Format {
  if (config.format) return compileFormat(config.format);
  if (config.json_format !== undefined) return compileJsonFormat(config.json_format, { asStrings: true });
  if (config.typed_json_format !== undefined) return compileJsonFormat(config.typed_json_format);
  return compileSubstitutionFormat(config.log_format);
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
    const { buffer } = file;
    const start = buffer.length;
    try {
      this.#format.write(info, buffer);
    } catch (error) {
      // The next line would stand behind a part of this one.
      buffer.length = start;
      throw error;
    }
    file.endLine();
  }

  close(): void {
    this.#file.release();
  }
}
