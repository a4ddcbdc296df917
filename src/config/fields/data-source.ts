// Reads a DataSource: bytes in the configuration, in a file, or in an environment variable.

import { BatonError, messageOf } from '../../common/errors/errors.js';
import { readRegularFile } from '../../common/files/regular-file.js';
import type { DataSource } from '../generated/api.js';

/**
 * Reads the data synchronously.
 * @param where its path in the configuration, for messages
 * @throws BatonError if it cannot be read
 */
export function readDataSource(source: DataSource, where?: string): Buffer {
  const { environment_variable: variable, filename, inline_bytes: bytes, inline_string: text = '' } = source;
  if (bytes !== undefined) return Buffer.from(bytes, 'base64');
  if (variable !== undefined) {
    const value = process.env[variable];
    if (value !== undefined) return Buffer.from(value);
    const message = `the environment variable ${variable} is not set`;
    throw new BatonError('CONFIG_INVALID', message, { where: where && `${where}.environment_variable` });
  }
  if (filename === undefined) return Buffer.from(text);
  try {
    return readRegularFile(filename);
  } catch (error) {
    const message = `unable to read file: ${messageOf(error)}`;
    throw new BatonError('CONFIG_UNREADABLE', message, { where: where && `${where}.filename`, cause: error });
  }
}
