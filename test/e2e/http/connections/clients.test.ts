// Common clients: curl, wrk, fetch, a browser.

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { findPeer, openPage, startBrowser, startUpstream, staticCluster, tempDir } from '../../harness/index.js';
import { managerOf, routeTo, startProxy } from '../proxy.js';
import { startRawUpstream } from '../raw-upstream.js';

const run = promisify(execFile);
const BODY = Buffer.alloc(300_000, 'curl sends this. ');

/** A page of several resources, whose script sends a body and uses a WebSocket. */
const PAGE: Record<string, [type: string, text: string]> = {
  '/page': ['text/html', '<link rel="stylesheet" href="page.css"><p>read</p><script src="page.js"></script>'],
  '/page.css': ['text/css', 'p { color: rgb(1, 2, 3) }'],
  '/page.js': [
    'text/javascript',
    `const sent = 'browsers send this. '.repeat(20000);
    const socket = new WebSocket('ws://' + location.host + '/socket');
    socket.onopen = () => socket.send('and this');
    socket.onmessage = async ({ data }) => {
      const answer = await fetch('echo', { method: 'POST', body: sent });
      document.title = data + ', ' + ((await answer.text()) === sent);
      socket.close();
    };`,
  ],
};

const upstream = await startUpstream(t, (request, answer) => {
  if (request.url === '/hello') return void answer.end('hello');
  const part = PAGE[request.url!];
  if (part !== undefined) return void answer.setHeader('content-type', part[0]).end(part[1]);
  answer.setHeader('x-method', request.method!);
  request.pipe(answer);
});
const sockets = await startRawUpstream(t, ({ head, socket }) => {
  const key = /\r\nsec-websocket-key: (.*)/i.exec(head)![1]!;
  const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
  const fields = `upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: ${accept}\r\n`;
  socket.write(`HTTP/1.1 101 Switching Protocols\r\n${fields}\r\n`);
  socket.on('data', (frame: string) => socket.write(unmasked(Buffer.from(frame, 'latin1'))));
});
const proxy = await startProxy(t, {
  listeners: {
    main: managerOf([routeTo({ path: '/socket' }, 'sockets'), routeTo({ prefix: '/' }, 'host')], {
      http_protocol_options: { accept_http_10: true },
      upgrade_configs: [{ upgrade_type: 'websocket' }],
    }),
  },
  clusters: [staticCluster('host', upstream.port), staticCluster('sockets', sockets.port)],
});
const base = `http://127.0.0.1:${proxy.port}`;
const file = join(tempDir(t), 'body');
writeFileSync(file, BODY);

t.test('curl gets responses, sends bodies, and reuses its connection', async (t) => {
  const curl = async (...args: string[]) => {
    const { stdout } = await run('curl', ['-sS', '--max-time', '20', ...args], {
      encoding: 'latin1',
      maxBuffer: 1 << 24,
    });
    return stdout;
  };
  t.equal(await curl(`${base}/hello`), 'hello');
  t.equal(await curl('--http1.0', `${base}/hello`), 'hello');
  t.match(await curl('-I', `${base}/hello`), /^HTTP\/1\.1 200 OK\r\n/);
  t.equal(await curl(`${base}/hello`, `${base}/hello`, `${base}/hello`), 'hellohellohello', 'on one connection');
  const body = BODY.toString('latin1');
  t.ok((await curl('--data-binary', `@${file}`, `${base}/echo`)) === body, 'POST');
  t.ok((await curl('-T', file, `${base}/echo`)) === body, 'PUT with Expect: 100-continue');
  t.ok((await curl('-T', file, '-H', 'transfer-encoding: chunked', `${base}/echo`)) === body, 'PUT in chunks');
  t.ok((await curl('-F', `file=@${file}`, `${base}/echo`)).includes(body), 'a form');
});

t.test('fetch gets concurrent responses', async (t) => {
  const answers = await Promise.all(Array.from({ length: 50 }, (_, index) => fetch(`${base}/hello?${index}`)));
  t.ok(answers.every(({ status }) => status === 200));
  await Promise.all(answers.map((answer) => answer.arrayBuffer()));
  const answer = await fetch(`${base}/echo`, { method: 'POST', body: BODY });
  t.ok(Buffer.from(await answer.arrayBuffer()).equals(BODY));
});

t.test('wrk reports no errors', async (t) => {
  const { stdout } = await run('wrk', ['-t', '1', '-c', '64', '-d', '1s', '--timeout', '10s', `${base}/hello`]);
  t.match(stdout, /\d+ requests in/);
  t.notMatch(stdout, /Socket errors|Non-2xx/, 'every request is answered');
});

const chromium = findPeer('chromium');
t.test(
  'a browser loads a page, sends a body, and uses a WebSocket',
  chromium.path === undefined ? chromium : {},
  async (t) => {
    const { page, problems } = await openPage(t, await startBrowser(t, chromium.path!), `${base}/page`);
    await page.waitForFunction(`document.title !== ''`);
    t.equal(await page.title(), 'and this, true');
    t.equal(await page.evaluate(`getComputedStyle(document.querySelector('p')).color`), 'rgb(1, 2, 3)');
    t.same(problems, []);
  },
);

/** Encodes a short WebSocket frame as a server sends it (RFC 6455 section 5.2). */
function unmasked(frame: Buffer): Buffer {
  const mask = frame.subarray(2, 6);
  return Buffer.concat([
    Buffer.of(frame[0]!, frame[1]! & 0x7f),
    frame.subarray(6).map((byte, at) => byte ^ mask[at % 4]!),
  ]);
}
