// Loaded into Baton before its own code (--import): a load-balancing policy that gives a host as many requests as the runtime
// key `fill.requests` says (default 2) before it uses the next one. Its message is that of pick_first: with
// shuffle_address_list it begins with the last host.

import type { PickFirst } from '../../../src/config/generated/api.js';
import { EXTENSIONS } from '../../../src/extensions/index.js';
import { defineLayout, type HostList, type LoadBalancingPolicyExtension } from '../../../src/extensions/sdk.js';
import { partialTable } from '../../config/partial-table.js';

const TYPE = 'envoy.extensions.load_balancing_policies.pick_first.v3.PickFirst';
const Stats = defineLayout({ hosts: 'own_gauge' });

const filling: LoadBalancingPolicyExtension<PickFirst, { readonly isReverse: boolean }> = {
  category: 'envoy.load_balancing_policies',
  name: 'acme.filling',
  typeUrls: [`type.googleapis.com/${TYPE}`],
  implemented: partialTable({ [TYPE]: { shuffle_address_list: true } }),
  countsActiveRequests: true,
  settings: ({ shuffle_address_list: isReverse = false }) => ({ isReverse }),
  runtimeNumber: () => ({ runtimeKey: 'fill.requests', value: 2 }),
  *createLoadBalancer({ isReverse }, list: HostList, { runtimeNumber: most, words }) {
    const { activeWords, hosts } = list;
    const order = isReverse ? hosts.map((_, item) => hosts.length - 1 - item) : hosts.map((_, item) => item);
    yield;
    return { pick: () => hosts[order.find((item) => Atomics.load(words, activeWords[item]!) < most) ?? 0]! };
  },
  gauges: {
    prefix: 'filling.',
    layout: Stats,
    measure: (_settings, { hosts }, scope) => scope.set(Stats.at.hosts, hosts.length),
  },
};

(EXTENSIONS as LoadBalancingPolicyExtension[]).push(filling as LoadBalancingPolicyExtension);
