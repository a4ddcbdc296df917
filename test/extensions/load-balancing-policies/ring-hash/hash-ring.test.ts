// The ring-hash policy: places as in Envoy, sizes, and construction in steps.

import fc from 'fast-check';
import t from 'tap';
import { Word64, xxh64Text } from '../../../../src/common/xxh64.js';
import { HashRing, ringCounts } from '../../../../src/extensions/load-balancing-policies/ring-hash/hash-ring.js';
import { ringHash } from '../../../../src/extensions/load-balancing-policies/ring-hash/index.js';
import { hashBalancerOf, hostList, hostsOf, PORTS } from '../hosts.js';

t.test('places on a ring are the same as in Envoy', async (t) => {
  const { at } = hashBalancerOf(ringHash, { minimum_ring_size: '12' }, PORTS);
  // From test/extensions/load_balancing_policies/ring_hash/ring_hash_lb_test.cc in Envoy.
  const places: [port: number, place: bigint][] = [
    [94, 833437586790550860n],
    [92, 928266305478181108n],
    [90, 1033482794131418490n],
    [95, 3551244743356806947n],
    [93, 3851675632748031481n],
    [91, 5583722120771150861n],
    [91, 6311230543546372928n],
    [93, 7700377290971790572n],
    [95, 13144177310400110813n],
    [92, 13444792449719432967n],
    [94, 15516499411664133160n],
    [90, 16117243373044804889n],
  ];
  for (const [index, [port, place]] of places.entries()) {
    const next = places[(index + 1) % places.length]![0];
    t.equal(at(place), `127.0.0.1:${port}`);
    t.equal(at(place + 1n), `127.0.0.1:${next}`, 'after it the next one begins');
    t.equal(at(place, 1), `127.0.0.1:${next}`, 'a retry picks the next one');
  }
  t.equal(at(0n), '127.0.0.1:94');
  t.equal(at(2n ** 64n - 1n), '127.0.0.1:94');
});

t.test('a ring keeps its size limits with any weights', async (t) => {
  const sum = (counts: Uint32Array) => counts.reduce((total, count) => total + count, 0);
  const sizes = { minSize: 1024, maxSize: 8 * 1024 * 1024 };
  t.same(ringCounts(Uint32Array.of(1, 1, 1), sizes), Uint32Array.of(342, 342, 342));
  t.same(ringCounts(Uint32Array.of(1, 2), { minSize: 3, maxSize: 3 }), Uint32Array.of(1, 2));
  t.same(
    ringCounts(Uint32Array.of(1, 1, 1, 1), { minSize: 1, maxSize: 2 }),
    Uint32Array.of(1, 0, 1, 0),
    'too small for all',
  );
  t.equal(sum(ringCounts(new Uint32Array(10_000).fill(1), sizes)), 10_000);
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 2 ** 32 - 1 }), { minLength: 1, maxLength: 50 }), (weights) => {
      const count = sum(ringCounts(Uint32Array.from(weights), { minSize: 100, maxSize: 1000 }));
      return count >= 100 && count <= 1001;
    }),
  );
});

t.test('a large ring is built in steps, with its places in order', async (t) => {
  const hosts = hostsOf(300);
  const settings = { usesHostname: false, usesMurmur: false, minSize: 300_000, maxSize: 8 * 1024 * 1024 };
  const steps = HashRing.build(hostList(hosts), settings);
  let count = 0;
  let step = steps.next();
  for (; step.done !== true; step = steps.next()) count++;
  t.ok(count > 50, `${count} steps`);
  const { at } = hashBalancerOf(ringHash, { minimum_ring_size: '300000' }, hosts);
  const places = hosts.flatMap(({ key }) =>
    Array.from({ length: 1000 }, (_, number) => {
      const hash = new Word64();
      xxh64Text(`${key}_${number}`, hash);
      return { key, place: (BigInt(hash.hi >>> 0) << 32n) | BigInt(hash.lo >>> 0) };
    }),
  );
  for (const { key, place } of places) if (at(place) !== key) t.fail(`${key} has no place at ${place}`);
});
