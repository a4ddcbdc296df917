// The admin interface with HTTP/2 (prior knowledge) on the port that also serves HTTP/1.

import { type ClientHttp2Session, connect, constants, type IncomingHttpHeaders } from 'node:http2';
import t, { type Test } from 'tap';
import { compileFormat } from '../../src/access-log/formats/format.js';
import { LogBuffer } from '../../src/access-log/log-buffer.js';
import type { AdminHandler } from '../../src/admin/admin-handler.js';
import { HANDLERS } from '../../src/admin/handlers/index.js';
import { AdminTraffic } from '../../src/admin/http/connections/admin-traffic.js';
import { RequestLog } from '../../src/admin/http/request-log.js';
import { StatsStore } from '../../src/stats/store.js';
import { httpRequest } from '../e2e/harness/http-client.js';
import { connectRaw } from '../e2e/harness/raw-connection.js';
import { waitFor } from '../e2e/harness/wait-for.js';
import { captureLog } from './capture-log.js';
import { startAdmin, streaming } from './fixture.js';

const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';

interface Answer {
  readonly headers: IncomingHttpHeaders & { readonly ':status'?: number };
  readonly body: string;
  /** 0 for a complete answer. */
  readonly code: number;
}

function session(t: Test, port: number): ClientHttp2Session {
  const client = connect(`http://127.0.0.1:${port}`);
  client.on('error', () => {});
  t.teardown(() => client.destroy());
  return client;
}

function ask(client: ClientHttp2Session, headers: Record<string, string>, body?: string | Buffer): Promise<Answer> {
  return new Promise((resolve) => {
    const stream = client.request(headers, { endStream: body === undefined });
    let received: Answer['headers'] = {};
    const chunks: Buffer[] = [];
    stream.on('response', (response) => {
      received = response;
    });
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('error', () => {});
    stream.on('close', () =>
      resolve({ headers: received, body: Buffer.concat(chunks).toString(), code: stream.rstCode ?? 0 }),
    );
    if (body !== undefined) stream.end(body);
  });
}

t.test('the access log contains the headers of HTTP/1 and HTTP/2 responses', async (t) => {
  const lines: string[] = [];
  const format = compileFormat('%PROTOCOL% %RESP(content-type)% %RESP(:status)% %REQ(x-forwarded-for)%');
  const requestLog = new RequestLog(
    [
      {
        needs: format.needs,
        log(info) {
          const line = new LogBuffer(100);
          format.write(info, line);
          lines.push(Buffer.from(line.bytes.subarray(0, line.length)).toString());
        },
        close() {},
      },
    ],
    '192.0.2.7',
  );
  const { port } = await startAdmin(t, { requestLog });
  await httpRequest(port, '/ready');
  await ask(session(t, port), { ':path': '/ready', 'x-forwarded-for': '198.51.100.1' });
  await waitFor(() => lines.length === 2, { what: 'both lines' });
  t.same(lines, [
    'HTTP/1.1 text/plain; charset=UTF-8 200 192.0.2.7',
    'HTTP/2 text/plain; charset=UTF-8 200 198.51.100.1,192.0.2.7',
  ]);
});

t.test('an access logger that fails affects neither the other loggers nor the server', async (t) => {
  const log = captureLog(t);
  const statuses: number[] = [];
  const needs = compileFormat('').needs;
  const broken = () => {
    throw new Error('on purpose');
  };
  const requestLog = new RequestLog(
    [
      { needs, log: broken, close() {} },
      { needs, log: (info) => void statuses.push(info.responseCode), close() {} },
    ],
    '192.0.2.7',
  );
  const { port } = await startAdmin(t, { requestLog });
  await httpRequest(port, '/ready');
  await httpRequest(port, '/nowhere');
  await waitFor(() => statuses.length === 2, { what: 'the log of the other logger' });
  t.same(statuses, [200, 404]);
  t.match(log.text(), /an access logger of the admin interface failed: Error: on purpose/);
});

t.test('a response with connection: close causes no Node warning on HTTP/2', async (t) => {
  const warnings: Error[] = [];
  const collect = (warning: Error) => warnings.push(warning);
  process.on('warning', collect);
  t.teardown(() => process.off('warning', collect));
  const handler: AdminHandler = {
    path: '/last',
    mutates: false,
    help: '',
    parameters: [],
    handle: () => ({ headers: { connection: 'close' }, body: 'bye' }),
  };
  const { port } = await startAdmin(t, { handlers: [...HANDLERS, handler] });
  t.match(await httpRequest(port, '/last'), { headers: { connection: 'close' }, body: 'bye' });
  t.match(await ask(session(t, port), { ':path': '/last' }), { headers: { ':status': 200 }, body: 'bye' });
  t.same(warnings, []);
});

t.test('HTTP/2 requests reach the same endpoints with the same rules', async (t) => {
  captureLog(t);
  const { services, port } = await startAdmin(t, { allowedHosts: ['127.0.0.1'] });
  const client = session(t, port);
  const ready = await ask(client, { ':path': '/ready' });
  t.match(ready.headers, { ':status': 200, 'content-type': 'text/plain; charset=UTF-8', server: 'baton' });
  t.equal(ready.body, 'LIVE\n');
  t.match(await ask(client, { ':path': '/ready', ':method': 'HEAD' }), { headers: { ':status': 200 }, body: '' });
  t.match((await ask(client, { ':path': '/nothing' })).headers, { ':status': 404 });
  t.match((await ask(client, { ':path': '/quitquitquit' })).headers, { ':status': 400 });
  t.match((await ask(client, { ':path': '/ready', ':authority': 'evil.example' })).headers, { ':status': 403 });
  const post = { ':path': '/quitquitquit', ':method': 'POST' };
  t.match((await ask(client, { ...post, origin: 'http://evil.example' })).headers, { ':status': 403 });
  t.strictSame(services.calls, []);
  t.match((await ask(client, { ...post, origin: `http://127.0.0.1:${port}` })).headers, { ':status': 200 });
  t.strictSame(services.calls, ['quit']);
  const tooLong = await ask(client, { ...post, ':path': '/ready' }, Buffer.alloc(1024 * 1024 + 1));
  t.match(tooLong.headers, { ':status': 413 });
  const form = { ...post, ':path': '/stats', 'content-type': 'application/x-www-form-urlencoded' };
  t.equal((await ask(client, form, 'filter=nothing-has-this-name')).body, '');
});

t.test('requests on one connection are served concurrently', async (t) => {
  const { port } = await startAdmin(t);
  const client = session(t, port);
  const answers = await Promise.all(Array.from({ length: 50 }, () => ask(client, { ':path': '/help' })));
  t.ok(answers.every(({ headers, body }) => headers[':status'] === 200 && body.startsWith('admin commands are:')));
});

t.test('a slow reader pauses the source, and resetting the stream ends it', async (t) => {
  let made = 0;
  let isEnded = false;
  const { port } = await startAdmin(t, {
    handlers: streaming(function* () {
      try {
        for (;;) {
          made++;
          yield Buffer.alloc(64 * 1024, 'x');
        }
      } finally {
        isEnded = true;
      }
    }),
  });
  const client = session(t, port);
  const stream = client.request({ ':path': '/stream' });
  stream.on('error', () => {});
  await new Promise((resolve) => stream.once('response', resolve));
  let before = -1;
  await waitFor(
    async () => {
      await ask(client, { ':path': '/ready' });
      const isPaused = made === before;
      before = made;
      return isPaused;
    },
    { what: 'the source to be paused' },
  );
  t.ok(made < 100, `${made} pieces were produced`);
  stream.close(constants.NGHTTP2_CANCEL);
  await waitFor(() => isEnded, { what: 'the end of the source' });
  t.equal((await ask(client, { ':path': '/ready' })).body, 'LIVE\n');
});

t.test('a body whose source fails does not look complete', async (t) => {
  captureLog(t);
  const { port } = await startAdmin(t, {
    handlers: streaming(function* () {
      yield Buffer.from('half');
      throw new Error('the other half is missing');
    }),
  });
  const answer = await ask(session(t, port), { ':path': '/stream' });
  t.equal(answer.code, constants.NGHTTP2_INTERNAL_ERROR);
});

t.test('closing the server completes responses in flight and ends idle connections', async (t) => {
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const { server, port } = await startAdmin(t, {
    handlers: streaming(async function* () {
      yield Buffer.from('first ');
      await released;
      yield Buffer.from('last');
    }),
  });
  const idle = session(t, port);
  await ask(idle, { ':path': '/ready' });
  const busy = session(t, port);
  const stream = ask(busy, { ':path': '/stream' });
  await ask(busy, { ':path': '/ready' });
  const closed = server.close(10_000);
  await waitFor(() => idle.closed || idle.destroyed, { what: 'the end of the idle connection' });
  release();
  t.match(await stream, { body: 'first last', code: 0 });
  await closed;
});

t.test('an incomplete request times out', async (t) => {
  const { port } = await startAdmin(t, { stallTimeoutMs: 50 });
  const stream = session(t, port).request({ ':path': '/ready', ':method': 'POST' }, { endStream: false });
  stream.on('error', () => {});
  await waitFor(() => stream.closed, { what: 'the reset' });
  t.equal(stream.rstCode, constants.NGHTTP2_CANCEL);
});

t.test('a client that violates the protocol and disconnects does not block the server', async (t) => {
  const store = new StatsStore({ workers: 1 });
  const body = async function* () {
    for (;;) yield await new Promise<Uint8Array>((resolve) => setImmediate(resolve, Buffer.alloc(1000)));
  };
  const { port } = await startAdmin(t, {
    handlers: streaming(body),
    stallTimeoutMs: 50,
    traffic: new AdminTraffic(store),
  });
  const client = await connectRaw(t, port);
  const path = '/stream';
  const head = `\x82\x86\x44${String.fromCharCode(path.length)}${path}\x41\x01x`;
  client.write(`${PREFACE}\0\0\0\x04\0\0\0\0\0\0\0${String.fromCharCode(head.length)}\x01\x05\0\0\0\x01${head}`);
  await waitFor(() => client.received.length > 1000, { what: 'the beginning of the answer' });
  // A settings frame of one byte: the session sends GOAWAY and nothing more.
  client.write('\0\0\x01\x04\0\0\0\0\0x');
  await waitFor(() => client.received.includes('\x07\0\0\0\0\0'), { what: 'GOAWAY' });
  client.reset();
  t.equal(store.value('http.admin.downstream_rq_total'), 1);
  await waitFor(() => store.value('http.admin.downstream_rq_active') === 0, { what: 'the end of the request' });
});

t.test('a client that sends invalid HTTP/2 is counted and disconnected, whether or not it resets first', async (t) => {
  const store = new StatsStore({ workers: 1 });
  const { port } = await startAdmin(t, { checkIntervalMs: 10, traffic: new AdminTraffic(store) });
  for (const [count, leaves] of [true, false].entries()) {
    const client = await connectRaw(t, port);
    client.write(`${PREFACE}\0\0\0\x04\0\0\0\0\0${'\xff'.repeat(50)}`);
    await waitFor(() => client.received.includes('\x07\0\0\0\0\0'), { what: 'GOAWAY' });
    if (leaves) client.reset();
    await waitFor(() => store.value('http.admin.downstream_cx_active') === 0, { what: 'the end of the connection' });
    t.equal(store.value('http.admin.downstream_cx_protocol_error'), count + 1);
  }
});

t.test(
  'data that begins like the HTTP/2 preface but differs is refused, and bytes may arrive one by one',
  async (t) => {
    const { port } = await startAdmin(t);
    const almost = await connectRaw(t, port);
    almost.write('PRI * HTTP/2.0\r\n\r\nGET');
    await waitFor(() => almost.received.includes('400 Bad Request'), { what: 'the refusal' });
    const slow = await connectRaw(t, port);
    for (const byte of 'POST /ready HTTP/1.1\r\nHost: a\r\n\r\n') slow.write(byte);
    await waitFor(() => slow.received.includes('LIVE'), { what: 'the answer' });
    const silent = await connectRaw(t, port);
    silent.write('PRI');
    t.equal((await httpRequest(port, '/ready')).status, 200, 'other clients are served meanwhile');
    silent.write('NT / HTTP/1.1\r\nHost: a\r\n\r\n');
    await waitFor(() => silent.received.includes('400 Bad Request'), { what: 'the refusal of the incomplete preface' });
  },
);
