// redis_proxy with clients and hosts that take more than their share: memory stays bounded, others are served, and replies stay in order.

import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import t, { type Test } from 'tap';
import { bootstrap, type Config, connectRaw, startBaton, staticCluster, waitFor } from '../harness/index.js';
import { startRedisHost } from './redis-host.js';

const OK = '+OK\r\n';
const FAILURE = '-upstream failure\r\n';

function command(...words: string[]): string {
  return `*${words.length}\r\n${words.map((word) => `$${word.length}\r\n${word}\r\n`).join('')}`;
}

async function start(t: Test, prefix_routes: Config, clusters: Config[], more: Config = {}) {
  const typed_config = {
    '@type': 'type.googleapis.com/envoy.extensions.filters.network.redis_proxy.v3.RedisProxy',
    stat_prefix: 'r',
    settings: { op_timeout: '20s' },
    prefix_routes,
    ...more,
  };
  const baton = await startBaton(t, {
    args: ['--concurrency', '1', '--worker-buffer-memory-mb', '128'],
    config: bootstrap({
      listeners: [
        {
          name: 'main',
          address: { socket_address: { address: '127.0.0.1', port_value: 0 } },
          filter_chains: [{ filters: [{ name: 'envoy.filters.network.redis_proxy', typed_config }] }],
        },
      ],
      clusters,
    }),
  });
  return { baton, connect: async () => connectRaw(t, await baton.listenerPort('main')) };
}

function residentMegabytes(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))![1]) / 1024;
}

/** Reads until the bytes end like this. */
async function readTo(socket: Socket, end: string): Promise<string> {
  const chunks: string[] = [];
  socket.removeAllListeners('data');
  socket.on('data', (chunk: string) => chunks.push(chunk)).resume();
  await waitFor(() => chunks.at(-1)?.endsWith(end) === true, { what: 'the last reply' });
  return chunks.join('');
}

t.test('a client that does not read its replies', async (t) => {
  const value = 'x'.repeat(1_000_000);
  const host = await startRedisHost(t);
  host.values.set('large', value);
  host.values.set('small', 'y');
  const { baton, connect } = await start(t, { catch_all_route: { cluster: 'one' } }, [staticCluster('one', host.port)]);
  const before = residentMegabytes(baton.pid);
  const client = await connect();
  client.socket.pause();
  const count = 400;
  client.write(command('GET', 'large').repeat(count) + command('ECHO', 'end'));
  await waitFor(() => host.commands.length === count, { what: 'the host to have replied' });
  const other = await connect();
  other.write(command('GET', 'small'));
  t.equal(await other.read(7), '$1\r\ny\r\n');
  const grown = residentMegabytes(baton.pid) - before;
  t.ok(grown < 300, `${Math.round(grown)} MB`);
  const text = await readTo(client.socket, '$3\r\nend\r\n');
  const replies = text.split(/(?<=\r\n)(?=[$-])/);
  t.equal(replies.length, count + 1);
  const large = `$${value.length}\r\n${value}\r\n`;
  t.ok(
    replies.slice(0, -1).every((reply) => reply === large || reply === FAILURE),
    'each reply is whole, or an error',
  );
  t.equal(replies[0], large);
});

t.test('a mirror that does not reply', async (t) => {
  const host = await startRedisHost(t);
  const mirror = await startRedisHost(t, () => '');
  const route = { cluster: 'one', request_mirror_policy: [{ cluster: 'mirror' }] };
  const { connect } = await start(t, { catch_all_route: route }, [
    staticCluster('one', host.port),
    staticCluster('mirror', mirror.port),
  ]);
  const client = await connect();
  const count = 15_000;
  client.write(command('SET', 'a', 'x'.repeat(1000)).repeat(count));
  t.equal(await client.read(count * OK.length), OK.repeat(count));
  t.equal(host.commands.length, count);
  t.ok(mirror.commands.length > 0 && mirror.commands.length < 10_000, `${mirror.commands.length} mirrored`);
});

t.test('a command with many keys, and those after it', async (t) => {
  const host = await startRedisHost(t);
  const { connect } = await start(t, { catch_all_route: { cluster: 'one' } }, [staticCluster('one', host.port)]);
  const client = await connect();
  const keys = Array.from({ length: 20_000 }, (_, index) => `k${index}`);
  const last = keys[keys.length - 1]!;
  client.write(
    command('MSET', ...keys.flatMap((key) => [key, '1'])) +
      command('DEL', ...keys) +
      command('SET', last, 'new') +
      command('MGET', 'k0', last),
  );
  const expected = `${OK}:${keys.length}\r\n${OK}*2\r\n$-1\r\n$3\r\nnew\r\n`;
  t.equal(await client.read(expected.length), expected);
  t.ok(
    host.commands.indexOf(`SET ${last} new`) > host.commands.indexOf(`DEL ${last}`),
    'the order of the commands is kept',
  );
});

t.test('a client cannot change the connections that all clients share', async (t) => {
  const host = await startRedisHost(t);
  const { connect } = await start(t, { catch_all_route: { cluster: 'one' } }, [staticCluster('one', host.port)]);
  const client = await connect();
  client.write(command('SELECT', '5') + command('SCRIPT', 'DEBUG', 'YES') + command('SELECT', '0'));
  t.match(await client.readUntil(/\+OK\r\n$/), /^-ERR SELECT .*\r\n-ERR unsupported .*\r\n\+OK\r\n$/);
  t.strictSame(host.commands, ['SELECT 0']);
});

t.test('a client that leaves while a host is slow', async (t) => {
  let isSlow = true;
  const held: (() => void)[] = [];
  const host = await startRedisHost(t, (_, socket) => {
    if (!isSlow) return undefined;
    held.push(() => socket.write(OK));
    return '';
  });
  const { baton, connect } = await start(t, { catch_all_route: { cluster: 'one' } }, [staticCluster('one', host.port)]);
  for (let round = 0; round < 5; round++) {
    const client = await connect();
    client.write(command('SET', 'a', 'x'.repeat(10)).repeat(1000));
    await waitFor(() => host.commands.length === (round + 1) * 1000);
    client.destroy();
  }
  await baton.waitForStat('redis.r.downstream_cx_active', 0);
  isSlow = false;
  const client = await connect();
  client.write(command('GET', 'b'));
  for (const reply of held) reply();
  t.equal(await client.read(5), '$-1\r\n', 'not one of the replies to the others');
  t.match(await baton.stats('redis.r.'), { downstream_rq_active: 0, downstream_cx_active: 1 });
  t.equal(await baton.stat('cluster.one.upstream_rq_active'), 0);
});

t.test('clients that have not authenticated send little, and others are served', async (t) => {
  const host = await startRedisHost(t);
  const { baton, connect } = await start(
    t,
    { catch_all_route: { cluster: 'one' } },
    [staticCluster('one', host.port)],
    {
      downstream_auth_passwords: [{ inline_string: 'secret' }],
    },
  );
  const port = await baton.listenerPort('main');
  const strangers = await Promise.all(Array.from({ length: 200 }, () => connectRaw(t, port)));
  for (const stranger of strangers)
    stranger.write(`*3\r\n$3\r\nSET\r\n$1\r\na\r\n$500000000\r\n${'x'.repeat(100_000)}`);
  await waitFor(() => strangers.every(({ closed }) => closed !== 'open'), { what: 'the end of all connections' });
  await baton.waitForStats({ 'redis.r.downstream_cx_active': 0, 'redis.r.downstream_cx_protocol_error': 200 });
  const client = await connect();
  const large = 'x'.repeat(1_000_000);
  // Within one packet and later.
  client.write(command('AUTH', 'secret') + command('SET', 'a', large));
  t.equal(await client.read(10), OK + OK);
  t.equal(host.values.get('a'), large);
  client.write(command('AUTH', 'wrong') + command('MGET', ...Array.from({ length: 20 }, () => 'a')));
  t.match(await client.readUntil(/protocol error/), /^-WRONGPASS|^-ERR invalid password/, 'the limit is there again');
});
