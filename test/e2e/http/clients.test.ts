// Clients that people have, as they come: curl, wrk, fetch.

import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { startUpstream, staticCluster, tempDir } from '../harness/index.js';
import { managerOf, routeTo, startProxy } from './proxy.js';

const run = promisify(execFile);
const BODY = Buffer.alloc(300_000, 'curl sends this. ');

const upstream = await startUpstream(t, (request, answer) => {
  if (request.url === '/hello') return void answer.end('hello');
  answer.setHeader('x-method', request.method!);
  request.pipe(answer);
});
const proxy = await startProxy(t, {
  listeners: {
    main: managerOf([routeTo({ prefix: '/' }, 'host')], { http_protocol_options: { accept_http_10: true } }),
  },
  clusters: [staticCluster('host', upstream.port)],
});
const base = `http://127.0.0.1:${proxy.port}`;
const file = join(tempDir(t), 'body');
writeFileSync(file, BODY);

t.test('curl', async (t) => {
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
  t.ok((await curl('-T', file, `${base}/echo`)) === body, 'PUT, which asks for 100-continue');
  t.ok((await curl('-T', file, '-H', 'transfer-encoding: chunked', `${base}/echo`)) === body, 'PUT in chunks');
  t.ok((await curl('-F', `file=@${file}`, `${base}/echo`)).includes(body), 'a form');
});

t.test('fetch', async (t) => {
  const answers = await Promise.all(Array.from({ length: 50 }, (_, index) => fetch(`${base}/hello?${index}`)));
  t.ok(answers.every(({ status }) => status === 200));
  await Promise.all(answers.map((answer) => answer.arrayBuffer()));
  const answer = await fetch(`${base}/echo`, { method: 'POST', body: BODY });
  t.ok(Buffer.from(await answer.arrayBuffer()).equals(BODY));
});

t.test('wrk', async (t) => {
  const { stdout } = await run('wrk', ['-t', '1', '-c', '64', '-d', '1s', '--timeout', '10s', `${base}/hello`]);
  t.match(stdout, /\d+ requests in/);
  t.notMatch(stdout, /Socket errors|Non-2xx/, 'every request is answered');
});
