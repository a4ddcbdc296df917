// The common part of the policies that pick by hash.

import type { ConsistentHashingLbConfig } from '../../config/generated/api.js';
import { type ImplementedTable, refused, UNBOUNDED_HASHES } from '../sdk.js';

/** Fields of a policy's message that determine by what key hosts are hashed. */
interface HashingFields extends Pick<ConsistentHashingLbConfig, 'use_hostname_for_hashing'> {
  /** Overrides the older fields beside it. */
  readonly consistent_hashing_lb_config?: ConsistentHashingLbConfig;
}

export const HASHING_ROWS = {
  'envoy.extensions.load_balancing_policies.common.v3.ConsistentHashingLbConfig': {
    use_hostname_for_hashing: true,
    hash_balance_factor: refused(UNBOUNDED_HASHES),
    hash_policy: refused('set hash_policy of the routes that lead to the cluster'),
  },
} satisfies ImplementedTable;

/** Returns whether hosts are hashed by their names instead of their addresses. */
export function usesHostname(config: HashingFields): boolean {
  return (config.consistent_hashing_lb_config ?? config).use_hostname_for_hashing ?? false;
}

/** Returns the minimum, the maximum and the sum of `counts`; 0 if it is empty. */
export function spread(counts: Uint32Array) {
  let min = counts[0] ?? 0;
  let max = 0;
  let sum = 0;
  for (const count of counts) {
    min = Math.min(min, count);
    max = Math.max(max, count);
    sum += count;
  }
  return { min, max, sum };
}
