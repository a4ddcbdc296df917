// socket_options and tcp_keepalive of listeners, socket_options of the admin interface.

import t from 'tap';
import {
  bootstrap,
  type Config,
  connectRaw,
  httpListener,
  httpRequest,
  keepaliveSeconds,
  startBaton,
  waitFor,
} from '../harness/index.js';
import { answering, managerOf } from '../http/proxy.js';
import { runBaton } from '../process/command-line/run.js';

const SOL_SOCKET = 1;
const SO_KEEPALIVE = 9;
const IPPROTO_TCP = 6;
const TCP_KEEPIDLE = 4;
const TCP_DEFER_ACCEPT = 9;
/** An option that the kernel does not have. */
const UNKNOWN = { level: IPPROTO_TCP, name: 9999, int_value: 7 };

const listener = (name: string, more: Config): Config => ({
  ...httpListener(name, 0, managerOf([answering({ prefix: '/' }, 'served')])),
  ...more,
});
const baton = await startBaton(t, {
  config: bootstrap({
    listeners: [
      listener('keepalive', {
        tcp_keepalive: { keepalive_time: 300, keepalive_interval: 5, keepalive_probes: 3 },
        max_connections_to_accept_per_socket_event: 1,
      }),
      listener('options', {
        socket_options: [
          { level: SOL_SOCKET, name: SO_KEEPALIVE, buf_value: 'AQAAAA==', state: 'STATE_PREBIND' },
          // As in Envoy, of a number the lowest 32 bits count.
          { level: IPPROTO_TCP, name: TCP_KEEPIDLE, int_value: '4294967496', state: 'STATE_BOUND' },
          { level: IPPROTO_TCP, name: TCP_DEFER_ACCEPT, int_value: 60, state: 'STATE_LISTENING' },
          { ...UNKNOWN, type: { datagram: {} } },
          { ...UNKNOWN, ip_version: 'SOCKET_IP_VERSION_IPV6', state: 'STATE_LISTENING' },
        ],
      }),
    ],
    clusters: [],
    extra: {
      admin: {
        address: { socket_address: { address: '127.0.0.1', port_value: 0 } },
        socket_options: [
          { level: SOL_SOCKET, name: SO_KEEPALIVE, int_value: 1 },
          { ...UNKNOWN, type: { datagram: {} } },
        ],
      },
    },
  }),
  args: ['-l', 'warning', '--concurrency', '1'],
});

t.test('tcp_keepalive probes accepted connections', async (t) => {
  const client = await connectRaw(t, await baton.listenerPort('keepalive'));
  const seconds = await waitFor(() => keepaliveSeconds(client.socket.localPort!)[0], {
    what: 'the timer of keepalive',
  });
  t.ok(seconds > 250 && seconds <= 300, `${seconds} s`);
});

t.test('a listener that accepts one connection at a time serves all', async (t) => {
  const port = await baton.listenerPort('keepalive');
  const answers = await Promise.all(Array.from({ length: 20 }, () => httpRequest(port, '/')));
  t.ok(answers.every(({ body }) => body === 'served'));
});

t.test('socket_options apply to the listen socket in each state, and to what it accepts', async (t) => {
  const port = await baton.listenerPort('options');
  const total = 'listener.options.downstream_cx_total';
  const silent = await connectRaw(t, port);
  const client = await connectRaw(t, port);
  client.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
  await client.readUntil(/served$/);
  t.equal(await baton.stat(total), 1, 'TCP_DEFER_ACCEPT: a connection without data is not accepted');
  const seconds = await waitFor(() => keepaliveSeconds(client.socket.localPort!)[0], {
    what: 'the timer of keepalive',
  });
  t.ok(seconds > 150 && seconds <= 200, `${seconds} s`);
  silent.end();
});

t.test('an option that cannot be set is an error', async (t) => {
  for (const state of ['STATE_PREBIND', 'STATE_BOUND', 'STATE_LISTENING']) {
    const options = { socket_options: [{ ...UNKNOWN, state }] };
    const onListener = bootstrap({ listeners: [listener('bad', options)], clusters: [] });
    const admin = { address: { socket_address: { address: '127.0.0.1', port_value: 0 } }, ...options };
    const onAdmin = bootstrap({ listeners: [], clusters: [], extra: { admin } });
    for (const config of [onListener, onAdmin]) {
      const { code, stderr } = await runBaton(t, { config });
      t.equal(code, 1, state);
      t.match(stderr, /cannot listen on 127\.0\.0\.1:\d+: (\w+: )?socket option 6\/9999: Protocol not available/);
    }
  }
});
