// What of a filter chain matters to connections that another process has begun under it.

import { createHash } from 'node:crypto';
import { isRecord } from '../../common/records.js';
import type { Address, FilterChain } from '../../config/generated/api.js';

/**
 * Equal for chains whose connections can change places: same address, same way from the socket to the last filter, and the
 * same kind of filter there. That one decides itself what its configuration must have in common with the former.
 */
export function chainFingerprint(address: Address | undefined, { filters = [], ...chain }: FilterChain): string {
  const terminal = filters.at(-1)?.typed_config?.['@type'] ?? '';
  const meant = { address, chain, filters: filters.slice(0, -1), terminal };
  return createHash('sha256').update(JSON.stringify(meant, sorted)).digest('base64');
}

/** The order in which fields were written says nothing. */
function sorted(_key: string, value: unknown): unknown {
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)));
}
