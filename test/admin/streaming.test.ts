import t from 'tap';
import type { AdminHandler } from '../../src/admin/admin-handler.js';
import { HandlerTable } from '../../src/admin/handler-table.js';
import { HANDLERS } from '../../src/admin/handlers/index.js';
import { answer } from '../../src/admin/http/answer.js';
import { ClusterStats } from '../../src/stats/layouts/cluster.js';
import { countTurns } from '../common/time/count-turns.js';
import { httpRequest } from '../e2e/harness/http-client.js';
import { connectRaw, rawExchange } from '../e2e/harness/raw-connection.js';
import { waitFor } from '../e2e/harness/wait-for.js';
import { captureLog } from './capture-log.js';
import { startAdmin, streaming } from './fixture.js';

const GET = (path: string) => `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`;
const PIECE = Buffer.alloc(64 * 1024, 'x');

t.test('/ready is answered while many stats are sent, and all of them arrive', async (t) => {
  const { services, port } = await startAdmin(t);
  const clusters = 4000;
  for (let i = 0; i < clusters; i++) services.stats.addScope(`cluster.c${i}.`, ClusterStats);
  let isDone = false;
  const all = httpRequest(port, '/stats', { deadlineMs: 60_000 }).then((answer) => {
    isDone = true;
    return answer;
  });
  const filtered = httpRequest(port, '/stats?filter=^nothing', { deadlineMs: 60_000 });
  for (let i = 0; i < 5; i++) {
    t.match(await httpRequest(port, '/ready'), { status: 200, body: /^LIVE\n$/ });
    t.notOk(isDone, 'the stats are still being sent');
  }
  const { body } = await all;
  t.equal(body.split('\n').length - 1, clusters * ClusterStats.entries.length);
  t.ok(body.endsWith('cluster.c999.upstream_rq_per_cx: No recorded values\n'));
  t.equal((await filtered).body, '');
});

t.test('of many large answers, one piece is produced per turn of the loop', async (t) => {
  const turn = countTurns(t);
  const clients = 100;
  const turns: number[] = [];
  let open = 0;
  const { port } = await startAdmin(t, {
    handlers: streaming(function* () {
      open++;
      for (let piece = 0; piece < 20; piece++) {
        turns.push(turn());
        yield Buffer.alloc(100, 'x');
      }
      open--;
    }),
  });
  const connections = await Promise.all(Array.from({ length: clients }, () => connectRaw(t, port)));
  for (const connection of connections) connection.write(GET('/stream'));
  await waitFor(() => open > 0);
  t.equal((await httpRequest(port, '/ready')).status, 200);
  t.ok(turns.length < clients * 20, '/ready was answered before all of them were produced');
  await Promise.all(connections.map((connection) => connection.readToEnd()));
  t.equal(turns.length, clients * 20);
  t.equal(new Set(turns).size, turns.length, 'no turn had two pieces');
});

t.test('of many requests, one is handled per turn of the loop, and /ready waits for none', async (t) => {
  const turn = countTurns(t);
  const turns: number[] = [];
  let isReady = 0;
  const costly: AdminHandler = {
    path: '/costly',
    mutates: false,
    help: '',
    parameters: [],
    handle: () => {
      turns.push(turn());
      return { body: 'done' };
    },
  };
  const handlers = HANDLERS.map((handler) =>
    handler.path !== '/ready' ? handler : { ...handler, handle: () => ({ body: String((isReady = turns.length)) }) },
  );
  const { port } = await startAdmin(t, { handlers: [...handlers, costly] });
  const requests = 100;
  const connections = await Promise.all(Array.from({ length: requests }, () => connectRaw(t, port)));
  for (const connection of connections) connection.write(GET('/costly'));
  await waitFor(() => turns.length > 0);
  t.equal((await httpRequest(port, '/ready')).status, 200);
  await Promise.all(connections.map((connection) => connection.readToEnd()));
  t.equal(turns.length, requests);
  t.equal(new Set(turns).size, requests, 'no turn had two requests');
  t.ok(isReady < requests / 2, `/ready was handled after ${isReady} earlier requests`);
});

t.test('a client that leaves ends all answers that it has requested, including queued ones', async (t) => {
  let open = 0;
  let begun = 0;
  const endless = () => ({
    next: () => ({ done: false, value: PIECE }) as const,
    return: () => ({ done: true, value: open-- }) as const,
  });
  const { port, services } = await startAdmin(t, {
    handlers: streaming(() => {
      begun++;
      open++;
      return { [Symbol.iterator]: endless };
    }),
  });
  const connection = await connectRaw(t, port);
  connection.write('GET /stream HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(3));
  await waitFor(() => open === 1);
  connection.reset();
  await waitFor(() => open === 0);
  t.equal((await httpRequest(port, '/ready')).status, 200);
  t.equal(services.renders.bodies, 0);
  t.equal(begun, 1, 'queued answers were not begun');
});

t.test('a search among many names lets other work run', async (t) => {
  const { services } = await startAdmin(t);
  for (let i = 0; i < 5000; i++) services.addCluster({ name: `c${i}`, type: 'STATIC' });
  const resource = {
    name: 'c',
    message: { cluster: { '@type': 'type.googleapis.com/envoy.config.cluster.v3.Cluster' } },
  };
  services.dumps = [
    {
      message: 'envoy.admin.v3.ClustersConfigDump',
      fields: {},
      lists: [{ field: 'static_clusters', resources: Array.from({ length: 5000 }, () => resource) }],
    },
  ];
  const rules = { isAllowedPath: () => true, isAllowedHost: () => true };
  const ask = (target: string) =>
    answer(
      { method: 'GET', target, headers: {}, body: Buffer.alloc(0), peer: '', isGone: () => false },
      new HandlerTable(HANDLERS),
      rules,
      services,
    );
  for (const target of [
    '/clusters?filter=^c4999$',
    '/clusters?filter=^c4999$&format=json',
    '/config_dump?name_regex=none',
    '/config_dump?name_regex=none&resource=static_clusters',
  ]) {
    const { body } = (await ask(target))!;
    t.ok([...(body as Iterable<Uint8Array>)].length >= 10, `${target}: pieces, though most of them are empty`);
  }
});

t.test('a slow reader pauses the source, and leaving ends it', async (t) => {
  let made = 0;
  let isEnded = false;
  const { port } = await startAdmin(t, {
    handlers: streaming(function* () {
      try {
        for (;;) {
          made++;
          yield PIECE;
        }
      } finally {
        isEnded = true;
      }
    }),
  });
  const connection = await connectRaw(t, port);
  connection.socket.pause();
  connection.write(GET('/stream'));
  let before = -1;
  await waitFor(async () => {
    await httpRequest(port, '/ready');
    const isStill = made > 0 && made === before;
    before = made;
    return isStill;
  });
  // The kernel's buffers hold a few megabytes.
  t.ok(made < 400, `${made} pieces of 64 KiB were produced`);
  t.notOk(isEnded);
  connection.socket.destroy();
  await waitFor(() => isEnded);
  t.pass('the source was notified');
});

t.test('HEAD produces no body', async (t) => {
  let made = 0;
  const { port } = await startAdmin(t, {
    handlers: streaming(function* () {
      made++;
      yield PIECE;
    }),
  });
  t.match(await httpRequest(port, '/stream', { method: 'HEAD' }), { status: 200, body: /^$/ });
  t.equal(made, 0);
});

t.test('a client that does not read pending bytes is cut off after a while', async (t) => {
  let isEnded = false;
  const { port } = await startAdmin(t, {
    stallTimeoutMs: 50,
    handlers: streaming(function* () {
      try {
        for (;;) yield PIECE;
      } finally {
        isEnded = true;
      }
    }),
  });
  const connection = await connectRaw(t, port);
  connection.socket.pause();
  connection.write(GET('/stream'));
  await waitFor(() => isEnded);
  t.pass('it was cut off');
});

t.test('a silent answer without pending bytes is not cut off', async (t) => {
  const stallTimeoutMs = 20;
  let release = () => {};
  const waited = new Promise<void>((resolve) => {
    release = resolve;
  });
  const { port } = await startAdmin(t, {
    stallTimeoutMs,
    handlers: streaming(async function* () {
      yield Buffer.from('first');
      await waited;
      yield Buffer.from('second');
    }),
  });
  const connection = await connectRaw(t, port);
  connection.write(GET('/stream'));
  await connection.readUntil('first');
  // The stall timeout of another connection, which began later, has passed.
  const { services: _, port: other } = await startAdmin(t, { stallTimeoutMs, handlers: streaming(forever) });
  const stalled = await connectRaw(t, other);
  stalled.socket.pause();
  stalled.write(GET('/stream'));
  await waitFor(() => endedForever > 0);
  t.equal(connection.closed, 'open');
  release();
  t.match(await connection.readUntil('second'), /second/);
});

let endedForever = 0;
function* forever(): Generator<Uint8Array> {
  try {
    for (;;) yield PIECE;
  } finally {
    endedForever++;
  }
}

t.test('leaving ends a source that waits for its next piece', async (t) => {
  const ended: string[] = [];
  const source: AsyncIterator<Uint8Array> & AsyncIterable<Uint8Array> = {
    [Symbol.asyncIterator]: () => source,
    next: () => new Promise(() => {}),
    return: async () => {
      ended.push('return');
      return { done: true, value: undefined };
    },
  };
  const { port } = await startAdmin(t, { handlers: streaming(() => source) });
  const connection = await connectRaw(t, port);
  connection.write(GET('/stream'));
  await waitFor(async () => (await httpRequest(port, '/ready')).status === 200);
  connection.socket.resetAndDestroy();
  await waitFor(() => ended.length === 1);
  t.same(ended, ['return']);
});

t.test('a body whose source fails does not look complete', async (t) => {
  const log = captureLog(t);
  const { port } = await startAdmin(t, {
    handlers: streaming(function* () {
      yield Buffer.from('the beginning');
      throw new Error('the source ran dry');
    }),
  });
  const { text } = await rawExchange(port, GET('/stream'));
  t.notMatch(text, /\r\n0\r\n/, 'the last chunk is missing');
  t.match(log.text(), /\[error\].*the answer to "\/stream" was cut short: Error: the source ran dry/);
  t.equal((await httpRequest(port, '/ready')).status, 200);
});
