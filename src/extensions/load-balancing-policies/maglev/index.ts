// envoy.load_balancing_policies.maglev: consistent hashing with a table.

import type { Maglev } from '../../../config/generated/api.js';
import { defineLayout, type LoadBalancingPolicyExtension } from '../../sdk.js';
import { HASHING_ROWS, spread, usesHostname } from '../hashing.js';
import { byLocalityWeight, LOCALITY_ROWS } from '../localities.js';
import { MaglevTable, maglevCounts, type TableSettings } from './maglev-table.js';

/** Scope `cluster.<name>.maglev_lb.` */
const MaglevStats = defineLayout({
  min_entries_per_host: 'own_gauge',
  max_entries_per_host: 'own_gauge',
});

export const maglev: LoadBalancingPolicyExtension<Maglev, TableSettings> = {
  category: 'envoy.load_balancing_policies',
  name: 'envoy.load_balancing_policies.maglev',
  typeUrls: ['type.googleapis.com/envoy.extensions.load_balancing_policies.maglev.v3.Maglev'],
  implemented: {
    'envoy.extensions.load_balancing_policies.maglev.v3.Maglev': {
      table_size: true,
      consistent_hashing_lb_config: true,
      locality_weighted_lb_config: true,
    },
    ...HASHING_ROWS,
    ...LOCALITY_ROWS,
  },
  picksByHash: true,
  validate(config, report) {
    const size = tableSize(config);
    if (!isPrime(size)) report('table_size', `it must be a prime number, found ${size}`);
  },
  settings: (config) => ({ usesHostname: usesHostname(config), tableSize: tableSize(config) }),
  localities: (config) => byLocalityWeight(config.locality_weighted_lb_config),
  createLoadBalancer: (settings, hosts) => MaglevTable.build(hosts, settings),
  gauges: {
    prefix: 'maglev_lb.',
    layout: MaglevStats,
    measure(settings, hosts, scope) {
      const { min, max } = spread(maglevCounts(hosts, settings));
      scope.set(MaglevStats.at.min_entries_per_host, min);
      scope.set(MaglevStats.at.max_entries_per_host, max);
    },
  },
};

function tableSize(config: Maglev): number {
  return Number(config.table_size ?? 65_537);
}

/** A table size must be prime: a host whose step divides the size would never reach some entries. */
function isPrime(number: number): boolean {
  if (!(number >= 2)) return false;
  for (let divisor = 2; divisor * divisor <= number; divisor++) if (number % divisor === 0) return false;
  return true;
}
