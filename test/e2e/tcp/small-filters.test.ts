// The network filters echo, direct_response, connection_limit and local_ratelimit. The expected results are those of Envoy 1.40.

import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { Authority } from '../harness/certificates.js';
import { besideEnvoy, type ProxyProgram } from '../harness/envoy.js';
import {
  type BatonProcess,
  bootstrap,
  type Config,
  connectRaw,
  fileAccessLog,
  startBaton,
  type Teardown,
  tempDir,
  waitFor,
  withDeadline,
} from '../harness/index.js';
import { secureConnection, serverTls } from '../tls/contexts.js';

const FORMAT = '%RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS% %BYTES_RECEIVED% %BYTES_SENT%\n';
const ECHO = filter('echo.v3.Echo');

function filter(message: string, config: Config = {}): Config {
  return {
    name: message,
    typed_config: { '@type': `type.googleapis.com/envoy.extensions.filters.network.${message}`, ...config },
  };
}

function limit(config: Config): Config {
  return filter('connection_limit.v3.ConnectionLimit', { stat_prefix: 'cl', ...config });
}

function rate(config: Config): Config {
  const token_bucket = { max_tokens: 1, fill_interval: '1000s' };
  return filter('local_ratelimit.v3.LocalRateLimit', { stat_prefix: 'rl', token_bucket, ...config });
}

interface Proxy {
  readonly baton: BatonProcess;
  readonly connect: (listener: string) => ReturnType<typeof connectRaw>;
  /** Waits until the listener has logged this many connections. */
  readonly logged: (listener: string, count: number) => Promise<string[]>;
}

/** Starts the program with listeners that have these filters. */
async function start(
  t: Teardown,
  program: ProxyProgram,
  listeners: Record<string, Config[]>,
  transport_socket?: Config,
): Promise<Proxy> {
  const logs = tempDir(t);
  const baton = await startBaton(t, {
    ...program,
    args: ['--concurrency', '2', '--file-flush-interval-msec', '20'],
    config: bootstrap({
      clusters: [],
      listeners: Object.entries(listeners).map(([name, filters]) => ({
        name,
        stat_prefix: name,
        address: { socket_address: { address: '127.0.0.1', port_value: 0 } },
        access_log: [fileAccessLog(join(logs, name), FORMAT)],
        filter_chains: [{ filters, ...(transport_socket && { transport_socket }) }],
      })),
    }),
  });
  const linesOf = (listener: string) => readFileSync(join(logs, listener), 'utf8').split('\n').slice(0, -1);
  return {
    baton,
    connect: async (listener) => connectRaw(t, await baton.listenerPort(listener)),
    async logged(listener, count) {
      await waitFor(() => linesOf(listener).length >= count);
      return linesOf(listener);
    },
  };
}

besideEnvoy('echo sends back what it gets, and more than fits into buffers', async (t, program) => {
  const { connect, logged } = await start(t, program, { echo: [ECHO] });
  const client = await connect('echo');
  client.write('abc');
  t.equal(await client.read(3), 'abc');
  const megabytes = 'x'.repeat(4_000_000);
  client.write(megabytes);
  t.equal((await client.read(megabytes.length)).length, megabytes.length);
  client.end();
  t.match(await client.readToEnd(), { text: '', closed: 'end' });
  t.strictSame(await logged('echo', 1), ['- - 4000003 4000003']);
});

besideEnvoy('direct_response answers and closes, whatever the client sends', async (t, program) => {
  const file = join(tempDir(t), 'response');
  const large = 'r'.repeat(300_000);
  writeFileSync(file, large);
  const { connect, logged } = await start(t, program, {
    text: [filter('direct_response.v3.Config', { response: { inline_string: 'hello\n' } })],
    file: [filter('direct_response.v3.Config', { response: { filename: file } })],
    none: [filter('direct_response.v3.Config')],
  });
  t.match(await (await connect('text')).readToEnd(), { text: 'hello\n', closed: 'end' });
  t.strictSame(await logged('text', 1), ['- direct_response 0 6']);
  t.match(await (await connect('file')).readToEnd(), { text: large, closed: 'end' });
  t.match(await (await connect('none')).readToEnd(), { text: '', closed: 'end' });
  t.strictSame(await logged('none', 1), ['- direct_response 0 0']);
});

// Envoy closes such a connection before its handshake.
t.test('direct_response answers behind TLS when the handshake has finished', async (t) => {
  const program = { command: undefined };
  const root = await Authority.create();
  const server = await root.issue({ names: ['server.test'] });
  const answering = filter('direct_response.v3.Config', { response: { inline_string: 'hello\n' } });
  const { baton } = await start(
    t,
    program,
    {
      plain: [answering],
      limited: [limit({ max_connections: 9 }), answering],
    },
    serverTls([server]),
  );
  for (const name of ['plain', 'limited']) {
    const port = await baton.listenerPort(name);
    const socket = await secureConnection(t, port, { ca: root.certificate });
    const parts: Buffer[] = [];
    socket.on('data', (part: Buffer) => parts.push(part));
    await withDeadline(once(socket, 'end'), 'the end');
    t.equal(Buffer.concat(parts).toString(), 'hello\n');
  }
});

besideEnvoy('connection_limit counts the connections of all workers', async (t, program) => {
  const { baton, connect, logged } = await start(t, program, { limited: [limit({ max_connections: 2 }), ECHO] });
  const clients = [await connect('limited'), await connect('limited')];
  for (const client of clients) {
    client.write('a');
    await client.read(1);
  }
  for (let i = 0; i < 6; i++) t.match(await (await connect('limited')).readToEnd(), { text: '', closed: 'end' });
  t.strictSame(await logged('limited', 6), Array(6).fill('- - 0 0'));
  await baton.waitForStats({
    'connection_limit.cl.active_connections': 2,
    'connection_limit.cl.limited_connections': 6,
  });
  clients[0]!.end();
  await baton.waitForStat('connection_limit.cl.active_connections', 1);
  const next = await connect('limited');
  next.write('b');
  t.equal(await next.read(1), 'b');
});

besideEnvoy('connection_limit closes a connection after its delay, without what it has sent', async (t, program) => {
  const { baton, connect } = await start(t, program, {
    limited: [limit({ max_connections: 1, delay: '0.4s' }), ECHO],
    off: [
      limit({ stat_prefix: 'off', max_connections: 1, runtime_enabled: { runtime_key: 'a', default_value: false } }),
      ECHO,
    ],
  });
  const first = await connect('limited');
  first.write('a');
  await first.read(1);
  const second = await connect('limited');
  second.write('b');
  await baton.waitForStats({
    'connection_limit.cl.active_connections': 2,
    'connection_limit.cl.limited_connections': 1,
  });
  t.equal(second.closed, 'open');
  const { text } = await second.readToEnd();
  t.equal(text, '');
  await baton.waitForStat('connection_limit.cl.active_connections', 1);
  for (const client of [await connect('off'), await connect('off')]) {
    client.write('c');
    t.equal(await client.read(1), 'c');
  }
  await baton.waitForStat('connection_limit.off.active_connections', 0);
});

besideEnvoy('local_ratelimit refuses connections without a token, over all workers', async (t, program) => {
  const key = { share_key: 'shared', stat_prefix: 'shared' };
  const { baton, connect, logged } = await start(t, program, {
    limited: [rate({}), ECHO],
    one: [rate(key), ECHO],
    two: [rate(key), ECHO],
    off: [rate({ stat_prefix: 'off', runtime_enabled: { runtime_key: 'a', default_value: false } }), ECHO],
  });
  const allowed = async (listener: string) => {
    const client = await connect(listener);
    client.write('a');
    await client.read(1);
  };
  const refused = async (listener: string) => t.match(await (await connect(listener)).readToEnd(), { text: '' });
  await allowed('limited');
  for (let i = 0; i < 4; i++) await refused('limited');
  await baton.waitForStat('local_rate_limit.rl.rate_limited', 4);
  t.strictSame(await logged('limited', 4), Array(4).fill('URX - 0 0'));
  await allowed('one');
  await refused('two');
  await baton.waitForStat('local_rate_limit.shared.rate_limited', 1);
  for (let i = 0; i < 3; i++) await allowed('off');
});
