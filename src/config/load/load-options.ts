// The command line options for loading a bootstrap.

import type { UnknownFields } from '../schema/decode.js';

export interface LoadOptions {
  /** The bootstrap file; its extension selects the format. */
  readonly path?: string;
  /** The text of standard input, in place of a file. */
  readonly input?: string | undefined;
  /** How long to wait for the writer of a pipe; undefined: pipes are refused. */
  readonly pipeMs?: number;
  /** The text of --config-yaml: alone, or merged onto the file. */
  readonly yaml?: string;
  /** Whether ${NAME} in values stands for a variable of the environment. */
  readonly expandsEnvironment?: boolean;
  readonly unknownStaticFields?: UnknownFields;
  /** Whether deprecated fields are counted without a warning (--skip-deprecated-logs). */
  readonly skipDeprecatedLogs?: boolean;
  /** The configuration will be served, not only validated. */
  readonly isServed?: boolean;
  /** The log format options that are set: --log-format, or else --log-format-escaped. */
  readonly logFormat?: 'given' | 'escaped' | undefined;
}
