// Local replies to requests whose body arrived before: what has been received is read, so that the connection can be kept.

import { join } from 'node:path';
import t from 'tap';
import {
  connectRaw,
  fileAccessLog,
  freePort,
  logLines,
  startBlackHole,
  staticCluster,
  tempDir,
  waitFor,
} from '../../harness/index.js';
import { managerOf, routeTo, startProxy } from '../proxy.js';

const file = join(tempDir(t), 'log');
const proxy = await startProxy(t, {
  listeners: {
    main: managerOf([routeTo({ prefix: '/late' }, 'silent'), routeTo({ prefix: '/' }, 'refused')], {
      access_log: [fileAccessLog(file, '%REQ(:path)% %RESPONSE_CODE% %BYTES_RECEIVED%\n')],
    }),
  },
  clusters: [
    staticCluster('refused', await freePort()),
    staticCluster('silent', await startBlackHole(t), { connect_timeout: '0.1s' }),
  ],
  args: ['-l', 'warning', '--file-flush-interval-msec', '20'],
});
const post = (path: string) => `POST ${path} HTTP/1.1\r\nhost: a\r\n`;
const BODIES = ['content-length: 5\r\n\r\nhello', 'transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n'];

t.test('the connection is kept after a reply to a request that has arrived whole', async (t) => {
  for (const path of ['/refused', '/late']) {
    const client = await connectRaw(t, proxy.port);
    // The next request arrives with the body.
    client.write(BODIES.map((body) => post(path) + body).join(''));
    const LAST = /(?:upstream connect error(?:.|\r|\n)*){2}(failure|timeout)$/;
    t.notMatch(await client.readUntil(LAST), /connection: close/, path);
    client.end();
    await client.readToEnd();
  }
  await waitFor(() => logLines(file).length === 4, { what: 'four lines' });
  t.same(logLines(file), ['/refused 503 5', '/refused 503 5', '/late 503 5', '/late 503 5']);
});

t.test('the connection closes after a reply to a request whose body is incomplete or invalid', async (t) => {
  const lines = logLines(file).length;
  const partly = await connectRaw(t, proxy.port);
  partly.write(`${post('/part')}content-length: 5\r\n\r\nhel`);
  t.match((await partly.readToEnd()).text, /^HTTP\/1\.1 503 (.*\r\n)*connection: close\r\n/);
  const invalid = await connectRaw(t, proxy.port);
  invalid.write(`${post('/invalid')}transfer-encoding: chunked\r\n\r\nno chunk\r\n`);
  t.match((await invalid.readToEnd()).text, /^HTTP\/1\.1 400 /);
  await waitFor(() => logLines(file).length === lines + 2, { what: 'their lines' });
  t.same(logLines(file).slice(lines), ['/part 503 3', '/invalid 400 0']);
});
