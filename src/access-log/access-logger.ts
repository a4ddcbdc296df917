// Access loggers, which the connection manager and the TCP proxy call when a stream has ended.

import type { FileAccessLog, StderrAccessLog, StdoutAccessLog } from '../config/generated/api.js';
import type { AccessLogFile, AccessLogFiles } from './files/file-log.js';
import { compileFormat, type Format } from './formats/format.js';
import { compileJsonFormat } from './formats/json-format.js';
import { compileLogFormat } from './formats/substitution-format.js';
import type { HeaderNeeds } from './operators/operator.js';
import type { StreamInfo } from './stream/stream-info.js';

/** Logs finished streams. */
export interface AccessLogger {
  /** The header names that it reads. Heads without readers are not kept until the stream ends. */
  readonly needs: HeaderNeeds;
  /** Logs a finished stream, whose heads are valid until this returns. On a worker, exceptions are logged. */
  log(info: StreamInfo): void;
  /** Releases the logger's resources. log() is not called afterwards. */
  close(): void;
}

/** Creates a logger to a file. Throws a BatonError for an invalid format or a file that cannot be opened. */
export function createFileAccessLogger(config: FileAccessLog, files: AccessLogFiles): AccessLogger {
  const format = compileFileFormat(config);
  return new FileAccessLogger(format, files.open(config.path ?? ''));
}

/** Creates a logger to standard output. Throws a BatonError for an invalid format. */
export function createStdoutAccessLogger(config: StdoutAccessLog, files: AccessLogFiles): AccessLogger {
  return new FileAccessLogger(compileLogFormat(config.log_format), files.open('/dev/stdout'));
}

/** Creates a logger to standard error. Throws a BatonError for an invalid format. */
export function createStderrAccessLogger(config: StderrAccessLog, files: AccessLogFiles): AccessLogger {
  return new FileAccessLogger(compileLogFormat(config.log_format), files.open('/dev/stderr'));
}

/** Compiles the format of a file logger. Throws a BatonError if it is invalid; validate() may use this too. */
export function compileFileFormat(config: FileAccessLog): Format {
  if (config.format) return compileFormat(config.format, { isLine: true });
  if (config.json_format !== undefined) return compileJsonFormat(config.json_format, { asStrings: true });
  if (config.typed_json_format !== undefined) return compileJsonFormat(config.typed_json_format);
  return compileLogFormat(config.log_format);
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
      // Removes the partial line.
      buffer.length = start;
      throw error;
    }
    file.endLine();
  }

  close(): void {
    this.#file.release();
  }
}
