// Response heads as old hosts write them, and large ones: what the client receives is strict HTTP/1.1.

import t from 'tap';
import { clusterHttpOptions, rawExchange, staticCluster } from '../../harness/index.js';
import { parseMessage } from '../message.js';
import { managerOf, routeTo, startProxy } from '../proxy.js';
import { startRawUpstream } from '../raw-upstream.js';

const HEADS: Readonly<Record<string, string>> = {
  'bare LF': 'HTTP/1.1 200 OK\nX-A: b\nContent-Length: 2\n\nok',
  'bare LF at the end': 'HTTP/1.1 200 OK\r\nX-A: b\r\nContent-Length: 2\r\n\nok',
  'a folded line': 'HTTP/1.1 200 OK\r\nX-A:\r\n b\r\nContent-Length: 2\r\n\r\nok',
  'folded framing': 'HTTP/1.1 200 OK\r\nX-A: b\r\nContent-Length:\r\n\t2\r\n\r\nok',
  'further spaces': 'HTTP/1.1  200\tOK\r\nX-A: b\r\nContent-Length: 2\r\n\r\nok',
  'chunks with spaces': 'HTTP/1.1 200 OK\r\nX-A: b\r\nTransfer-Encoding: chunked\r\n\r\n2  \r\nok\n0 \r\n\n',
};
const BAD_HEADS: Readonly<Record<string, string>> = {
  'space before a colon': 'HTTP/1.1 200 OK\r\nX-A : b\r\nContent-Length: 2\r\n\r\nok',
  'a folded first line': 'HTTP/1.1 200 OK\r\n X-A: b\r\nContent-Length: 2\r\n\r\nok',
  'two lengths in folded lines': 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\n 2\r\n\r\nok',
  'bare CR': 'HTTP/1.1 200 OK\r\nX-A: b\rX-B: c\r\nContent-Length: 2\r\n\r\nok',
  'bare CR in a folded line': 'HTTP/1.1 200 OK\r\nX-A: b\r\n c\rX-B: c\r\nContent-Length: 2\r\n\r\nok',
};
const large = (bytes: number) => `HTTP/1.1 200 OK\r\nx-a: ${'b'.repeat(bytes)}\r\ncontent-length: 2\r\n\r\nok`;

const upstream = await startRawUpstream(t, ({ path, socket }) => {
  const [, kind = '', what = ''] = path.split('/');
  const name = what.replaceAll('_', ' ');
  if (kind === 'large' || kind === 'small' || kind === 'usual') socket.write(large(Number(what)));
  else {
    const bytes = HEADS[name] ?? BAD_HEADS[name]!;
    if (kind === 'whole') socket.write(bytes);
    else {
      socket.write(bytes.slice(0, 24));
      setImmediate(() => socket.write(bytes.slice(24)));
    }
  }
});
const limited = (name: string, kilobytes: number) =>
  staticCluster(
    name,
    upstream.port,
    clusterHttpOptions({
      explicit_http_config: { http_protocol_options: {} },
      common_http_protocol_options: { max_response_headers_kb: kilobytes },
    }),
  );
const proxy = await startProxy(t, {
  listeners: {
    main: managerOf([
      routeTo({ prefix: '/large' }, 'large'),
      routeTo({ prefix: '/small' }, 'small'),
      routeTo({ prefix: '/' }, 'raw'),
    ]),
  },
  clusters: [staticCluster('raw', upstream.port), limited('large', 8192), limited('small', 2)],
});
const ask = async (path: string) =>
  (await rawExchange(proxy.port, `GET ${path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`)).text;

t.test('heads of old hosts are rewritten', async (t) => {
  for (const name of Object.keys(HEADS)) {
    for (const kind of ['whole', 'split']) {
      const text = await ask(`/${kind}/${name.replaceAll(' ', '_')}`);
      const { status, headers, rest } = parseMessage(text);
      t.match({ status, headers }, { status: 200, headers: { 'x-a': 'b' } }, `${name}, ${kind}`);
      t.match(rest, /^(?:ok|2\r\nok\r\n0\r\n\r\n)$/, `${name}, ${kind}`);
      const head = text.slice(0, text.indexOf('\r\n\r\n'));
      t.notMatch(head, /[^\r]\n|\r[^\n]|\n[ \t]|^HTTP\/1.1 {2}|\t/, `${name}, ${kind}: the head is strict`);
    }
  }
});

t.test('other invalid heads are refused', async (t) => {
  for (const name of Object.keys(BAD_HEADS)) {
    for (const kind of ['whole', 'split']) {
      const text = await ask(`/${kind}/${name.replaceAll(' ', '_')}`);
      t.equal(parseMessage(text).status, 502, `${name}, ${kind}`);
    }
  }
});

t.test('a response head may have 80 KiB, or what max_response_headers_kb permits', async (t) => {
  const statuses = [
    ['/usual/70000', 200],
    ['/usual/90000', 502],
    ['/large/90000', 200],
    ['/large/500000', 200],
    ['/small/1500', 200],
    ['/small/3000', 502],
  ] as const;
  for (const [path, status] of statuses) {
    const message = parseMessage(await ask(path));
    t.equal(message.status, status, path);
    if (status === 200) t.equal(message.headers['x-a']?.length, Number(path.split('/')[2]), path);
  }
});
