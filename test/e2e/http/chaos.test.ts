// Clients and hosts that do whatever they like, all at once: afterwards nothing is left of them, and others are served.

import { connect, type Socket } from 'node:net';
import t from 'tap';
import { type Config, freePort, startTcpUpstream, staticCluster, waitFor } from '../harness/index.js';
import { managerOf, routeTo, startProxy } from './proxy.js';

const CONVERSATIONS = 1500;
const AT_ONCE = 60;

const random = seeded(Number(process.env['BATON_TEST_SEED'] ?? 20_240_817));
const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)]!;

// A host that answers, breaks off, hangs or talks nonsense, and sometimes does not even read.
const upstream = await startTcpUpstream(t, (socket) => {
  socket.on('end', () => socket.end());
  socket.on('data', () => act(socket));
  if (random() < 0.05) socket.pause();
});
const retry = {
  retry_policy: {
    retry_on: '5xx,reset,connect-failure',
    num_retries: 2,
    per_try_timeout: '0.05s',
    retry_back_off: { base_interval: '0.001s', max_interval: '0.01s' },
  },
};
const limits = {
  circuit_breakers: { thresholds: [{ max_connections: 20, max_pending_requests: 20, max_retries: 5 }] },
};
const buffer = {
  http_filters: [
    {
      name: 'buffer',
      typed_config: {
        '@type': 'type.googleapis.com/envoy.extensions.filters.http.buffer.v3.Buffer',
        max_request_bytes: 100_000,
      },
    },
    {
      name: 'router',
      typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' },
    },
  ],
};
const routes: Config[] = [
  routeTo({ prefix: '/retry' }, 'chaos', { timeout: '0.2s', ...retry }),
  routeTo({ prefix: '/upgrade' }, 'chaos', { timeout: '0.2s', upgrade_configs: [{ upgrade_type: 'websocket' }] }),
  routeTo({ prefix: '/closed' }, 'closed', retry),
  routeTo({ prefix: '/' }, 'chaos', { timeout: '0.2s', idle_timeout: '0.3s' }),
];
const timeouts = { stream_idle_timeout: '0.3s', request_timeout: '0.5s', delayed_close_timeout: '0.1s' };
const proxy = await startProxy(t, {
  listeners: {
    plain: managerOf(routes, timeouts),
    filtered: managerOf(routes, { ...timeouts, ...buffer }),
    sane: managerOf([routeTo({ prefix: '/' }, 'sane')]),
  },
  clusters: [
    staticCluster('chaos', upstream.port, limits),
    staticCluster('closed', await freePort()),
    staticCluster('sane', (await startTcpUpstream(t, answerAlways)).port),
  ],
  listenerOptions: { per_connection_buffer_limit_bytes: 16_384 },
  args: ['-l', 'warning', '--concurrency', '2'],
});

t.test('nothing is left of broken conversations', async (t) => {
  let started = 0;
  const worker = async () => {
    while (started++ < CONVERSATIONS) await converse(pick([proxy.ports['plain']!, proxy.ports['filtered']!]));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));

  const gauges = [
    ...['plain', 'filtered'].flatMap((name) => [
      `http.${name}.downstream_rq_active`,
      `http.${name}.downstream_cx_active`,
      `http.${name}.downstream_cx_upgrades_active`,
      `listener.127.0.0.1_${proxy.ports[name]}.downstream_cx_active`,
    ]),
    'cluster.chaos.upstream_rq_active',
    'cluster.chaos.upstream_rq_pending_active',
    'cluster.closed.upstream_rq_pending_active',
    'cluster.closed.upstream_cx_active',
    ...['cx_open', 'rq_pending_open', 'rq_open', 'rq_retry_open'].map(
      (name) => `cluster.chaos.circuit_breakers.default.${name}`,
    ),
  ];
  const endUpstream = () => {
    for (const socket of upstream.sockets) socket.destroy();
  };
  endUpstream();
  await proxy.baton.waitForStats(Object.fromEntries(gauges.map((name) => [name, 0])));
  // Also those that were made for requests which had gone when they came.
  await waitFor(
    async () => {
      endUpstream();
      return (await proxy.baton.stat('cluster.chaos.upstream_cx_active')) === 0;
    },
    { what: 'the end of the last connection to the host' },
  );
  const answers = await Promise.all(Array.from({ length: 20 }, () => proxy.on('sane', '/')));
  t.ok(answers.every(({ status, body }) => status === 200 && body === 'ok'));
  t.equal(proxy.baton.stderr, '', 'nothing went wrong inside');
  await proxy.baton.stop();
});

/** One client's life: requests of all sorts, cut anywhere, left in any way. */
function converse(port: number): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    const timer = setTimeout(() => socket.destroy(), 100 + random() * 400);
    socket.on('error', () => {});
    socket.on('close', () => {
      clearTimeout(timer);
      resolve();
    });
    socket.on('end', () => socket.end());
    if (random() < 0.1) socket.pause();
    else socket.resume();
    let bytes = '';
    for (let count = 1 + Math.floor(random() * 3); count > 0; count--) bytes += request();
    if (random() < 0.3) bytes = bytes.slice(0, Math.floor(random() * bytes.length));
    const at = Math.floor(random() * bytes.length);
    socket.write(bytes.slice(0, at), 'latin1');
    setTimeout(() => {
      if (socket.destroyed) return;
      socket.write(bytes.slice(at), 'latin1');
      const fate = random();
      if (fate < 0.15) socket.resetAndDestroy();
      else if (fate < 0.3) socket.destroy();
      else if (fate < 0.45) socket.end();
    }, random() * 20);
  });
}

function request(): string {
  const path = pick(['/', '/', '/retry', '/retry', '/closed', '/nowhere', '/upgrade']);
  const head = `${pick(['GET', 'POST', 'HEAD', 'PUT'])} ${path} HTTP/1.1\r\nhost: a\r\n`;
  const body = 'x'.repeat(Math.floor(random() ** 4 * 200_000));
  switch (pick(['none', 'none', 'length', 'chunked', 'expect', 'upgrade', 'close', 'nonsense'])) {
    case 'length':
      return `${head}content-length: ${body.length}\r\n\r\n${body}`;
    case 'chunked':
      return `${head}transfer-encoding: chunked\r\n\r\n${chunk(body)}${chunk('more')}0\r\nx-end: 1\r\n\r\n`;
    case 'expect':
      return `${head}expect: 100-continue\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
    case 'upgrade':
      return `${head}connection: upgrade\r\nupgrade: websocket\r\n\r\n${body}`;
    case 'close':
      return `${head}connection: close\r\n\r\n`;
    case 'nonsense':
      return `${head}${pick(['transfer-encoding: chunked\r\n\r\nzz', 'no colon\r\n\r\n', '\0'])}`;
    default:
      return `${head}\r\n`;
  }
}

/** What the host does when bytes come. */
function act(socket: Socket): void {
  const body = 'y'.repeat(Math.floor(random() ** 4 * 200_000));
  const whole = `HTTP/1.1 ${pick([200, 200, 200, 503, 404])} Whatever\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
  const answers = [
    whole,
    whole,
    whole,
    `HTTP/1.1 103 Early Hints\r\n\r\n${whole}`,
    `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${chunk(body)}0\r\nx-end: 1\r\n\r\n`,
    `HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n${body}`,
    'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\nhello',
    'nonsense\r\n\r\n',
    '',
  ];
  let bytes = pick(answers);
  if (random() < 0.2) bytes = bytes.slice(0, Math.floor(random() * bytes.length));
  socket.write(bytes, 'latin1');
  const fate = random();
  if (fate < 0.1) socket.end();
  else if (fate < 0.2) socket.resetAndDestroy();
  else if (fate < 0.25) setTimeout(() => socket.destroy(), random() * 50);
}

function answerAlways(socket: Socket): void {
  socket.on('data', () => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'));
  socket.on('end', () => socket.end());
}

function chunk(data: string): string {
  return data === '' ? '' : `${data.length.toString(16)}\r\n${data}\r\n`;
}

/** A small generator with a seed (mulberry32), so that a failing round can be repeated as far as timing allows. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
