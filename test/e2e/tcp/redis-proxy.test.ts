// The network filter redis_proxy: routes, replies of one and of several hosts, authentication, transactions, faults, redirections and
// hosts that fail. The expected replies are those of Envoy 1.40.

import type { Socket } from 'node:net';
import t, { type Test } from 'tap';
import { besideEnvoy, type ProxyProgram } from '../harness/envoy.js';
import {
  type BatonProcess,
  bootstrap,
  type Config,
  connectRaw,
  HTTP2_CLUSTER,
  type RawConnection,
  startBaton,
  staticCluster,
  type Teardown,
  waitFor,
} from '../harness/index.js';
import { startAuthService } from './redis-auth-service.js';
import { type RedisHost, startRedisHost } from './redis-host.js';

const PACKAGE = 'type.googleapis.com/envoy.extensions.filters.network.redis_proxy.v3';

const settings = { op_timeout: '0.5s' };

function redis(stat_prefix: string, config: Config): Config {
  return {
    name: 'envoy.filters.network.redis_proxy',
    typed_config: { '@type': `${PACKAGE}.RedisProxy`, stat_prefix, settings, ...config },
  };
}

const everything = (cluster: string, route: Config = {}) => ({ catch_all_route: { cluster, ...route } });

interface Proxy {
  readonly baton: BatonProcess;
  /** Sends each command (words, or raw bytes that end with CRLF) and expects its reply, on one connection. */
  readonly talk: (
    t: Test,
    listener: string,
    exchanges: readonly (readonly [command: string, reply: string])[],
  ) => Promise<RawConnection>;
}

async function start(
  t: Teardown,
  program: ProxyProgram,
  filters: Record<string, Config>,
  clusters: Config[],
): Promise<Proxy> {
  const baton = await startBaton(t, {
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
  return {
    baton,
    async talk(t, listener, exchanges) {
      const client = await connectRaw(t, await baton.listenerPort(listener));
      for (const [command, reply] of exchanges) {
        client.write(command.endsWith('\r\n') ? command : commandOf(command));
        t.equal(await client.read(reply.length), reply, command);
      }
      return client;
    },
  };
}

function commandOf(text: string): string {
  const words = text.split(' ');
  return `*${words.length}\r\n${words.map((word) => `$${word.length}\r\n${word}\r\n`).join('')}`;
}

const OK = '+OK\r\n';
const FAILURE = '-upstream failure\r\n';
const NO_HOST = '-no upstream host\r\n';
const INVALID = '-invalid request\r\n';
const string = (value: string) => `$${value.length}\r\n${value}\r\n`;

besideEnvoy('commands go to the host of their key, and their replies come back', async (t, program) => {
  const host = await startRedisHost(t);
  const { baton, talk } = await start(t, program, { main: redis('r', { prefix_routes: everything('one') }) }, [
    staticCluster('one', host.port),
  ]);
  await talk(t, 'main', [
    ['SET a 1', OK],
    ['get a', string('1')],
    ['GET b', '$-1\r\n'],
    ['DEL a b', ':1\r\n'],
    ['MSET a 1 b 2', OK],
    ['MGET a x b', `*3\r\n${string('1')}$-1\r\n${string('2')}`],
    ['EXISTS a x b', ':2\r\n'],
    ['EVAL script 1 key', string('key')],
    ['KEYS *', `*2\r\n${string('a')}${string('b')}`],
    ['SCAN 0', `*2\r\n${string('0')}*2\r\n${string('a')}${string('b')}`],
    ['ROLE', `*1\r\n*2\r\n${string('master')}:0\r\n`],
    ['SLOWLOG LEN', ':2\r\n'],
    ['SELECT 0', OK],
    ['CLUSTER INFO', OK],
    ['OBJECT ENCODING a', OK],
    ['CONFIG SET a b', OK],
    ['FLUSHALL', OK],
    ['PING', '+PONG\r\n'],
    ['PING x', '+PONG\r\n'],
    ['ECHO x', string('x')],
    ['CLIENT SETINFO lib-name x', OK],
    ['CLIENT SETNAME x', OK],
    ['QUIT', OK],
  ]);
  t.strictSame(host.commands.slice(0, 8), [
    'SET a 1',
    'get a',
    'GET b',
    'DEL a',
    'DEL b',
    'set a 1',
    'set b 2',
    'get a',
  ]);
  t.equal(host.accepted, 1, 'all clients share a connection');
  t.match(await baton.stats('redis.r.'), {
    downstream_cx_total: 1,
    downstream_rq_total: 23,
    downstream_rq_active: 0,
    'command.get.total': 2,
    'command.get.success': 2,
    'command.mget.total': 1,
    'command.del.success': 1,
  });
});

besideEnvoy('what is no command that the proxy knows gets an error', async (t, program) => {
  const host = await startRedisHost(t);
  const filter = redis('r', { prefix_routes: everything('one'), custom_commands: ['my.cmd'] });
  const { baton, talk } = await start(t, program, { main: filter }, [staticCluster('one', host.port)]);
  await talk(t, 'main', [
    ['nope a b', "-ERR unknown command 'nope', with args beginning with: a\r\n"],
    ['NOPE', "-ERR unknown command 'NOPE', with args beginning with: \r\n"],
    ['SUBSCRIBE c', "-ERR unknown command 'SUBSCRIBE', with args beginning with: c\r\n"],
    ['MY.CMD a', OK],
    ['GET', INVALID],
    ['MGET', INVALID],
    ['ECHO', INVALID],
    ['ECHO a b', INVALID],
    ['AUTH', INVALID],
    ['MSET a 1 b', "-wrong number of arguments for 'MSET' command\r\n"],
    ['EVAL script 0', "-wrong number of arguments for 'EVAL' command\r\n"],
    ['OBJECT HELP', "-wrong number of arguments for 'OBJECT' command\r\n"],
    ['SCAN', "-ERR wrong number of arguments for 'SCAN' command\r\n"],
    ['WATCH', "-wrong number of arguments for 'WATCH' command\r\n"],
    ['CLUSTER MYID', "-ERR cluster subcommand 'myid' is not supported\r\n"],
    ['CLIENT GETNAME', "-ERR CLIENT subcommand 'GETNAME' is not supported by the proxy\r\n"],
    ['CONFIG HELP', '-ERR unsupported cluster scope command or invalid arguments\r\n'],
    ['SLOWLOG HELP', '-ERR unsupported cluster scope command or invalid arguments\r\n'],
    ['AUTH x', '-ERR Client sent AUTH, but no password is set\r\n'],
    ['AUTH u x', '-ERR Client sent AUTH, but no username-password pair is set\r\n'],
    ['HELLO 3', '-NOPROTO unsupported protocol version\r\n'],
    ['EXEC', '-EXEC without MULTI\r\n'],
    ['DISCARD', '-DISCARD without MULTI\r\n'],
    ['*0\r\n', INVALID],
    ['*-1\r\n', INVALID],
    ['*1\r\n:1\r\n', INVALID],
    ['*1\r\n*1\r\n$4\r\nPING\r\n', INVALID],
    ['+PING\r\n', INVALID],
    ['$4\r\nPING\r\n', INVALID],
    ['*2\r\n$3\r\nGET\r\n$-1\r\n', INVALID],
    ['\r\n', INVALID],
    ['PING\r\n', '+PONG\r\n'],
    [' SET a "b c" \r\n', OK],
    ["get 'a'\r\n", string('b c')],
  ]);
  for (const bytes of [
    '*1\r\n$4\r\nPINGxx',
    '*a\r\n',
    '*2\r\n$3\r\nGET\r\n$-2\r\n',
    '*99999999999999999999\r\n',
    ':x\r\n',
    'get "a\r\n',
  ]) {
    const client = await talk(t, 'main', []);
    client.write(bytes);
    t.match(await client.readToEnd(), { text: '-downstream protocol error\r\n', closed: 'end' }, bytes);
  }
  t.match(await baton.stats('redis.r.'), {
    downstream_cx_protocol_error: 6,
    'splitter.unsupported_command': 3,
    'command.my.cmd.total': 1,
  });
});

besideEnvoy('the longest prefix of a key selects its cluster', async (t, program) => {
  const [all, long, short, mirror] = await Promise.all([1, 2, 3, 4].map(() => startRedisHost(t)));
  const request_mirror_policy = [{ cluster: 'mirror', exclude_read_commands: true }];
  const filter = redis('r', {
    prefix_routes: {
      routes: [
        { prefix: 'ab', cluster: 'short', remove_prefix: true },
        { prefix: 'abc', cluster: 'long', request_mirror_policy },
      ],
      catch_all_route: { cluster: 'all' },
    },
  });
  const strict = redis('s', {
    prefix_routes: { routes: [{ prefix: 'Ab', cluster: 'all' }], case_insensitive: true },
  });
  const { talk } = await start(t, program, { main: filter, strict }, [
    staticCluster('all', all!.port),
    staticCluster('long', long!.port),
    staticCluster('short', short!.port),
    staticCluster('mirror', mirror!.port),
  ]);
  await talk(t, 'main', [
    ['SET abcd 1', OK],
    ['GET abcd', string('1')],
    ['SET abd 2', OK],
    ['SET x 3', OK],
    ['MGET abcd abd x', `*3\r\n${string('1')}${string('2')}${string('3')}`],
  ]);
  await waitFor(() => mirror!.commands.length > 0);
  t.strictSame(long!.commands, ['SET abcd 1', 'GET abcd', 'get abcd']);
  t.strictSame(short!.commands, ['SET d 2', 'get d'], 'without the prefix');
  t.strictSame(all!.commands, ['SET x 3', 'get x']);
  t.strictSame(mirror!.commands, ['SET abcd 1'], 'reads are not mirrored');
  await talk(t, 'strict', [
    ['SET aBx 1', OK],
    ['SET x 1', NO_HOST],
    ['MGET x y', `*2\r\n${NO_HOST}${NO_HOST}`],
    ['FLUSHALL', NO_HOST],
    ['KEYS *', NO_HOST],
  ]);
});

besideEnvoy('hash tags keep keys on one host, and commands about all keys reach all hosts', async (t, program) => {
  const hosts = await Promise.all([1, 2, 3].map(() => startRedisHost(t)));
  const filter = redis('r', {
    settings: { ...settings, enable_hashtagging: true },
    prefix_routes: everything('ring'),
  });
  const ports = hosts.map(({ port }) => port);
  const { talk } = await start(t, program, { main: filter }, [staticCluster('ring', ports, { lb_policy: 'MAGLEV' })]);
  const keys = Array.from({ length: 20 }, (_, index) => `k${index}`);
  await talk(t, 'main', [
    [`MSET ${keys.map((key) => `${key} ${key}`).join(' ')}`, OK],
    [`MGET ${keys.join(' ')}`, `*20\r\n${keys.map(string).join('')}`],
    ...keys.map((key) => [`SET {tag}${key} 1`, OK] as const),
    ['SLOWLOG LEN', ':6\r\n'],
    ['SLOWLOG GET', '*0\r\n'],
    ['SCRIPT LOAD x', OK],
    ['ROLE', `*3\r\n${`*2\r\n${string('master')}:0\r\n`.repeat(3)}`],
  ]);
  const tagged = hosts.map(({ values }) => [...values.keys()].filter((key) => key.startsWith('{tag}')).length);
  t.strictSame(tagged.sort(), [0, 0, 20]);
  t.ok(
    hosts.every(({ values }) => values.size > 0),
    'the other keys are on all hosts',
  );
  // Envoy may send such a command to one host several times, and to others not at all.
  if (program.command !== undefined) return;
  await talk(t, 'main', [['FLUSHALL', OK]]);
  t.ok(hosts.every(({ values }) => values.size === 0));
});

besideEnvoy('clients must authenticate with one of the passwords', async (t, program) => {
  const host = await startRedisHost(t);
  const auth = { downstream_auth_passwords: [{ inline_string: 'one' }, { inline_string: 'two' }] };
  const filters = {
    main: redis('r', { prefix_routes: everything('one'), ...auth }),
    named: redis('n', { prefix_routes: everything('one'), ...auth, downstream_auth_username: { inline_string: 'me' } }),
  };
  const { talk } = await start(t, program, filters, [staticCluster('one', host.port)]);
  const none = '-NOAUTH Authentication required.\r\n';
  const wrong = '-WRONGPASS invalid username-password pair\r\n';
  await talk(t, 'main', [
    ['GET a', none],
    ['PING', none],
    ['ECHO a', none],
    ['CLIENT SETINFO a b', none],
    ['MULTI', none],
    ['HELLO', none],
    ['AUTH three', '-ERR invalid password\r\n'],
    ['SET a 1', none],
    ['AUTH two', OK],
    ['SET a 1', OK],
    ['AUTH me one', wrong],
    ['GET a', none],
    ['AUTH default one', OK],
    ['GET a', string('1')],
    ['AUTH three', '-ERR invalid password\r\n'],
    ['GET a', none],
    ['QUIT', OK],
  ]);
  await talk(t, 'named', [
    ['AUTH me three', wrong],
    ['GET a', none],
    ['AUTH me two', OK],
    ['GET a', string('1')],
  ]);
  t.strictSame(host.commands, ['SET a 1', 'GET a', 'GET a']);
});

besideEnvoy('hosts get the credentials of their cluster first, and READONLY', async (t, program) => {
  const [secret, named] = await Promise.all([startRedisHost(t), startRedisHost(t)]);
  const filter = redis('r', {
    settings: { ...settings, read_policy: 'PREFER_REPLICA' },
    prefix_routes: { ...everything('secret'), routes: [{ prefix: 'n', cluster: 'named' }] },
  });
  const options = (config: Config) => ({
    typed_extension_protocol_options: {
      'envoy.filters.network.redis_proxy': { '@type': `${PACKAGE}.RedisProtocolOptions`, ...config },
    },
  });
  const password = { auth_password: { inline_string: 'pw' } };
  const { talk } = await start(t, program, { main: filter }, [
    staticCluster('secret', secret!.port, options(password)),
    staticCluster('named', named!.port, options({ ...password, auth_username: { inline_string: 'me' } })),
  ]);
  await talk(t, 'main', [
    ['SET a 1', OK],
    ['SET n 1', OK],
  ]);
  t.strictSame(secret!.commands, ['auth pw', 'readonly', 'SET a 1']);
  t.strictSame(named!.commands, ['auth me pw', 'readonly', 'SET n 1']);
});

besideEnvoy('a transaction has a connection of its own', async (t, program) => {
  const host = await startRedisHost(t);
  const { talk } = await start(t, program, { main: redis('r', { prefix_routes: everything('one') }) }, [
    staticCluster('one', host.port),
  ]);
  const refused = (name: string) => `-'${name}' command is not supported within transaction\r\n`;
  const client = await talk(t, 'main', [
    ['GET a', '$-1\r\n'],
    ['MULTI', OK],
    ['SET a 1', '+QUEUED\r\n'],
    ['GET a', '+QUEUED\r\n'],
    ['FLUSHALL', refused('FLUSHALL')],
    ['SCAN 0', refused('SCAN')],
    ['EVAL x 1 a', refused('EVAL')],
    ['PING', '+PONG\r\n'],
    ['MULTI', '-MULTI calls can not be nested\r\n'],
    ['EXEC', `*2\r\n${OK}${string('1')}`],
    ['EXEC', '-EXEC without MULTI\r\n'],
    ['MULTI', OK],
    ['EXEC', '*0\r\n'],
    ['MULTI', OK],
    ['SET a 2', '+QUEUED\r\n'],
    ['DISCARD', OK],
    ['GET a', string('1')],
    ['WATCH a', OK],
    ['UNWATCH', OK],
    ['MULTI', OK],
    ['SET a 3', '+QUEUED\r\n'],
  ]);
  client.destroy();
  await waitFor(() => host.sockets.size === 1, { what: 'the connections of transactions to end' });
  t.equal(host.values.get('a'), '1', 'a client that leaves has not executed its transaction');
});

besideEnvoy('faults replace replies or delay them', async (t, program) => {
  const host = await startRedisHost(t);
  const always = { fault_enabled: { default_value: { numerator: 100 } } };
  const filter = redis('r', {
    prefix_routes: everything('one'),
    faults: [
      { fault_type: 'ERROR', ...always, commands: ['strlen'] },
      { fault_type: 'DELAY', ...always, delay: '0.2s', commands: ['TYPE', 'get'] },
    ],
  });
  const { baton, talk } = await start(t, program, { main: filter }, [staticCluster('one', host.port)]);
  const begin = performance.now();
  const client = await talk(t, 'main', [['STRLEN a', '-Fault Injected: Error\r\n']]);
  client.write(`${commandOf('TYPE a')}${commandOf('SET a 1')}`);
  t.equal(await client.read(2 * OK.length), OK + OK);
  t.ok(performance.now() - begin >= 195, 'later replies wait too');
  t.strictSame(host.commands, ['TYPE a', 'SET a 1']);
  t.match(await baton.stats('redis.r.command.'), {
    'strlen.error_fault': 1,
    'strlen.error': 1,
    'type.delay_fault': 1,
    'type.success': 1,
  });
});

besideEnvoy('a host that does not reply, or not in its protocol, fails the commands under way', async (t, program) => {
  const hanging = new WeakSet<Socket>();
  const host = await startRedisHost(t, ([, key = ''], socket) => {
    if (key === 'hang') hanging.add(socket);
    if (hanging.has(socket)) return '';
    if (key === 'garbage') return '@@@\r\n';
    if (key === 'close') socket.end();
    return undefined;
  });
  const filter = redis('r', { prefix_routes: { ...everything('one'), routes: [{ prefix: 'no', cluster: 'none' }] } });
  const { baton, talk } = await start(t, program, { main: filter }, [
    staticCluster('one', host.port),
    staticCluster('none', []),
  ]);
  await talk(t, 'main', [
    ['GET hang', FAILURE],
    ['GET garbage', FAILURE],
    ['SET a 1', OK],
    ['DEL a hang', '-finished with 1 error(s)\r\n'],
    ['MGET hang x', `*2\r\n${FAILURE}${FAILURE}`],
    ['MSET hang 1', '-finished with 1 error(s)\r\n'],
    ['GET none', NO_HOST],
    ['GET a', '$-1\r\n'],
  ]);
  t.match(await baton.stats('cluster.one.'), {
    upstream_rq_timeout: 4,
    upstream_cx_protocol_error: 1,
  });
});

besideEnvoy('redirections to other hosts of the cluster are followed', async (t, program) => {
  const ports: number[] = [];
  const first = await startRedisHost(t, ([, key = '']) => {
    if (key === 'moved') return `-MOVED 1 127.0.0.1:${ports[1]}\r\n`;
    if (key === 'ask') return `-ASK 1 127.0.0.1:${ports[1]}\r\n`;
    if (key === 'bad') return '-MOVED x\r\n';
    if (key === 'down') return '-CLUSTERDOWN x\r\n';
    return undefined;
  });
  const second = await startRedisHost(t);
  ports.push(first.port, second.port);
  const filters = {
    main: redis('r', { settings: { ...settings, enable_redirection: true }, prefix_routes: everything('both') }),
    plain: redis('p', { prefix_routes: everything('both') }),
  };
  const locality = (port: number, priority: number) => ({
    priority,
    lb_endpoints: [{ endpoint: { address: { socket_address: { address: '127.0.0.1', port_value: port } } } }],
  });
  const { baton, talk } = await start(t, program, filters, [
    staticCluster('both', [], {
      load_assignment: { cluster_name: 'both', endpoints: [locality(first.port, 0), locality(second.port, 1)] },
    }),
  ]);
  await talk(t, 'main', [
    ['SET moved 1', OK],
    ['SET ask 2', OK],
    ['GET bad', '-MOVED x\r\n'],
    ['GET down', FAILURE],
  ]);
  t.strictSame(second.commands, ['SET moved 1', 'asking', 'SET ask 2']);
  await talk(t, 'plain', [['GET moved', `-MOVED 1 127.0.0.1:${second.port}\r\n`]]);
  await baton.waitForStat('cluster.both.upstream_internal_redirect_succeeded_total', 2);
});

besideEnvoy('the faults of a command and those of all commands add up', async (t, program) => {
  const host = await startRedisHost(t);
  const fault = (numerator: number, config: Config = {}) => ({
    fault_type: 'ERROR',
    fault_enabled: { default_value: { numerator } },
    ...config,
  });
  const filter = redis('r', {
    prefix_routes: everything('one'),
    faults: [fault(50), fault(0, { commands: ['get'] }), fault(50, { commands: ['get'] })],
  });
  const { talk } = await start(t, program, { main: filter }, [staticCluster('one', host.port)]);
  await talk(t, 'main', new Array(20).fill(['GET a', '-Fault Injected: Error\r\n'] as const));
  t.strictSame(host.commands, []);
});

besideEnvoy('HELLO takes its options in any order', async (t, program) => {
  const host = await startRedisHost(t);
  const auth = { downstream_auth_passwords: [{ inline_string: 'one' }] };
  const filter = redis('r', { prefix_routes: everything('one'), ...auth });
  const { talk } = await start(t, program, { main: filter }, [staticCluster('one', host.port)]);
  await talk(t, 'main', [
    ['HELLO 2 FOO', "-ERR Syntax error: unknown HELLO option 'FOO'\r\n"],
    ['HELLO 2 AUTH default', '-ERR Syntax error: HELLO AUTH requires <username> <password>\r\n'],
    ['GET a', '-NOAUTH Authentication required.\r\n'],
    ['HELLO 2 SETNAME x AUTH default one', '*14\r\n$6\r\nserver\r\n$17\r\nenvoy-redis-proxy\r\n'],
  ]);
});

const GREETING =
  '%7\r\n$6\r\nserver\r\n$17\r\nenvoy-redis-proxy\r\n$7\r\nversion\r\n$5\r\n6.0.0\r\n$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:0\r\n' +
  '$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n';

besideEnvoy('RESP3 begins with HELLO 3 on both sides, and its values pass', async (t, program) => {
  const values: Record<string, string> = {
    map: '%1\r\n+a\r\n:1\r\n',
    set: '~1\r\n+a\r\n',
    double: ',1.50\r\n',
    big: '(123456789012345678901234567890\r\n',
    bool: '#t\r\n',
    text: '=7\r\ntxt:abc\r\n',
    error: '!3\r\nERR\r\n',
    null: '_\r\n',
  };
  const host = await startRedisHost(t, ([name = '', key = '']) => {
    if (name.toLowerCase() === 'hello') return '%1\r\n$5\r\nproto\r\n:3\r\n';
    if (name === 'CONFIG') return '%1\r\n+a\r\n+1\r\n';
    if (key === 'attribute') return `|1\r\n+ttl\r\n:3600\r\n${OK}`;
    if (key === 'push') return `>2\r\n+invalidate\r\n*1\r\n+a\r\n${OK}`;
    return values[key];
  });
  const resp3 = { protocol_version: 'RESP3', settings: { ...settings, read_policy: 'REPLICA' } };
  const filters = {
    main: redis('r', { ...resp3, prefix_routes: everything('one') }),
    closed: redis('c', {
      ...resp3,
      prefix_routes: everything('one'),
      downstream_auth_passwords: [{ inline_string: 'pw' }],
    }),
    old: redis('o', { prefix_routes: everything('one') }),
  };
  const options = { '@type': `${PACKAGE}.RedisProtocolOptions`, auth_password: { inline_string: 'host' } };
  const { baton, talk } = await start(t, program, filters, [
    staticCluster('one', host.port, {
      typed_extension_protocol_options: { 'envoy.filters.network.redis_proxy': options },
    }),
  ]);
  const none = '-NOPROTO unsupported protocol version\r\n';
  await talk(t, 'main', [
    ['GET map', none],
    ['GET', none],
    ['PING', none],
    ['HELLO', none],
    ['HELLO 2', none],
    ['HELLO 3', GREETING],
    ...Object.entries(values).map(([key, value]) => [`GET ${key}`, value] as const),
    ['GET a', '_\r\n'],
    ['MGET null a', '*2\r\n_\r\n_\r\n'],
    ['GET attribute', OK],
    ['GET push', OK],
    ['CONFIG GET a', '*2\r\n+a\r\n+1\r\n'],
    ['MULTI', OK],
    ['SET x 1', '+QUEUED\r\n'],
    ['EXEC', `*1\r\n${OK}`],
    ['HELLO', GREETING],
    ['HELLO 2', none],
    ['PING', '+PONG\r\n'],
  ]);
  t.strictSame(host.commands.slice(0, 2), ['HELLO 3 AUTH default host', 'readonly']);
  await talk(t, 'closed', [
    ['HELLO 3', '-NOAUTH Authentication required.\r\n'],
    ['GET map', none],
    ['HELLO 2 AUTH default pw', none],
    ['HELLO 3 AUTH default pw', GREETING],
    ['AUTH no', '-ERR invalid password\r\n'],
    ['GET map', '-NOAUTH Authentication required.\r\n'],
    ['AUTH pw', OK],
    ['GET map', values['map']!],
  ]);
  await talk(t, 'old', [['HELLO 3', none]]);
  t.match(await baton.stats('redis.'), {
    'r.downstream_rq_noproto': 3,
    'c.downstream_rq_noproto': 1,
    'o.downstream_rq_noproto': 0,
  });
});

besideEnvoy('commands fail if a host does not accept HELLO 3', async (t, program) => {
  const host = await startRedisHost(t, ([name = '']) => {
    return name.toLowerCase() === 'hello' ? '-ERR unknown command\r\n' : undefined;
  });
  const filter = redis('r', { protocol_version: 'RESP3', prefix_routes: everything('one') });
  const { talk } = await start(t, program, { main: filter }, [staticCluster('one', host.port)]);
  await talk(t, 'main', [
    ['HELLO 3', GREETING],
    ['GET a', FAILURE],
    ['GET a', FAILURE],
  ]);
  await waitFor(() => host.sockets.size === 0, { what: 'the connections to the host to end' });
});

besideEnvoy('a service decides about clients', async (t, program) => {
  const host = await startRedisHost(t);
  const service = await startAuthService(t);
  const provider = { grpc_service: { envoy_grpc: { cluster_name: 'auth' }, timeout: '5s' } };
  const filters = {
    main: redis('r', { prefix_routes: everything('one'), external_auth_provider: provider }),
    expiring: redis('e', {
      prefix_routes: everything('one'),
      external_auth_provider: { ...provider, enable_auth_expiration: true },
    }),
  };
  const { talk } = await start(t, program, filters, [
    staticCluster('one', host.port),
    staticCluster('auth', service.port, HTTP2_CLUSTER),
  ]);
  const none = '-NOAUTH Authentication required.\r\n';
  const failed = '-ERR external authentication failed\r\n';
  const client = await talk(t, 'main', [
    ['GET a', none],
    ['HELLO', none],
    ['AUTH yes', OK],
    ['SET a 1', OK],
    ['AUTH no', '-ERR not  you\r\n'],
    ['GET a', none],
    ['AUTH me silent', '-ERR unauthorized\r\n'],
    ['AUTH error', failed],
    ['AUTH failure', failed],
    ['HELLO 2 AUTH me no', '-WRONGPASS not  you\r\n'],
    ['HELLO 2 AUTH me error', failed],
    ['HELLO 2 AUTH me yes', '*14\r\n$6\r\nserver\r\n$17\r\nenvoy-redis-proxy\r\n'],
  ]);
  await client.readUntil('*0\r\n');
  client.write(commandOf('AUTH no') + commandOf('GET a') + commandOf('AUTH yes') + commandOf('GET a'));
  const expected = `-ERR not  you\r\n${none}${OK}${string('1')}`;
  t.equal(await client.read(expected.length), expected, 'commands wait for the answer');
  t.strictSame(service.questions.slice(0, 3), [' yes', ' no', 'me silent']);
  await talk(t, 'expiring', [
    ['AUTH yes', OK],
    ['GET a', none],
    ['AUTH later', OK],
    ['GET a', string('1')],
  ]);
});

besideEnvoy('a cluster may be an aggregate, and a host that hangs is ejected', async (t, program) => {
  const host = await startRedisHost(t, ([, key = '']) => (key === 'hang' ? '' : undefined));
  const filters = {
    main: redis('r', { prefix_routes: everything('all') }),
    ejecting: redis('e', { prefix_routes: everything('ejecting') }),
  };
  const { baton, talk } = await start(t, program, filters, [
    staticCluster('one', host.port),
    staticCluster('ejecting', host.port, {
      outlier_detection: { consecutive_5xx: 3, enforcing_consecutive_5xx: 100, max_ejection_percent: 100 },
    }),
    {
      name: 'all',
      lb_policy: 'CLUSTER_PROVIDED',
      cluster_type: {
        name: 'envoy.clusters.aggregate',
        typed_config: {
          '@type': 'type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig',
          clusters: ['one'],
        },
      },
    },
  ]);
  await talk(t, 'main', [
    ['SET a 1', OK],
    ['MULTI', OK],
    ['GET a', '+QUEUED\r\n'],
    ['EXEC', `*1\r\n${string('1')}`],
  ]);
  await talk(t, 'ejecting', [
    ['GET hang', FAILURE],
    ['GET a', string('1')],
    ['GET hang', FAILURE],
    ['GET hang', FAILURE],
    ['GET hang', FAILURE],
  ]);
  await baton.waitForStat('cluster.ejecting.outlier_detection.ejections_enforced_total', 1);
});

besideEnvoy(
  'replies may have more elements than commands, and prefixes have bytes of any character',
  async (t, program) => {
    const count = 1_100_000;
    const many = `*${count}\r\n${':1\r\n'.repeat(count)}`;
    const host = await startRedisHost(t, ([, key = '']) => (key === 'many' ? many : undefined));
    const routes = [{ prefix: '\u00c3', cluster: 'one' }];
    const filters = {
      main: redis('r', { settings: { op_timeout: '5s' }, prefix_routes: everything('one') }),
      prefixes: redis('p', { prefix_routes: { routes, case_insensitive: true } }),
    };
    const { baton, talk } = await start(t, program, filters, [staticCluster('one', host.port)]);
    await talk(t, 'main', [['SMEMBERS many', many]]);
    const client = await connectRaw(t, await baton.listenerPort('prefixes'));
    const set = (key: string) => Buffer.from(`*3\r\n$3\r\nSET\r\n$3\r\n${key}\r\n$1\r\n1\r\n`, 'latin1');
    // The second key is another character, whose first byte differs like a small letter of Latin-1.
    client.write(Buffer.concat([set('\xc3\x83x'), set('\xe3\x83x')]));
    t.equal(await client.read(OK.length + NO_HOST.length), OK + NO_HOST);
  },
);

besideEnvoy('redirections are followed to hosts that are not in the cluster, up to a number', async (t, program) => {
  const others = await Promise.all([startRedisHost(t), startRedisHost(t)]);
  const host = await startRedisHost(t, ([, key = '']) => {
    if (key === 'name') return '-MOVED 1 localhost:1\r\n';
    if (key === 'path') return '-MOVED 1 /tmp/redis.sock\r\n';
    return `-MOVED 1 127.0.0.1:${others[Number(key)]!.port}\r\n`;
  });
  const filters = {
    main: redis('r', {
      settings: { ...settings, enable_redirection: true, max_upstream_unknown_connections: 1 },
      prefix_routes: everything('one'),
    }),
  };
  const { baton, talk } = await start(t, program, filters, [staticCluster('one', host.port)]);
  await talk(t, 'main', [
    ['SET 0 1', OK],
    ['SET 1 1', `-MOVED 1 127.0.0.1:${others[1]!.port}\r\n`],
    ['GET 0', string('1')],
    ['GET name', '-MOVED 1 localhost:1\r\n'],
    ['GET path', '-MOVED 1 /tmp/redis.sock\r\n'],
  ]);
  t.strictSame(others[0]!.commands, ['SET 0 1', 'GET 0']);
  t.equal(others[0]!.accepted, 1);
  t.strictSame(others[1]!.commands, []);
  const stats = await baton.stats('cluster.one.');
  // Envoy counts another redirection too, at times.
  t.ok(Number(stats['redis_cluster.max_upstream_unknown_connections_reached']) > 0);
  t.match(stats, { upstream_internal_redirect_succeeded_total: 2 });
});

t.test('a redirection without an end is not followed', async (t) => {
  const host: RedisHost = await startRedisHost(t, () => `-MOVED 1 127.0.0.1:${host.port}\r\n`);
  const filter = redis('r', { settings: { ...settings, enable_redirection: true }, prefix_routes: everything('one') });
  const { talk } = await start(t, { command: undefined }, { main: filter }, [staticCluster('one', host.port)]);
  await talk(t, 'main', [['GET loop', `-MOVED 1 127.0.0.1:${host.port}\r\n`]]);
  t.equal(host.commands.length, 9);
});

t.test('replies of several hosts to INFO are not combined, and times are those of Redis', async (t) => {
  const hosts = await Promise.all([startRedisHost(t), startRedisHost(t)]);
  const filter = redis('r', { prefix_routes: everything('both') });
  const ports = hosts.map(({ port }) => port);
  const { talk } = await start(t, { command: undefined }, { main: filter }, [staticCluster('both', ports)]);
  await talk(t, 'main', [['INFO', '-ERR the replies of several hosts are not combined\r\n']]);
  const client = await talk(t, 'main', []);
  client.write(commandOf('TIME'));
  t.match(await client.readUntil(/\*2\r\n\$10\r\n\d{10}\r\n\$\d\r\n\d{1,6}\r\n/, 5000), '*2');
});

t.test('large values, and more commands than are read at once, pass in order', async (t) => {
  const host = await startRedisHost(t);
  const { baton, talk } = await start(
    t,
    { command: undefined },
    { main: redis('r', { settings: { op_timeout: '30s' }, prefix_routes: everything('one') }) },
    [staticCluster('one', host.port)],
  );
  const large = 'x'.repeat(3_000_000);
  const client = await talk(t, 'main', [
    [`SET large ${large}`, OK],
    ['GET large', string(large)],
  ]);
  const count = 5000;
  for (let i = 0; i < count; i++) client.write(commandOf(`SET k${i} ${i}`) + commandOf(`GET k${i}`));
  const expected = Array.from({ length: count }, (_, i) => OK + string(String(i))).join('');
  t.equal(await client.read(expected.length), expected);
  t.equal(await baton.stat('redis.r.downstream_rq_active'), 0);
});
