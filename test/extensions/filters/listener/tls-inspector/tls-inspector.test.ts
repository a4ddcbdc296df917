// envoy.filters.listener.tls_inspector: what it detects in real and hostile first bytes. Expected values are those of Envoy 1.40.

import t from 'tap';
import type { TlsInspector } from '../../../../../src/config/generated/api.js';
import { tlsInspector } from '../../../../../src/extensions/filters/listener/tls-inspector/index.js';
import { Verdict } from '../../../../../src/listener/listener-filter.js';
import { alpn, clientHello, helloMessage, integers, records, serverName, vector } from './hello-bytes.js';
import { inspect } from './inspect.js';

const look = (bytes: Uint8Array, config: TlsInspector = {}) =>
  inspect((context) => tlsInspector.createOnWorker(config, context), bytes);
const NOT_FOUND = { result: 0, detected: undefined };

t.test('a real hello: server name and protocols', async (t) => {
  const bytes = await clientHello({ servername: 'A.Example.com', ALPNProtocols: ['h2', 'http/1.1'] });
  const { result, detected, stats } = look(bytes);
  t.equal(result, 0, 'nothing is consumed');
  t.match(detected, {
    transportProtocol: 'tls',
    applicationProtocols: ['h2', 'http/1.1'],
    serverName: 'a.example.com',
    ja3: '',
    ja4: '',
  });
  t.same(stats, { tls_found: 1, sni_found: 1, alpn_found: 1, bytes_processed: bytes.length });
  const plain = look(await clientHello());
  t.match(plain.detected, { transportProtocol: 'tls', applicationProtocols: [], serverName: '' });
  t.match(plain.stats, { tls_found: 1, sni_not_found: 1, alpn_not_found: 1 });
});

t.test('a hello in any number of segments and records is detected when its last byte has come', async (t) => {
  const message = helloMessage({ extensions: [serverName('a.example.com'), alpn('h2'), [21, Buffer.alloc(2000)]] });
  for (const size of [1, 3, 4, 5, 100, 16384]) {
    const bytes = records(message, size);
    for (const end of [1, 4, 5, 6, bytes.length >> 1, bytes.length - 1]) {
      const { result, detected, stats } = look(bytes.subarray(0, end));
      t.same({ result, detected, stats }, { result: Verdict.NeedsMore, detected: undefined, stats: {} });
    }
    t.match(look(bytes), { result: 0, detected: { serverName: 'a.example.com', applicationProtocols: ['h2'] } });
    t.match(look(Buffer.concat([bytes, Buffer.alloc(20_000)])), {
      result: 0,
      detected: { serverName: 'a.example.com' },
    });
  }
});

t.test('other protocols are no TLS, as soon as that is certain', async (t) => {
  for (const text of ['GET / HTTP/1.1\r\n\r\n', 'SSH-2.0-x\r\n', '\0\0\0\0\0']) {
    t.match(
      look(Buffer.from(text)),
      { ...NOT_FOUND, stats: { tls_not_found: 1, bytes_processed: 5 } },
      JSON.stringify(text),
    );
  }
  t.equal(look(Buffer.from('GET ')).result, Verdict.NeedsMore, 'Envoy decides at the fifth byte');
  const cases: Record<string, Buffer> = {
    'application data': records(Buffer.from('x'), 1, 23),
    'a change of ciphers': records(Buffer.of(1), 1, 20),
    'another message': records(Buffer.concat([Buffer.of(2), helloMessage().subarray(1)])),
    'a message that is too long': records(Buffer.from([1, 0, 0x40, 1])),
    'a record that is too long': Buffer.of(22, 3, 1, 0x41, 0x41),
    'data after the message': records(Buffer.concat([helloMessage(), Buffer.of(1)])),
    'data after the message, in two records': records(Buffer.concat([helloMessage(), Buffer.of(1)]), 40),
    'many empty records': Buffer.concat([
      ...Array<Buffer>(33).fill(Buffer.of(22, 3, 1, 0, 0)),
      records(helloMessage()),
    ]),
    'a fatal alert': Buffer.concat([records(Buffer.of(2, 40), 2, 21), records(helloMessage())]),
    'half an alert': Buffer.concat([records(Buffer.of(1), 1, 21), records(helloMessage())]),
    'five warnings': Buffer.concat([
      ...Array<Buffer>(5).fill(records(Buffer.of(1, 90), 2, 21)),
      records(helloMessage()),
    ]),
  };
  for (const [what, bytes] of Object.entries(cases))
    t.match(look(bytes), { ...NOT_FOUND, stats: { tls_not_found: 1 } }, what);
  const warned = Buffer.concat([
    ...Array<Buffer>(4).fill(records(Buffer.of(1, 90), 2, 21)),
    ...Array<Buffer>(32).fill(Buffer.of(22, 3, 1, 0, 0)),
    records(helloMessage()),
  ]);
  t.match(look(warned).detected, { transportProtocol: 'tls' });
});

t.test('a client that closes at once is closed', async (t) => {
  const { result, stats } = look(records(Buffer.of(1, 0), 2, 21));
  t.equal(result, Verdict.Refuses);
  t.same(stats, { bytes_processed: 7 });
});

t.test('a malformed hello is no TLS', async (t) => {
  const whole = helloMessage({ extensions: [serverName('a.org')] });
  const body = whole.subarray(4);
  const withBody = (changed: Buffer) => records(Buffer.concat([Buffer.of(1), vector(3, changed)]));
  const named = (content: Buffer) => records(helloMessage({ extensions: [[0, content]] }));
  const cases: Record<string, Buffer> = {
    'an empty one': withBody(Buffer.alloc(0)),
    'one that ends early': withBody(body.subarray(0, -1)),
    'a byte after the extensions': withBody(Buffer.concat([body, Buffer.of(0)])),
    'a long session ID': records(helloMessage({ sessionId: Buffer.alloc(33) })),
    'no cipher suite': records(helloMessage({ ciphers: [] })),
    'no compression method': records(helloMessage({ compression: Buffer.alloc(0) })),
    'an extension twice': records(helloMessage({ extensions: [serverName('a.org'), alpn('h2'), serverName('b.org')] })),
    'an empty server name': named(vector(2, Buffer.of(0), vector(2))),
    'no server name in the list': named(vector(2)),
    'two server names': named(
      vector(2, ...Array<Buffer>(2).fill(Buffer.concat([Buffer.of(0), vector(2, Buffer.from('a'))]))),
    ),
    'a server name of another type': named(vector(2, Buffer.of(1), vector(2, Buffer.from('a')))),
    'a server name with a zero byte': named(vector(2, Buffer.of(0), vector(2, Buffer.from('a\0b')))),
    'a long server name': named(vector(2, Buffer.of(0), vector(2, Buffer.alloc(256, 'a')))),
    'a server name after the list': named(
      Buffer.concat([vector(2, Buffer.of(0), vector(2, Buffer.from('a'))), Buffer.of(0)]),
    ),
    'an empty encrypted hello': records(helloMessage({ extensions: [[0xfe0d, Buffer.alloc(0)]] })),
    'half an encrypted hello': records(helloMessage({ extensions: [[0xfe0d, Buffer.alloc(6)]] })),
  };
  for (const [what, bytes] of Object.entries(cases))
    t.match(look(bytes), { ...NOT_FOUND, stats: { tls_not_found: 1 } }, what);
  t.match(look(named(vector(2, Buffer.of(0), vector(2, Buffer.alloc(255, 'a'))))).detected, {
    serverName: 'a'.repeat(255),
  });
  t.match(
    look(records(helloMessage({ extensions: undefined }))).detected,
    { transportProtocol: 'tls' },
    'no extensions',
  );
});

t.test('a malformed list of protocols counts as an empty one', async (t) => {
  for (const content of [
    vector(2),
    vector(2, vector(1)),
    vector(2, Buffer.from('\x03h2')),
    Buffer.of(0),
    Buffer.alloc(0),
  ]) {
    const { detected, stats } = look(records(helloMessage({ extensions: [[16, content]] })));
    t.match(detected, { transportProtocol: 'tls', applicationProtocols: [] });
    t.match(stats, { tls_found: 1, alpn_not_found: 1 });
  }
});

t.test('versions before TLS 1.0 and after TLS 1.3 are refused', async (t) => {
  for (const version of [0x0200, 0x0300, 0x0305, 0xfefd]) {
    const { result, stats } = look(records(helloMessage({ version, extensions: [serverName('a.org')] })));
    t.equal(result, Verdict.Refuses);
    t.match(stats, { sni_found: 1, tls_not_found: 1 });
    t.notOk(stats['tls_found']);
  }
  for (const version of [0x0301, 0x0302, 0x0303, 0x0304]) t.equal(look(records(helloMessage({ version }))).result, 0);
});

t.test('a hello above max_client_hello_size is refused', async (t) => {
  const bytes = records(helloMessage({ extensions: [serverName('a.org'), [21, Buffer.alloc(500)]] }));
  const small = { max_client_hello_size: 300 };
  t.equal(look(bytes.subarray(0, 299), small).result, Verdict.NeedsMore);
  t.match(look(bytes.subarray(0, 300), small), {
    result: Verdict.Refuses,
    stats: { client_hello_too_large: 1, bytes_processed: 300 },
  });
  t.equal(look(bytes, { max_client_hello_size: bytes.length }).result, 0);
  const long = records(helloMessage({ extensions: [[21, Buffer.alloc(16_380)]] }));
  t.match(look(long), { result: Verdict.Refuses, stats: { client_hello_too_large: 1 } }, 'the default');
});

t.test('close_connection_on_client_hello_parsing_errors refuses what is no TLS', async (t) => {
  const strict = { close_connection_on_client_hello_parsing_errors: true, max_client_hello_size: 300 };
  t.match(look(Buffer.from('GET / HTTP/1.1\r\n'), strict), {
    result: Verdict.Refuses,
    stats: { tls_not_found: 1, bytes_processed: 5 },
  });
  t.match(look(Buffer.alloc(300, 'GET /'), strict), { result: Verdict.Refuses, stats: { client_hello_too_large: 1 } });
  t.equal(look(await clientHello(), { ...strict, max_client_hello_size: 16384 }).result, 0);
});

t.test('JA3 and JA4 of a hello are those of Envoy', async (t) => {
  const both = { enable_ja3_fingerprinting: true, enable_ja4_fingerprinting: true };
  const fingerprints = (...fields: Parameters<typeof helloMessage>) => {
    const { detected } = look(records(helloMessage(...fields)), both);
    return [detected?.ja3, detected?.ja4];
  };
  t.same(fingerprints(FULL), ['89f44a5d9c9ab56980f70a44e15f3b45', 't13d0407h1_52f89ac5ce33_1fdf4de06b7e']);
  t.same(fingerprints({ version: 0x0301, ciphers: [0x0a0a], extensions: undefined }), [
    'f5d1076d0d11b5cd81c4c4e8e8ee881a',
    't10i000000_000000000000_000000000000',
  ]);
  t.same(fingerprints({ extensions: [alpn('\x01\xfe')] }), [
    '79bec9f8e9d974a2ec7ceb481134f481',
    't12i01010e_0f2cb44170f4_000000000000',
  ]);
  t.match(look(records(helloMessage(FULL)), { enable_ja4_fingerprinting: true }).detected, { ja3: '', ja4: /^t13d/ });
});

/** With reserved values (GREASE) in every list. */
const FULL = {
  ciphers: [0x2a2a, 0x1301, 0x1302, 0xc02b, 0x002f],
  extensions: [
    [0x0a0a, Buffer.alloc(0)],
    serverName('a.example.com'),
    [10, vector(2, integers(0x3a3a, 29, 23))],
    [11, Buffer.of(2, 0, 1)],
    [13, vector(2, integers(0x0403, 0x0804, 0x0401))],
    alpn('http/1.1', 'h2'),
    [43, vector(1, integers(0x4a4a, 0x0304, 0x0303))],
    [23, Buffer.alloc(0)],
  ] as const,
};
