// Reads the body of a direct_response when the route table is built.

import { BatonError } from '../../../common/errors/errors.js';
import { readDataSource } from '../../../config/fields/data-source.js';
import type { DataSource } from '../../../config/generated/api.js';

/** @throws BatonError if the body cannot be read or is longer than `limit`; `where` is its path in the configuration. */
export function directBody(source: DataSource | undefined, limit: number, where: string): Uint8Array {
  const body = source === undefined ? new Uint8Array(0) : readDataSource(source, where);
  if (body.length > limit) {
    throw new BatonError('CONFIG_INVALID', `the body has ${body.length} bytes, and at most ${limit} are allowed`, {
      where,
      remedy: 'raise max_direct_response_body_size_bytes of the route configuration',
    });
  }
  return body;
}
