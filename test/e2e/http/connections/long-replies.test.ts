// Long local replies to many clients at once: each client gets its reply as fast as it reads, and the worker's memory suffices
// however many clients ask and however little they read.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import {
  bootstrap,
  connectRaw,
  fileAccessLog,
  httpListener,
  httpRequest,
  startBaton,
  tempDir,
  waitFor,
} from '../../harness/index.js';

const LONG = 500_000;
const CLIENTS = 60;
/** More than the kernel buffers for a client that does not read. */
const HUGE = 16_000_000;
const directory = tempDir(t);
const log = join(directory, 'access.log');
const hugeFile = join(directory, 'huge');
writeFileSync(hugeFile, Buffer.alloc(HUGE, 'h'));
const routes = [
  { match: { path: '/short' }, direct_response: { status: 200, body: { inline_string: 's'.repeat(4000) } } },
  { match: { path: '/huge' }, direct_response: { status: 200, body: { filename: hugeFile } } },
  { match: { prefix: '/' }, direct_response: { status: 200, body: { inline_string: 'l'.repeat(LONG) } } },
];
const route_config = {
  name: 'r',
  max_direct_response_body_size_bytes: HUGE,
  virtual_hosts: [{ name: 'v', domains: ['*'], routes }],
};
const access_log = [fileAccessLog(log, '%RESPONSE_CODE% %RESPONSE_CODE_DETAILS% %BYTES_SENT%\n')];
const listener = httpListener('web', 0, { route_config, access_log });
// Half of what the replies to all clients take.
const args = ['--worker-buffer-memory-mb', '16', '--concurrency', '1', '--file-flush-interval-msec', '100'];
const baton = await startBaton(t, { config: bootstrap({ listeners: [listener], clusters: [] }), args });
const port = await baton.listenerPort('web');

function linesOfLog(line: string): number {
  return readFileSync(log, 'utf8').split(`${line}\n`).length - 1;
}

t.test('concurrent clients get long replies completely', async (t) => {
  const answers = await Promise.all(Array.from({ length: CLIENTS }, () => httpRequest(port, '/long')));
  t.ok(answers.every(({ status, body }) => status === 200 && body.length === LONG));
  await waitFor(() => linesOfLog(`200 direct_response ${LONG}`) === CLIENTS, { what: 'a log line for each' });
});

t.test('clients that do not read their replies take no memory from others', async (t) => {
  const idle = await Promise.all(Array.from({ length: CLIENTS }, () => connectRaw(t, port)));
  for (const { socket } of idle) socket.pause().write('GET /huge HTTP/1.1\r\nhost: a\r\n\r\n');
  await baton.waitForStat('http.web.downstream_rq_active', CLIENTS);
  const { status, body } = await httpRequest(port, '/long');
  t.equal(status, 200);
  t.equal(body.length, LONG);
  for (const each of idle) each.reset();
  await baton.waitForStat('http.web.downstream_rq_active', 0);
});

t.test('clients that request thousands of replies without reading do not harm the worker', async (t) => {
  const floods = await Promise.all(Array.from({ length: 5 * CLIENTS }, () => connectRaw(t, port)));
  for (const { socket } of floods) socket.pause().write('GET /short HTTP/1.1\r\nhost: a\r\n\r\n'.repeat(2000));
  const total = 'http.web.downstream_rq_total';
  const before = (await baton.stat(total)) ?? 0;
  await waitFor(async () => ((await baton.stat(total)) ?? 0) > before + CLIENTS, { what: 'requests of the flood' });
  for (const { socket } of floods) socket.destroy();
  await baton.waitForStat('http.web.downstream_cx_active', 0);
  t.equal((await httpRequest(port, '/short')).status, 200);
  t.equal(await baton.stat('server.envoy_bug_failures'), 0, baton.stderr);
});
