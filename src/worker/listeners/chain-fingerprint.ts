// Fingerprints the properties of a filter chain that matter to connections handed over from another process.

import { createHash } from 'node:crypto';
import { isRecord } from '../../common/records.js';
import type { Address, FilterChain } from '../../config/generated/api.js';

/**
 * Returns a hash that is equal for chains between which connections can move: the same address, the same path from the socket to
 * the last filter, and the same kind of last filter. That filter itself checks its configuration.
 */
export function chainFingerprint(address: Address | undefined, { filters = [], ...chain }: FilterChain): string {
  const terminal = filters.at(-1)?.typed_config?.['@type'] ?? '';
  const relevant = { address, chain, filters: filters.slice(0, -1), terminal };
  return createHash('sha256').update(JSON.stringify(relevant, sorted)).digest('base64');
}

/** Sorts fields, because their order has no meaning. */
function sorted(_key: string, value: unknown): unknown {
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)));
}
