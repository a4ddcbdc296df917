// Guarantees of every policy that picks by hash.

import t from 'tap';
import { maglev } from '../../../src/extensions/load-balancing-policies/maglev/index.js';
import { ringHash } from '../../../src/extensions/load-balancing-policies/ring-hash/index.js';
import type { LoadBalancingPolicy } from '../../../src/upstream/load-balancer/policy.js';
import { hashBalancerOf, hostsOf, type TestHost } from './hosts.js';

for (const policy of [ringHash, maglev] as LoadBalancingPolicy[]) {
  const balancerOf = (hosts: readonly TestHost[], config = {}) => hashBalancerOf(policy, config, hosts);
  const { name } = policy;

  t.test(
    `${name}: a hash is assigned to the same host in every thread and process, in any order of hosts`,
    async (t) => {
      const hosts = hostsOf(50, (i) => 1 + (i % 3));
      const first = balancerOf(hosts);
      const again = balancerOf(hosts);
      const reverse = balancerOf(hosts.toReversed());
      let moved = 0;
      for (let i = 0; i < 2000; i++) {
        t.equal(again.of(`user-${i}`), first.of(`user-${i}`));
        if (reverse.of(`user-${i}`) !== first.of(`user-${i}`)) moved++;
      }
      // If weights yield fractional numbers of places, the order decides which host gets one more.
      t.ok(moved <= (policy === maglev ? 0 : 200), `${moved} of 2000 moved`);
    },
  );

  t.test(`${name}: hosts get requests in proportion to their weights, with and without a hash`, async (t) => {
    const { of, any } = balancerOf(
      hostsOf(4, (i) => i + 1),
      { minimum_ring_size: '65536' },
    );
    for (const pick of [(i: number) => of(`user-${i}`), any]) {
      const counts = new Map<string, number>();
      for (let i = 0; i < 20_000; i++) {
        const host = pick(i);
        counts.set(host, (counts.get(host) ?? 0) + 1);
      }
      for (let i = 0; i < 4; i++) {
        const share = counts.get(`10.0.0.${i}:80`)! / 20_000;
        t.ok(Math.abs(share - (i + 1) / 10) < 0.02, `host ${i}: ${share}`);
      }
    }
  });

  t.test(`${name}: removing a host moves hardly any requests of other hosts`, async (t) => {
    const hosts = hostsOf(20);
    const before = balancerOf(hosts);
    const after = balancerOf(hosts.slice(1));
    const gone = hosts[0]!.key;
    let others = 0;
    for (let i = 0; i < 10_000; i++) {
      const host = before.of(`user-${i}`);
      const next = after.of(`user-${i}`);
      if (host === gone) t.not(next, gone);
      else if (next !== host) others++;
    }
    // With a ring, because each of the fewer hosts has more places: the total stays the same.
    t.ok(others <= 500, `${others} of 10000 moved`);
  });

  t.test(`${name}: a single host, and hosts with one key, get all requests`, async (t) => {
    t.equal(balancerOf(hostsOf(1)).of('x'), '10.0.0.0:80');
    t.equal(balancerOf(hostsOf(1)).any(), '10.0.0.0:80');
    const twins = balancerOf(Array.from({ length: 30 }, () => ({ key: 'twin' })));
    for (let i = 0; i < 100; i++) t.equal(twins.of(`user-${i}`), 'twin');
  });
}
