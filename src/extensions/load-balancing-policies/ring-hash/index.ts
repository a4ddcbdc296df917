// envoy.load_balancing_policies.ring_hash: consistent hashing with a ring.

import type { RingHash } from '../../../config/generated/api.js';
import { byValue, defineLayout, type LoadBalancingPolicyExtension, refused, UNBOUNDED_HASHES } from '../../sdk.js';
import { HASHING_ROWS, spread, usesHostname } from '../hashing.js';
import { byLocalityWeight, LOCALITY_ROWS } from '../localities.js';
import { HashRing, hostCounts, type RingSettings, type RingSize } from './hash-ring.js';

/** Scope `cluster.<name>.ring_hash_lb.` */
const RingHashStats = defineLayout({
  size: 'own_gauge',
  min_hashes_per_host: 'own_gauge',
  max_hashes_per_host: 'own_gauge',
});

export const ringHash: LoadBalancingPolicyExtension<RingHash, RingSettings> = {
  category: 'envoy.load_balancing_policies',
  name: 'envoy.load_balancing_policies.ring_hash',
  typeUrls: ['type.googleapis.com/envoy.extensions.load_balancing_policies.ring_hash.v3.RingHash'],
  implemented: {
    'envoy.extensions.load_balancing_policies.ring_hash.v3.RingHash': {
      minimum_ring_size: true,
      maximum_ring_size: true,
      hash_function: byValue({ DEFAULT_HASH: true, XX_HASH: true, MURMUR_HASH_2: true }),
      use_hostname_for_hashing: true,
      hash_balance_factor: refused(UNBOUNDED_HASHES),
      consistent_hashing_lb_config: true,
      locality_weighted_lb_config: true,
    },
    ...HASHING_ROWS,
    ...LOCALITY_ROWS,
  },
  picksByHash: true,
  validate(config, report) {
    const { maxSize, minSize } = ringSize(config);
    // An empty ring has no host.
    if (minSize < 1) report('minimum_ring_size', `it must be at least 1, found ${minSize}`, 'maximum_ring_size');
    else if (minSize > maxSize) {
      const what = `minimum_ring_size (${minSize}) > maximum_ring_size (${maxSize})`;
      report('maximum_ring_size', `${what}: set the one to at least the other`, 'minimum_ring_size');
    }
  },
  settings: (config) => ({
    usesHostname: usesHostname(config),
    usesMurmur: config.hash_function === 'MURMUR_HASH_2',
    ...ringSize(config),
  }),
  localities: (config) => byLocalityWeight(config.locality_weighted_lb_config),
  createLoadBalancer: (settings, hosts) => HashRing.build(hosts, settings),
  gauges: {
    prefix: 'ring_hash_lb.',
    layout: RingHashStats,
    measure(settings, hosts, scope) {
      const { min, max, sum } = spread(hostCounts(hosts, settings));
      scope.set(RingHashStats.at.size, sum);
      scope.set(RingHashStats.at.min_hashes_per_host, min);
      scope.set(RingHashStats.at.max_hashes_per_host, max);
    },
  },
};

function ringSize({ maximum_ring_size: max, minimum_ring_size: min }: RingHash): RingSize {
  return { minSize: Number(min ?? 1024), maxSize: Number(max ?? 8 * 1024 * 1024) };
}
