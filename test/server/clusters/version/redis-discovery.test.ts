// Whom a Redis cluster asks for its nodes, and what it makes of an answer.

import t from 'tap';
import { Random } from '../../../../src/common/random.js';
import { addressText } from '../../../../src/io/addresses/address.js';
import { TimingWheel } from '../../../../src/io/time/timing-wheel.js';
import type { RedisQuestion } from '../../../../src/server/clusters/health-checks/check-thread.js';
import type { ClusterResources } from '../../../../src/server/clusters/version/cluster-resources.js';
import type { DiscoveryContext, FoundHosts } from '../../../../src/server/clusters/version/discovery.js';
import { RedisDiscovery } from '../../../../src/server/clusters/version/redis-discovery.js';
import { discoverySpec } from '../../../../src/upstream/discovery-config.js';
import { waitFor } from '../../../e2e/harness/index.js';

const string = (text: string) => `$${text.length}\r\n${text}\r\n`;
const node = (port: number) => `*2\r\n${string('127.0.0.1')}:${port}\r\n`;

/** A cluster with the configured node 127.0.0.1:`port`, whose nodes reply with `nodes`; undefined: they do not reply. */
function play(port: number, nodes: readonly number[] | undefined) {
  const asked: string[] = [];
  const found: FoundHosts[] = [];
  const wheel = new TimingWheel({ nowMs: 0, onError: (error) => t.fail(String(error)) });
  let looked = 0;
  const slots = nodes && `*1\r\n*${nodes.length + 2}\r\n:0\r\n:16383\r\n${nodes.map(node).join('')}`;
  const ask = ({ endpoint, onResult }: RedisQuestion) => {
    asked.push(addressText(endpoint.address));
    onResult(
      slots === undefined
        ? { reply: undefined, isTimeout: true, reason: 'it does not reply in time' }
        : { reply: Buffer.from(slots) },
    );
    return { close() {} };
  };
  const spec = discoverySpec({
    name: 'nodes',
    cluster_type: {
      name: 'envoy.clusters.redis',
      typed_config: {
        '@type': 'type.googleapis.com/envoy.extensions.clusters.redis.v3.RedisClusterConfig',
        cluster_refresh_rate: '1s',
      },
    },
    load_assignment: {
      endpoints: [
        { lb_endpoints: [{ endpoint: { address: { socket_address: { address: '127.0.0.1', port_value: port } } } }] },
      ],
    },
  } as unknown as Parameters<typeof discoverySpec>[0]);
  const discovery = new RedisDiscovery(
    spec,
    { stats: { increment() {} } } as unknown as ClusterResources,
    {
      onHosts: (hosts) => found.push(hosts) > 0,
      onUnusable() {},
      onLooked: () => void looked++,
    },
    {
      cluster: { hasSlots: true },
      checks: { ask },
      timers: wheel,
      now: () => 0,
      random: new Random(),
    } as unknown as DiscoveryContext,
  );
  return { asked, discovery, found, wheel, looked: () => looked };
}

t.test('a version with other configured nodes asks those, not the nodes of the former version', async (t) => {
  const former = play(1001, [1001, 1002]);
  former.discovery.start();
  await waitFor(() => former.looked() > 0);
  const next = play(2001, undefined);
  next.discovery.start();
  await waitFor(() => next.looked() > 0);
  next.discovery.inheritFrom(former.discovery);
  t.equal(next.found[0]?.endpoints.length, 2, 'requests go to the known nodes until there is an answer');
  for (let times = 1; times <= 20; times++) {
    const before = next.looked();
    next.wheel.advance(times * 1001);
    await waitFor(() => next.looked() > before);
  }
  t.strictSame([...new Set(next.asked)], ['127.0.0.1:2001']);
  t.equal(next.asked.length, 21);
});

t.test('a node that is named many times is one host of its shard', async (t) => {
  const { discovery, found, looked } = play(1001, [1001, ...new Array<number>(1000).fill(1002), 1001]);
  discovery.start();
  await waitFor(() => looked() > 0);
  t.equal(found[0]?.endpoints.length, 2);
  t.equal(found[0]?.shards?.hosts[0]?.length, 2);
});
