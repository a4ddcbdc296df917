// Redis clusters (envoy.clusters.redis): nodes and slots, read policies, when nodes are asked, and health checks of Redis servers.

import t, { type Test } from 'tap';
import { besideEnvoy, type ProxyProgram } from '../harness/envoy.js';
import {
  type BatonProcess,
  bootstrap,
  type Config,
  connectRaw,
  startBaton,
  staticCluster,
  waitFor,
} from '../harness/index.js';
import { type RedisHost, startRedisHost } from './redis-host.js';

const PACKAGE = 'type.googleapis.com/envoy.extensions';
const OK = '+OK\r\n';
const string = (value: string) => `$${value.length}\r\n${value}\r\n`;

interface Node {
  readonly host: string;
  readonly port: number;
}

/** A reply to CLUSTER SLOTS. */
function slotsReply(ranges: readonly (readonly [first: number, last: number, ...nodes: Node[]])[]): string {
  const node = ({ host, port }: Node) => `*3\r\n${string(host)}:${port}\r\n${string('id')}`;
  const range = ([first, last, ...nodes]: (typeof ranges)[number]) =>
    `*${nodes.length + 2}\r\n:${first}\r\n:${last}\r\n${nodes.map(node).join('')}`;
  return `*${ranges.length}\r\n${ranges.map(range).join('')}`;
}

const isSlots = ([name = '', part = '']: readonly string[]) => `${name} ${part}`.toLowerCase() === 'cluster slots';

const at = ({ port }: RedisHost, host = '127.0.0.1'): Node => ({ host, port });

/** Starts hosts that reply with what `slots` returns. */
async function startNodes(t: Test, count: number, slots: (hosts: readonly RedisHost[]) => string) {
  const hosts: RedisHost[] = [];
  for (let i = 0; i < count; i++) {
    hosts.push(await startRedisHost(t, (words) => (isSlots(words) ? slots(hosts) : undefined)));
  }
  return hosts;
}

function redis(stat_prefix: string, settings: Config = {}): Config {
  return {
    name: 'envoy.filters.network.redis_proxy',
    typed_config: {
      '@type': `${PACKAGE}.filters.network.redis_proxy.v3.RedisProxy`,
      stat_prefix,
      settings: { op_timeout: '2s', ...settings },
      prefix_routes: { catch_all_route: { cluster: 'nodes' } },
    },
  };
}

function cluster(port: number, config: Config = {}, options: Config = {}): Config {
  return staticCluster('nodes', port, {
    lb_policy: 'CLUSTER_PROVIDED',
    type: undefined,
    dns_lookup_family: 'V4_ONLY',
    cluster_type: {
      name: 'envoy.clusters.redis',
      typed_config: { '@type': `${PACKAGE}.clusters.redis.v3.RedisClusterConfig`, ...config },
    },
    ...options,
  });
}

async function start(t: Test, program: ProxyProgram, filters: Record<string, Config>, clusters: Config[]) {
  return startBaton(t, {
    ...program,
    args: ['--concurrency', '1'],
    config: bootstrap({
      listeners: Object.entries(filters).map(([name, filter]) => ({
        name,
        address: { socket_address: { address: '127.0.0.1', port_value: 0 } },
        filter_chains: [{ filters: [filter] }],
      })),
      clusters,
    }),
  });
}

async function talk(t: Test, baton: BatonProcess, listener: string, exchanges: readonly (readonly [string, string])[]) {
  const client = await connectRaw(t, await baton.listenerPort(listener));
  for (const [command, reply] of exchanges) {
    const words = command.split(' ');
    client.write(`*${words.length}\r\n${words.map(string).join('')}`);
    t.equal(await client.read(reply.length), reply, command);
  }
}

/** What clients have sent, without the questions for slots and what connections begin with. */
const served = ({ commands }: RedisHost) =>
  commands.filter((line) => !/^(cluster slots|readonly)$/i.test(line) && !line.startsWith('auth'));

besideEnvoy('keys are on the node of their slot, and reads follow read_policy', async (t, program) => {
  // The slots of a, b and c are 15495, 3300 and 7365.
  const hosts = await startNodes(t, 5, ([one, two, three, four, five]) =>
    slotsReply([
      [8000, 16383, at(two!), at(four!), at(five!)],
      [0, 3999, at(one!), at(three!)],
      [4000, 7999, at(one!), at(three!)],
    ]),
  );
  const [one, two, three, four, five] = hosts as [RedisHost, RedisHost, RedisHost, RedisHost, RedisHost];
  const baton = await start(
    t,
    program,
    {
      main: redis('r'),
      replicas: redis('p', { read_policy: 'PREFER_REPLICA' }),
      any: redis('a', { read_policy: 'ANY' }),
    },
    [cluster(five.port)],
  );
  await baton.waitForStat('cluster.nodes.membership_total', 5);
  await talk(t, baton, 'main', [
    ['SET a 1', OK],
    ['SET b 2', OK],
    ['SET c 3', OK],
    ['SET x{b}y 4', OK],
    ['GET a', string('1')],
    ['MGET a b c x{b}y', `*4\r\n${string('1')}${string('2')}${string('3')}${string('4')}`],
  ]);
  t.strictSame(served(one), ['SET b 2', 'SET c 3', 'SET x{b}y 4', 'get b', 'get c', 'get x{b}y']);
  t.strictSame(served(two), ['SET a 1', 'GET a', 'get a']);
  t.strictSame([three, four, five].flatMap(served), []);
  await talk(t, baton, 'replicas', [
    ['SET b 3', OK],
    ['GET b', '$-1\r\n'],
    ['GET c', '$-1\r\n'],
    ...new Array(20).fill(['GET a', '$-1\r\n'] as const),
    ['KEYS *', '*0\r\n'],
  ]);
  t.match(three.commands.slice(-3), ['GET b', 'GET c', 'KEYS *']);
  t.equal(four.commands.filter((line) => line === 'GET a').length > 0, true);
  t.equal(five.commands.filter((line) => line === 'GET a').length > 0, true);
  t.equal(served(one).at(-1), 'SET b 3');
});

besideEnvoy('redirections make a node be asked again', async (t, program) => {
  let isMoved = false;
  const hosts: RedisHost[] = [];
  const slots = () => {
    const nodes = isMoved ? hosts : hosts.slice(0, 1);
    const ranges = nodes.map(
      (host, index) => [index * 8192, nodes.length === 1 ? 16383 : index * 8192 + 8191, at(host)] as const,
    );
    return slotsReply(ranges);
  };
  hosts.push(
    await startRedisHost(t, (words) => {
      if (isSlots(words)) return slots();
      return isMoved && words[1] === 'a' ? `-MOVED 15495 127.0.0.1:${hosts[1]!.port}\r\n` : undefined;
    }),
    await startRedisHost(t, (words) => (isSlots(words) ? slots() : undefined)),
  );
  const config = { cluster_refresh_rate: '60s', redirect_refresh_interval: '0.001s', redirect_refresh_threshold: 2 };
  const baton = await start(t, program, { main: redis('r', { enable_redirection: true }) }, [
    cluster(hosts[0]!.port, config, { common_lb_config: { update_merge_window: '0s' } }),
  ]);
  await baton.waitForStat('cluster.nodes.membership_total', 1);
  await talk(t, baton, 'main', [['SET a 1', OK]]);
  isMoved = true;
  await talk(t, baton, 'main', [
    ['SET a 2', OK],
    ['GET a', string('2')],
  ]);
  await baton.waitForStat('cluster.nodes.membership_total', 2);
  await waitFor(
    async () => {
      await talk(t, baton, 'main', [['GET a', string('2')]]);
      return (
        hosts[1]!.commands.filter((line) => line === 'GET a').length >
        hosts[0]!.commands.filter((line) => line === 'GET a').length
      );
    },
    { what: 'the key to be read from its new node' },
  );
  t.match(await baton.stats('cluster.nodes.'), { update_attempt: 2, upstream_internal_redirect_succeeded_total: 2 });
});

besideEnvoy('commands that fail make a node be asked again', async (t, program) => {
  const hosts: RedisHost[] = [];
  hosts.push(
    await startRedisHost(t, (words) =>
      isSlots(words) ? slotsReply([[0, 16383, at(hosts[0]!)]]) : words[0] === 'GET' ? '-CLUSTERDOWN x\r\n' : undefined,
    ),
  );
  const config = { cluster_refresh_rate: '60s', redirect_refresh_interval: '0.001s', failure_refresh_threshold: 2 };
  const baton = await start(t, program, { main: redis('r', { enable_redirection: true }) }, [
    cluster(hosts[0]!.port, config),
  ]);
  await baton.waitForStat('cluster.nodes.membership_total', 1);
  await talk(t, baton, 'main', [['GET a', '-upstream failure\r\n']]);
  t.equal(await baton.stat('cluster.nodes.update_attempt'), 1);
  await talk(t, baton, 'main', [['GET a', '-upstream failure\r\n']]);
  await baton.waitForStat('cluster.nodes.update_attempt', 2);
  await baton.waitForStat('cluster.nodes.update_no_rebuild', 1);
});

besideEnvoy(
  'nodes get the password, may be named, and are asked again after an answer that is not valid',
  async (t, program) => {
    let answers = 0;
    const host: RedisHost = await startRedisHost(t, (words) => {
      if (!isSlots(words)) return undefined;
      answers++;
      return answers === 1
        ? '-ERR This instance has cluster support disabled\r\n'
        : slotsReply([[0, 16383, at(host, 'localhost')]]);
    });
    const options = {
      '@type': `${PACKAGE}.filters.network.redis_proxy.v3.RedisProtocolOptions`,
      auth_password: { inline_string: 'pw' },
    };
    const baton = await start(t, program, { main: redis('r') }, [
      cluster(
        host.port,
        { cluster_refresh_rate: '0.2s' },
        { typed_extension_protocol_options: { 'envoy.filters.network.redis_proxy': options } },
      ),
    ]);
    await baton.waitForStat('cluster.nodes.membership_total', 1);
    t.equal(await baton.stat('cluster.nodes.update_failure'), 1);
    await talk(t, baton, 'main', [['SET a 1', OK]]);
    t.match(host.commands.slice(0, 2), ['auth pw', /^cluster slots$/i]);
  },
);

besideEnvoy('hosts are checked with PING, or with a key that they must not have', async (t, program) => {
  const good = await startRedisHost(t, ([name = '']) => (name.toUpperCase() === 'PING' ? '+PONG\r\n' : undefined));
  const bad = await startRedisHost(t, ([name = '']) => (name.toUpperCase() === 'PING' ? '-LOADING x\r\n' : undefined));
  good.values.set('maintenance', '1');
  const check = (key?: string) => ({
    health_checks: [
      {
        timeout: '2s',
        interval: '0.2s',
        no_traffic_interval: '0.2s',
        unhealthy_threshold: 1,
        healthy_threshold: 1,
        custom_health_check: {
          name: 'envoy.health_checkers.redis',
          typed_config: { '@type': `${PACKAGE}.health_checkers.redis.v3.Redis`, ...(key && { key }) },
        },
      },
    ],
  });
  const baton = await start(t, program, { main: redis('r') }, [
    staticCluster('nodes', [good.port, bad.port], check()),
    staticCluster('keys', [good.port, bad.port], check('maintenance')),
  ]);
  await baton.waitForStat('cluster.nodes.membership_healthy', 1);
  await baton.waitForStat('cluster.keys.membership_healthy', 1);
  t.match((await baton.admin('/clusters')).body, `keys::127.0.0.1:${good.port}::health_flags::/failed_active_hc`);
  t.match((await baton.admin('/clusters')).body, `nodes::127.0.0.1:${bad.port}::health_flags::/failed_active_hc`);
  t.ok(good.commands.includes('EXISTS maintenance') && good.commands.includes('PING'));
  good.values.clear();
  await baton.waitForStat('cluster.keys.membership_healthy', 2);
});

t.test('a node that nobody can be is an error of the configuration', async (t) => {
  const baton = await startBaton(t, {
    config: bootstrap({ listeners: [], clusters: [cluster(1, {}, { load_assignment: { cluster_name: 'nodes' } })] }),
    args: ['--mode', 'validate'],
    wait: 'spawned',
  });
  await baton.exited;
  t.match(baton.stderr, 'a Redis cluster needs a load_assignment with one of its nodes');
});
