// envoy.filters.listener.http_inspector: which version of HTTP it detects. The expected results are those of Envoy 1.40.

import t from 'tap';
import { httpInspector } from '../../../../../src/extensions/filters/listener/http-inspector/index.js';
import { Verdict } from '../../../../../src/listener/listener-filter.js';
import { inspect } from '../tls-inspector/inspect.js';

const look = (text: string) =>
  inspect((context) => httpInspector.createOnWorker({}, context), Buffer.from(text, 'latin1'));
const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';

t.test('the version is that of the request line, or of the preface', async (t) => {
  const cases: Record<string, readonly string[]> = {
    'http/1.1': [
      'GET / HTTP/1.1\r\n\r\n',
      'GET / HTTP/1.1\n',
      'GET  /  HTTP/1.1 \r\n',
      'get / HTTP/1.1\r\nbad header\r\n',
      'FOO /\x0b HTTP/1.1\r\n',
      '123 * HTTP/1.1\r\n',
      'CONNECT a:80 HTTP/1.1\r\n',
      'CONNECT a HTTP/1.1\r\n',
      'GET http://!$%&\'()*+,-.:;=@[]_~/<" HTTP/1.1\r\n',
      'GET h-t+p.1://a?b HTTP/1.1\r\n',
      'PRI / HTTP/1.1\r\n',
    ],
    'http/1.0': [
      'GET / HTTP/1.0\r\n',
      'GET / HTTP/1.2\r\n',
      'GET / HTTP/9.9\r\n',
      'GET /\r\n',
      'GET / \n',
      'PRI * HTTP/2.0\r\n\r\nXX',
    ],
    h2c: [PREFACE, `${PREFACE}more`],
  };
  for (const [version, texts] of Object.entries(cases)) {
    const stat = { 'http/1.1': 'http11_found', 'http/1.0': 'http10_found', h2c: 'http2_found' }[version]!;
    for (const text of texts) {
      const { result, detected, stats } = look(text);
      t.same([result, detected?.applicationProtocols, stats], [0, [version], { [stat]: 1 }], JSON.stringify(text));
    }
  }
});

t.test('a line with tens of thousands of spaces blocks nothing', async (t) => {
  const begun = process.cpuUsage();
  const spaces = ' '.repeat(60_000);
  for (const text of [`GET / x${spaces}x\n`, `GET /${spaces}x x\n`, `GET${spaces}x\n`, `CONNECT${spaces}\n`]) {
    t.match(look(text), { result: 0, stats: { http_not_found: 1 } });
  }
  t.match(look(`GET${spaces}/ HTTP/1.1\n`), { result: 0, stats: { http11_found: 1 } });
  t.ok(process.cpuUsage(begun).user < 2_000_000);
});

t.test('other bytes are not HTTP', async (t) => {
  const texts = [
    '\r\nGET / HTTP/1.1\r\n',
    ' GET / HTTP/1.1\r\n',
    '\x16\x03\x01',
    '\x80',
    '(',
    'hello\n',
    'GET\n',
    'GET \n',
    'GET / http/1.1\r\n',
    'GET / HTTP/11\r\n',
    'GET / HTTP/1.10\r\n',
    'GET / HTTP/\r\n',
    'GET /a b HTTP/1.1\r\n',
    'G:T / HTTP/1.1\r\n',
    'GET /\x80 HTTP/1.1\r\n',
    'GET /\x7f HTTP/1.1\r\n',
    'GET a HTTP/1.1\r\n',
    'GET http:/a HTTP/1.1\r\n',
    'GET 1http://a HTTP/1.1\r\n',
    'GET http://a@@b HTTP/1.1\r\n',
    'GET http://a{ HTTP/1.1\r\n',
    'GET http://a?\x80 HTTP/1.1\r\n',
  ];
  for (const text of texts) {
    const { result, detected, stats } = look(text);
    t.same([result, detected, stats], [0, undefined, { http_not_found: 1 }], JSON.stringify(text));
  }
});

t.test('more bytes are needed up to the end of the line, at most 64 KiB', async (t) => {
  for (const text of ['P', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r', 'h', 'GET / HTTP/1.1\r', `GET /${'a'.repeat(65_530)}`])
    t.same(look(text), { result: Verdict.NeedsMore, detected: undefined, stats: {} });
  t.match(look(`GET /${'a'.repeat(65_531)}`), { result: Verdict.Refuses, stats: { read_error: 1 } });
  t.match(look(`GET /${'a'.repeat(65_531)} HTTP/1.1\r\n`), { result: Verdict.Refuses, stats: { read_error: 1 } });
  t.match(look(`GET /${'a'.repeat(65_500)} HTTP/1.1\r\n`), { result: 0, stats: { http11_found: 1 } });
});

t.test('a connection that the TLS inspector has found is not inspected', async (t) => {
  const tls = { transportProtocol: 'tls', applicationProtocols: ['h2'], serverName: '', ja3: '', ja4: '' };
  const bytes = Buffer.from('GET / HTTP/1.1\r\n');
  const { result, detected, stats } = inspect((context) => httpInspector.createOnWorker({}, context), bytes, tls);
  t.same([result, detected, stats], [0, tls, {}]);
});
