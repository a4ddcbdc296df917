// What policies that pick by hash have in common.

import type { ConsistentHashingLbConfig } from '../../config/generated/api.js';
import { type ImplementedTable, refused, UNBOUNDED_HASHES } from '../sdk.js';

/** Fields of a policy's message that say what hosts are known by. */
interface HashingFields extends Pick<ConsistentHashingLbConfig, 'use_hostname_for_hashing'> {
  /** It counts instead of the older fields beside it. */
  readonly consistent_hashing_lb_config?: ConsistentHashingLbConfig;
}

export const HASHING_ROWS = {
  'envoy.extensions.load_balancing_policies.common.v3.ConsistentHashingLbConfig': {
    use_hostname_for_hashing: true,
    hash_balance_factor: refused(UNBOUNDED_HASHES),
    hash_policy: refused('set hash_policy of the routes that lead to the cluster'),
  },
} satisfies ImplementedTable;

/** Hosts are known by their names rather than by their addresses. */
export function usesHostname(config: HashingFields): boolean {
  return (config.consistent_hashing_lb_config ?? config).use_hostname_for_hashing ?? false;
}

/** The least and the most of some numbers, and their sum; 0 of none. */
export function spread(counts: Uint32Array) {
  let least = counts[0] ?? 0;
  let most = 0;
  let sum = 0;
  for (const count of counts) {
    least = Math.min(least, count);
    most = Math.max(most, count);
    sum += count;
  }
  return { least, most, sum };
}
