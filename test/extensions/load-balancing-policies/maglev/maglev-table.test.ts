// The Maglev policy: entries as in Envoy.

import fc from 'fast-check';
import t from 'tap';
import { maglev } from '../../../../src/extensions/load-balancing-policies/maglev/index.js';
import { maglevCounts } from '../../../../src/extensions/load-balancing-policies/maglev/maglev-table.js';
import { hashBalancerOf, hostList, hostsOf, PORTS } from '../hosts.js';

t.test('entries of a table are the same as in Envoy', async (t) => {
  const { at } = hashBalancerOf(maglev, { table_size: '7' }, PORTS);
  const table = [92, 94, 90, 91, 95, 90, 93];
  for (let number = 0n; number < 21n; number++) {
    t.equal(at(number), `127.0.0.1:${table[Number(number % 7n)]}`);
    // Envoy's formula: hash ^ (2^64 - attempt).
    for (const attempt of [1, 2, 9]) {
      const other = number ^ (2n ** 64n - BigInt(attempt));
      t.equal(at(number, attempt), `127.0.0.1:${table[Number(other % 7n)]}`);
    }
  }
});

t.test('computed numbers of entries equal those of a table', async () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 20 }),
      fc.constantFrom(2, 7, 101, 1009),
      (weights, tableSize) => {
        const hosts = hostsOf(weights.length, (i) => weights[i]!);
        const { at } = hashBalancerOf(maglev, { table_size: String(tableSize) }, hosts);
        const counts = new Map(hosts.map(({ key }) => [key, 0]));
        for (let i = 0; i < tableSize; i++) counts.set(at(BigInt(i)), counts.get(at(BigInt(i)))! + 1);
        const computed = maglevCounts(hostList(hosts), { usesHostname: false, tableSize });
        return [...counts.values()].join() === computed.join();
      },
    ),
  );
});
