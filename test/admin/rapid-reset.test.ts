// Rapid reset (CVE-2023-44487): clients that reset their requests cause a bounded number of answers and lose their
// connections.

import { connect, type Socket } from 'node:net';
import t, { type Test } from 'tap';
import { HANDLERS } from '../../src/admin/handlers/index.js';
import { AdminTraffic } from '../../src/admin/http/connections/admin-traffic.js';
import { StatsStore } from '../../src/stats/store.js';
import { httpRequest } from '../e2e/harness/http-client.js';
import { opening, request, reset } from '../e2e/harness/http2-frames.js';
import { waitFor } from '../e2e/harness/wait-for.js';
import { captureLog } from './capture-log.js';
import { startAdmin } from './fixture.js';

const CONNECTIONS = 16;
const REQUESTS = 20_000;

t.test('requests that are reset in the same segment cause no answer', async (t) => {
  const { port, answers, stat } = await startCounting(t);
  const frames = pairs(REQUESTS);
  await Promise.all(
    Array.from({ length: CONNECTIONS }, () => sendAll(t, port, [Buffer.concat([opening(), ...frames])])),
  );
  t.equal(answers(), 0);
  t.equal(stat('downstream_rq_too_many_premature_resets'), CONNECTIONS);
  t.equal((await httpRequest(port, '/ready')).status, 200);
  t.equal(stat('downstream_cx_http2_active'), 0, 'the connections are closed');
});

t.test('requests that are reset slightly later cause few answers, and their connection is closed', async (t) => {
  const { port, answers, stat } = await startCounting(t);
  const frames = pairs(REQUESTS);
  // Each request arrives before its reset.
  const segments = [opening(), ...frames];
  await Promise.all(Array.from({ length: CONNECTIONS }, () => sendAll(t, port, segments)));
  t.ok(answers() <= CONNECTIONS * 200, `${answers()} answers`);
  t.equal(stat('downstream_rq_too_many_premature_resets'), CONNECTIONS);
  t.equal((await httpRequest(port, '/ready')).status, 200);
});

t.test('a client that resets few requests keeps its connection', async (t) => {
  const { port, answers } = await startCounting(t);
  const socket = connect(port, '127.0.0.1');
  t.teardown(() => socket.destroy());
  socket.on('error', () => {});
  socket.write(opening());
  for (let index = 0; index < 50; index++) {
    socket.write(
      Buffer.concat([request(4 * index + 1, '/stats'), reset(4 * index + 1), request(4 * index + 3, '/costly')]),
    );
    await waitFor(() => answers() === index + 1);
  }
  t.equal(socket.closed, false);
});

/** HEADERS and RST_STREAM alternately. */
function pairs(count: number): Buffer[] {
  return Array.from({ length: count }, (_, index) => [request(2 * index + 1, '/costly'), reset(2 * index + 1)]).flat();
}

async function startCounting(t: Test) {
  captureLog(t);
  let answers = 0;
  const costly = {
    path: '/costly',
    mutates: false,
    help: '',
    parameters: [],
    handle: () => {
      answers++;
      return { body: 'done' };
    },
  };
  const store = new StatsStore({ workers: 1 });
  const { port } = await startAdmin(t, { handlers: [...HANDLERS, costly], traffic: new AdminTraffic(store) });
  return { port, answers: () => answers, stat: (name: string) => store.value(`http.admin.${name}`) };
}

/** Sends the segments, each after the previous one was written. Resolves when the server has closed the connection. */
function sendAll(t: Test, port: number, segments: readonly Buffer[]): Promise<void> {
  const socket: Socket = connect(port, '127.0.0.1');
  t.teardown(() => socket.destroy());
  socket.setNoDelay(true);
  socket.on('error', () => {});
  socket.resume();
  let index = 0;
  const next = () => {
    if (socket.destroyed || index === segments.length) return;
    socket.write(segments[index++]!, () => setImmediate(next));
  };
  socket.on('connect', next);
  return new Promise((resolve) => socket.on('close', () => resolve()));
}
