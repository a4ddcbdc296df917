// Requests in flight at a take-over are completed by the old process, which announces the close of connections.

import type { ServerResponse } from 'node:http';
import t from 'tap';
import {
  bootstrap,
  connectRaw,
  freePort,
  httpListener,
  routeAllTo,
  startTcpUpstream,
  startUpstream,
  staticCluster,
  type Teardown,
  tcpListener,
  waitFor,
  waitForLog,
} from '../harness/index.js';
import { Epochs } from './epochs.js';

/** Nothing here may end because the old process exits. */
const TIMES = ['--drain-time-s', '1', '--parent-shutdown-time-s', '600', '--drain-strategy', 'immediate'];

t.test('a response in progress is finished, and the next one on its connection is the last', async (t) => {
  const begun: ServerResponse[] = [];
  const { port, takeOver } = await startHttp(t, (path, response) => {
    if (path !== '/slow') return void response.end('quick');
    response.writeHead(200, { 'content-length': 10 }).write('begin');
    begun.push(response);
  });
  const client = await connectRaw(t, port);
  client.write('GET /slow HTTP/1.1\r\nHost: a\r\n\r\n');
  const head = await client.readUntil('\r\n\r\nbegin');
  t.notMatch(head, /connection: close/i, 'no close to announce yet');
  await takeOver();
  begun[0]!.end('ended');
  t.equal(await client.read(5), 'ended');
  client.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  const { text, closed } = await client.readToEnd();
  t.match(text, /^HTTP\/1.1 200 .*\r\nconnection: close\r\n.*quick$/s);
  t.equal(closed, 'end');
});

t.test('a response that had not started announces the close', async (t) => {
  const waiting: ServerResponse[] = [];
  const { port, takeOver } = await startHttp(t, (_path, response) => void waiting.push(response));
  const client = await connectRaw(t, port);
  client.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  await waitFor(() => waiting.length === 1);
  await takeOver();
  const body = 'x'.repeat(300_000);
  waiting[0]!.end(body);
  const { text, closed } = await client.readToEnd();
  t.match(text.slice(0, 1000), /^HTTP\/1.1 200 .*\r\nconnection: close\r\n/s);
  t.ok(text.endsWith(`\r\n\r\n${body}`), 'the body is complete');
  t.equal(closed, 'end');
});

t.test('an upload in progress is completed, with and without Expect', async (t) => {
  const { port, epochs, takeOver } = await startHttp(t, (_path, response, body) => void response.end(`got ${body}`));
  const [plain, expecting] = [await connectRaw(t, port), await connectRaw(t, port)];
  plain.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\nhalf');
  expecting.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\nExpect: 100-continue\r\n\r\n');
  await expecting.readUntil('HTTP/1.1 100 Continue\r\n\r\n');
  await waitFor(async () => (await epochs.current.stat('http.http.downstream_rq_active')) === 2);
  await takeOver();
  plain.write('half');
  expecting.write('together');
  for (const [client, expected] of [[plain, 'got halfhalf'] as const, [expecting, 'got together'] as const]) {
    const { text, closed } = await client.readToEnd();
    t.match(text, /^HTTP\/1.1 200 .*\r\nconnection: close\r\n/s);
    t.ok(text.endsWith(expected), text);
    t.equal(closed, 'end');
  }
});

t.test('no pipelined request is started after the announced close, and no response before it is lost', async (t) => {
  const waiting: ServerResponse[] = [];
  const asked: string[] = [];
  const { port, takeOver } = await startHttp(t, (path, response) => {
    asked.push(path);
    waiting.push(response);
  });
  const client = await connectRaw(t, port);
  client.write([1, 2, 3].map((number) => `GET /${number} HTTP/1.1\r\nHost: a\r\n\r\n`).join(''));
  await waitFor(() => waiting.length > 0);
  await takeOver();
  waiting[0]!.end('first');
  const { text, closed } = await client.readToEnd();
  t.match(text, /^HTTP\/1.1 200 .*\r\nconnection: close\r\n.*first$/s);
  t.same(asked, ['/1'], 'a client may repeat the others');
  t.equal(closed, 'end', 'unread bytes do not turn the close into a reset');
});

t.test('a TCP stream continues until the old process ends, and closes in an orderly way', async (t) => {
  const upstream = await startTcpUpstream(t, (socket) => socket.pipe(socket));
  const port = await freePort();
  const config = bootstrap({
    listeners: [tcpListener('tcp', port, { cluster: 'origin' })],
    clusters: [staticCluster('origin', upstream.port)],
  });
  const epochs = new Epochs(t, { config, args: ['--drain-time-s', '1', '--parent-shutdown-time-s', '5'] });
  await epochs.next(1);
  const old = await connectRaw(t, port);
  old.write('before');
  t.equal(await old.read(6), 'before');
  await epochs.next(1);
  // Its workers have stopped accepting by then.
  await waitForLog(epochs.all[0]!, 'draining all listeners');
  await waitForLog(epochs.all[0]!, 'the time to drain is over');
  old.write('after');
  t.equal(await old.read(5), 'after');
  const other = await connectRaw(t, port);
  other.write('new');
  t.equal(await other.read(3), 'new');
  t.same(await old.readToEnd(), { text: '', closed: 'end' });
  other.write('still');
  t.equal(await other.read(5), 'still', 'the new process closes nothing');
});

/** Starts a proxy with one worker before an HTTP server that calls `handler` when a request is complete. */
async function startHttp(t: Teardown, handler: (path: string, response: ServerResponse, body: string) => void) {
  const upstream = await startUpstream(t, (request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => {
      body += chunk.toString('latin1');
    });
    request.on('end', () => (request.url === PROBE ? response.end() : handler(request.url!, response, body)));
  });
  const port = await freePort();
  const config = bootstrap({
    listeners: [httpListener('http', port, { route_config: routeAllTo('origin') })],
    clusters: [staticCluster('origin', upstream.port)],
  });
  const epochs = new Epochs(t, { config, args: TIMES });
  await epochs.next(1);
  return { port, epochs, takeOver: () => takeOver(t, epochs, port) };
}

/** Starts the next epoch, and sends requests on a connection to the old one until that reports its drain. */
async function takeOver(t: Teardown, epochs: Epochs, port: number): Promise<void> {
  const probe = await connectRaw(t, port);
  const ask = async (): Promise<boolean> => {
    probe.write(`GET ${PROBE} HTTP/1.1\r\nHost: a\r\n\r\n`);
    return /\r\nconnection: close\r\n/.test(await probe.readUntil('\r\n\r\n'));
  };
  await ask();
  await epochs.next(1);
  await waitFor(ask, { what: 'the drain of the old process' });
}

const PROBE = '/probe';
