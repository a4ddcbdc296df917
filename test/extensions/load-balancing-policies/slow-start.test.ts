// Slow start of hosts that were just added or have passed their health checks again.

import t from 'tap';
import { Random } from '../../../src/common/random.js';
import type { SlowStartConfig } from '../../../src/config/generated/api.js';
import { leastRequest } from '../../../src/extensions/load-balancing-policies/least-request/index.js';
import { roundRobin } from '../../../src/extensions/load-balancing-policies/round-robin/index.js';
import { slowStartSettings } from '../../../src/extensions/load-balancing-policies/slow-start.js';
import { Runtime } from '../../../src/runtime/runtime.js';
import type { LoadBalancer } from '../../../src/upstream/load-balancer/load-balancer.js';
import type { LoadBalancingPolicy } from '../../../src/upstream/load-balancer/policy.js';
import { setValues } from '../../runtime/values.js';
import { hostList, hostsOf, tally } from './hosts.js';

const POLICIES = [roundRobin, leastRequest] as unknown as LoadBalancingPolicy[];

/** A load balancer for hosts that are healthy since these times; window: 100 s. */
function starting(policy: LoadBalancingPolicy, sinceMs: readonly number[], config: SlowStartConfig = {}) {
  const random = new Random(4);
  const clock = { monotonicMs: 0 };
  const runtime = new Runtime();
  const words = new Int32Array(new SharedArrayBuffer(4 * sinceMs.length));
  const settings = policy.settings?.({ slow_start_config: { slow_start_window: '100s', ...config } });
  const hosts = { ...hostList(hostsOf(sinceMs.length)), healthySinceMs: Float64Array.from(sinceMs) };
  const balancer = policy.createLoadBalancer(settings, hosts, { words, random, clock, runtime, runtimeNumber: 1 });
  const pick = () => (balancer as LoadBalancer).pick(random) - 100;
  /** Returns how many of 1000 requests host 1 gets for 1000 of host 0, at that time. */
  const share = (nowMs: number) => {
    clock.monotonicMs = nowMs;
    tally(pick, 100, sinceMs.length);
    const [old, young] = tally(pick, 2000, sinceMs.length) as [number, number];
    return Math.round((1000 * young) / old);
  };
  return { pick, runtime, share };
}

t.test('the share of a young host grows with its age', async (t) => {
  for (const policy of POLICIES) {
    const { share } = starting(policy, [-200_000, 0]);
    for (const [nowMs, expected] of [
      [1000, 100],
      [20_000, 200],
      [50_000, 500],
      [100_000, 1000],
      [500_000, 1000],
    ] as const) {
      t.ok(Math.abs(share(nowMs) - expected) <= 30, `${policy.name} after ${nowMs} ms: ${share(nowMs)}`);
    }
  }
});

t.test('aggression bends the growth, and can be changed by runtime', async (t) => {
  const aggression = { default_value: 2, runtime_key: 'aggression' };
  const { runtime, share } = starting(POLICIES[0]!, [-200_000, 0], { aggression });
  t.ok(Math.abs(share(25_000) - 500) <= 30, 'the root of a quarter');
  setValues(runtime, { aggression: '1' });
  t.ok(Math.abs(share(25_000) - 250) <= 30);
  setValues(runtime, { aggression: '-3' });
  t.ok(Math.abs(share(25_000) - 250) <= 30, 'an invalid one counts as 1');
});

t.test('a host has at least min_weight_percent of its weight', async (t) => {
  const { share } = starting(POLICIES[0]!, [-200_000, 0], { min_weight_percent: { value: 40 } });
  t.ok(Math.abs(share(10_000) - 400) <= 30);
  const none = starting(POLICIES[0]!, [-200_000, 0], { min_weight_percent: { value: 0 } });
  t.ok(none.share(1000) < 20);
});

t.test('without a host in slow start, the load balancer is the usual one', async (t) => {
  const { pick } = starting(POLICIES[0]!, [-200_000, -100_000, Number.NEGATIVE_INFINITY]);
  const first = [pick(), pick(), pick()];
  t.same([pick(), pick(), pick()], first, 'hosts take turns');
});

t.test('a window of 0 disables slow start', async (t) => {
  t.equal(slowStartSettings({ slow_start_window: '0s', min_weight_percent: { value: 5 } }), undefined);
  t.equal(slowStartSettings(undefined), undefined);
});
