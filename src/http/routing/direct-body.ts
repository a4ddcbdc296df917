// The body of a direct_response: read and measured when the table is made.

import { BatonError, messageOf } from '../../common/errors.js';
import type { DataSource } from '../../config/generated/api.js';

/** @throws BatonError when it can't be had or is longer than `limit`; `where` is its path in the configuration. */
export function directBody(
  source: DataSource | undefined,
  limit: number,
  readFile: ((path: string) => Uint8Array) | undefined,
  where: string,
): Uint8Array {
  const body = source === undefined ? new Uint8Array(0) : bytesOf(source, readFile, where);
  if (body.length > limit) {
    throw new BatonError('CONFIG_INVALID', `the body has ${body.length} bytes, and at most ${limit} are allowed`, {
      where,
      remedy: 'raise max_direct_response_body_size_bytes of the route configuration',
    });
  }
  return body;
}

function bytesOf(source: DataSource, readFile: ((path: string) => Uint8Array) | undefined, where: string): Uint8Array {
  if (source.inline_string !== undefined) return Buffer.from(source.inline_string);
  if (source.inline_bytes !== undefined) return Buffer.from(source.inline_bytes, 'base64');
  if (source.environment_variable !== undefined) {
    const value = process.env[source.environment_variable];
    if (value !== undefined) return Buffer.from(value);
    const message = `the environment variable ${source.environment_variable} is not set`;
    throw new BatonError('CONFIG_INVALID', message, { where: `${where}.environment_variable` });
  }
  if (source.filename !== undefined && readFile !== undefined) {
    try {
      return readFile(source.filename);
    } catch (error) {
      throw new BatonError('CONFIG_UNREADABLE', messageOf(error), { where: `${where}.filename`, cause: error });
    }
  }
  throw new BatonError('CONFIG_INVALID', 'the body needs inline_string, inline_bytes, environment_variable or a file', {
    where,
  });
}
