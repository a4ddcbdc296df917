// Bodies of any size are forwarded unchanged, and a slow reader exerts back pressure on the sender instead of filling the
// proxy's memory.

import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import t from 'tap';
import { connectRaw, startUpstream, staticCluster, type Teardown, waitFor } from '../../harness/index.js';
import { type HttpProxy, managerOf, routeTo, startProxy } from '../proxy.js';
import { startRawUpstream } from '../raw-upstream.js';

const MB = 1 << 20;
const LARGE = 100 * MB;
/** What the kernel's buffers on the way may hold, up to 36 MB on each side of the proxy: less than the whole body. */
const STALLED = 80 * MB;
/**
 * Growth of the process besides the body: uncollected heap, slabs. A proxy without back pressure would hold nearly the whole
 * body.
 */
const GROWTH = 45 * MB;

const block = Buffer.from(Array.from({ length: MB }, (_, index) => (index * 31 + (index >> 8) * 7) & 255));
/** Bytes that the host has passed to its sockets, by path. */
const written = new Map<string, number>();
/** Number of samples of the buffered bytes taken so far. */
let samples = 0;
/** Uploads whose bytes the host does not read yet. */
const uploads: { incoming: IncomingMessage; answer: () => void }[] = [];

const upstream = await startUpstream(t, (incoming, outgoing) => {
  const path = incoming.url!;
  if (path.startsWith('/down')) {
    const bytes = Number(path.split('/').at(-1)) * MB;
    if (!path.startsWith('/down/chunked')) outgoing.setHeader('content-length', bytes);
    const blocks = Readable.from(countedBlocks(path, bytes));
    pipeline(blocks, outgoing).catch(() => {});
  } else if (path.startsWith('/echo')) {
    pipeline(incoming, outgoing).catch(() => {});
  } else {
    const hash = createHash('sha256');
    const answer = () => {
      incoming.on('data', (chunk: Buffer) => hash.update(chunk));
      incoming.on('end', () => outgoing.end(hash.digest('hex')));
    };
    if (path.startsWith('/up/held')) uploads.push({ incoming, answer });
    else answer();
  }
});

const raw = await startRawUpstream(t, () => {});

const retry = { retry_policy: { retry_on: '5xx', num_retries: 1 } };
const small = 32 * 1024;
const proxy = await startProxy(t, {
  listeners: {
    main: managerOf([
      routeTo({ prefix: '/up/held/retry' }, 'host', { timeout: '0s', ...retry }),
      routeTo({ prefix: '/raw' }, 'raw', { timeout: '0s' }),
      routeTo({ prefix: '/' }, 'host', { timeout: '0s' }),
    ]),
  },
  clusters: [staticCluster('host', upstream.port), staticCluster('raw', raw.port)],
});
const frugal = await startProxy(t, {
  listeners: { main: managerOf([routeTo({ prefix: '/' }, 'host', { timeout: '0s' })]) },
  clusters: [staticCluster('host', upstream.port, { per_connection_buffer_limit_bytes: small })],
  listenerOptions: { per_connection_buffer_limit_bytes: small },
});

t.test('a slow client exerts back pressure on the host', async (t) => {
  const memory = await watchMemory(proxy);
  for (const path of ['/down/100', '/down/chunked/100']) {
    const incoming = await open(proxy, path);
    const stalledAt = await settled(() => written.get(path)!);
    t.ok(stalledAt < STALLED, `${path}: the host stopped after ${stalledAt / MB} of 100 MB`);
    t.equal(await digestOf(incoming), digestOfBlocks(100), `${path}: every byte arrives`);
    t.equal(written.get(path), LARGE);
  }
  const paused = 'cluster.host.upstream_flow_control_paused_reading_total';
  const resumed = 'cluster.host.upstream_flow_control_resumed_reading_total';
  t.ok((await proxy.baton.stat(paused))! >= 2);
  t.equal(await proxy.baton.stat(resumed), await proxy.baton.stat(paused));
  memory.check(t);
});

t.test('a slow host exerts back pressure on the client', async (t) => {
  const memory = await watchMemory(proxy);
  for (const path of ['/up/held', '/up/held/retry']) {
    let sent = 0;
    const outgoing = request({ port: proxy.port, host: '127.0.0.1', path, method: 'POST', agent: false });
    const answered = new Promise<IncomingMessage>((resolve, reject) => {
      outgoing.on('response', resolve).on('error', reject);
    });
    const sending = pipeline(
      Readable.from(
        (function* () {
          for (; sent < LARGE; sent += MB) yield block;
        })(),
      ),
      outgoing,
    );
    await waitFor(() => uploads.length === 1);
    const stalledAt = await settled(() => sent);
    t.ok(stalledAt < STALLED, `${path}: the client stopped after ${stalledAt / MB} of 100 MB`);
    uploads.pop()!.answer();
    await sending;
    t.equal(await textOf(await answered), digestOfBlocks(100), `${path}: every byte arrives`);
  }
  const backedUp = 'cluster.host.upstream_flow_control_backed_up_total';
  t.ok((await proxy.baton.stat(backedUp))! >= 2);
  t.equal(await proxy.baton.stat('cluster.host.upstream_flow_control_drained_total'), await proxy.baton.stat(backedUp));
  memory.check(t);
});

t.test("many slow clients use no more memory than their connections' limits", async (t) => {
  const memory = await watchMemory(frugal);
  const paths = Array.from({ length: 30 }, (_, index) => `/down/many/${index}/6`);
  const answers = await Promise.all(paths.map((path) => open(frugal, path)));
  await settled(() => paths.reduce((sum, path) => sum + written.get(path)!, 0));
  const stat = async (name: string) => (await frugal.baton.stat(name))!;
  await settled(() => stat('cluster.host.upstream_cx_rx_bytes_total'));
  await sampled(t, frugal);
  const toClients = await stat('http.main.downstream_cx_tx_bytes_buffered');
  const fromHosts = await stat('cluster.host.upstream_cx_rx_bytes_buffered');
  t.ok(toClients > 0, 'bytes are buffered for clients');
  const most = 4 * small;
  const each = Math.round((toClients + fromHosts) / paths.length);
  t.ok(each <= most, `of each response ${each} bytes are buffered for its client, at most ${most}`);
  memory.check(t, 'while no client reads');
  const digests = await Promise.all(answers.map(digestOf));
  t.ok(digests.every((digest) => digest === digestOfBlocks(6)));
  memory.check(t);
});

t.test('bytes buffered from hosts are counted as long as they are buffered', async (t) => {
  const ofRaw = 'cluster.raw.upstream_cx_rx_bytes_buffered';
  const client = await connectRaw(t, proxy.port);
  client.write('GET /raw HTTP/1.1\r\nhost: a\r\n\r\n');
  await waitFor(() => raw.requests.length === 1);
  const { socket } = raw.requests[0]!;
  const beginning = 'HTTP/1.1 200 OK\r\nx-slow: ';
  socket.write(beginning);
  await t.resolves(proxy.baton.waitForStat(ofRaw, beginning.length), 'a partial header section');
  socket.write('no\r\ncontent-length: 2\r\n\r\nok');
  await client.readUntil('ok');
  await t.resolves(proxy.baton.waitForStat(ofRaw, 0), 'a complete response leaves the buffer');

  const ofHost = 'cluster.host.upstream_cx_rx_bytes_buffered';
  const answers: IncomingMessage[] = [];
  // Whether bytes are buffered for a client before its host's connection is paused is a matter of chance.
  await waitFor(
    async () => {
      const paths = Array.from({ length: 8 }, (_, index) => `/down/waiting/${answers.length + index}/20`);
      answers.push(...(await Promise.all(paths.map((path) => open(proxy, path)))));
      await settled(() => paths.reduce((sum, path) => sum + written.get(path)!, 0));
      await sampled(t, proxy);
      return (await proxy.baton.stat(ofHost))! > 0;
    },
    { what: 'bytes of a host buffered for a slow client', deadlineMs: 60_000 },
  );
  const digests = await Promise.all(answers.map(digestOf));
  t.ok(digests.every((digest) => digest === digestOfBlocks(20)));
  await t.resolves(proxy.baton.waitForStat(ofHost, 0), 'nothing is buffered after the clients have read');
});

t.test('a client that disconnects in the middle frees its buffers', async (t) => {
  const memory = await watchMemory(proxy);
  for (let i = 0; i < 10; i++) {
    const incoming = await open(proxy, `/down/left/${i}/20`);
    incoming.destroy();
  }
  await waitFor(async () => (await proxy.baton.stat('http.main.downstream_rq_active')) === 0);
  memory.check(t);
});

t.test('a client that disconnected without reading delays no later one', async (t) => {
  const path = '/down/unread/100';
  const client = await connectRaw(t, proxy.port);
  client.socket.pause();
  client.write(`GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`);
  await waitFor(() => written.has(path));
  t.ok((await settled(() => written.get(path)!)) < STALLED, 'its host is paused');
  client.end();
  await proxy.baton.waitForStat('http.main.downstream_rq_active', 0);
  const { status, body } = await proxy.get('/down/after/1');
  t.same([status, body.length], [200, MB]);
});

t.test('bodies are forwarded in both directions at once', async (t) => {
  const sizes = [0, 1, 1000, 65_536, 65_537, 3 * MB, 16 * MB];
  for (const size of sizes) {
    const body = Buffer.alloc(size);
    for (let at = 0; at < size; at += MB) block.copy(body, at);
    const outgoing = request({ port: proxy.port, host: '127.0.0.1', path: '/echo', method: 'POST', agent: false });
    outgoing.setHeader('content-length', size);
    const answered = new Promise<IncomingMessage>((resolve, reject) => {
      outgoing.on('response', resolve).on('error', reject);
    });
    outgoing.end(body);
    t.equal(await digestOf(await answered), createHash('sha256').update(body).digest('hex'), `${size} bytes`);
  }
});

t.test('bodies in irregular pieces are forwarded, in chunks and with a length', async (t) => {
  const pieces = Array.from({ length: 400 }, (_, index) => block.subarray(index, index + ((index * 7919) % 5000)));
  const whole = createHash('sha256');
  for (const piece of pieces) whole.update(piece);
  const expected = whole.digest('hex');
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  for (const headers of [{}, { 'content-length': length }]) {
    const outgoing = request({
      port: proxy.port,
      host: '127.0.0.1',
      path: '/up',
      method: 'PUT',
      agent: false,
      headers,
    });
    const answered = new Promise<IncomingMessage>((resolve, reject) => {
      outgoing.on('response', resolve).on('error', reject);
    });
    await pipeline(Readable.from(pieces), outgoing);
    t.equal(await textOf(await answered), expected, JSON.stringify(headers));
  }
});

function* countedBlocks(path: string, bytes: number): Generator<Buffer, void> {
  for (let sent = 0; sent < bytes; sent += MB) {
    written.set(path, sent + MB);
    yield block;
  }
}

/** Resolves with the response after its header section, without reading its body. */
function open({ port }: HttpProxy, path: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request({ port, host: '127.0.0.1', path, agent: false })
      .on('response', (incoming) => {
        incoming.on('error', () => {});
        resolve(incoming);
      })
      .on('error', reject)
      .end();
  });
}

async function digestOf(incoming: IncomingMessage): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of incoming) hash.update(chunk as Buffer);
  return hash.digest('hex');
}

async function textOf(incoming: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of incoming) text += chunk;
  return text;
}

function digestOfBlocks(count: number): string {
  const hash = createHash('sha256');
  for (let i = 0; i < count; i++) hash.update(block);
  return hash.digest('hex');
}

/** Waits for the next periodic sample of the buffered bytes: a sample that includes the partial header section is current. */
async function sampled(t: Teardown, { baton, port }: HttpProxy): Promise<void> {
  const gauge = 'http.main.downstream_cx_rx_bytes_buffered';
  // A different length each time.
  const beginning = `GET /${'x'.repeat(++samples)}`;
  const marker = await connectRaw(t, port);
  marker.write(beginning);
  await baton.waitForStat(gauge, beginning.length);
  marker.destroy();
}

/** Returns the value when it has not changed for a while. */
async function settled(value: () => number | Promise<number>): Promise<number> {
  let last = await value();
  let same = 0;
  await waitFor(
    async () => {
      const now = await value();
      same = now === last ? same + 1 : 0;
      last = now;
      return same > 25;
    },
    { what: 'progress to stop', deadlineMs: 30_000 },
  );
  return last;
}

interface MemoryWatch {
  check(t: { ok(value: boolean, message: string): unknown }, when?: string): void;
}

/** Starts to record the peak memory of the process. */
async function watchMemory({ baton, get }: HttpProxy): Promise<MemoryWatch> {
  await get('/down/0');
  const read = (name: string) =>
    Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(readFileSync(`/proc/${baton.pid}/status`, 'utf8'))![1]) * 1024;
  const before = read('VmRSS');
  // Resets the recorded peak (proc(5)).
  writeFileSync(`/proc/${baton.pid}/clear_refs`, '5');
  return {
    check(t, when = 'at the end') {
      const growth = read('VmHWM') - before;
      t.ok(
        growth < GROWTH,
        `${when}: at most ${Math.round(growth / MB)} MB more than the ${Math.round(before / MB)} MB before`,
      );
    },
  };
}
