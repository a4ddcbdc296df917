// Requests with equal hash policy inputs have the same hash as in Envoy.

import t from 'tap';
import { StreamInfo } from '../../../../src/access-log/stream/stream-info.js';
import type { BatonError } from '../../../../src/common/errors/errors.js';
import { Word64, xxh64Text } from '../../../../src/common/xxh64.js';
import type { RouteAction_HashPolicy } from '../../../../src/config/generated/api.js';
import { HashPolicy } from '../../../../src/http/routing/hashing/hash-policy.js';
import { requestHead } from '../heads.js';

const info = new StreamInfo();
info.inferredRemoteAddress = '10.1.2.3:4711';
info.downstream = {
  remoteText: '10.9.9.9:1000',
  directRemoteText: '10.9.9.9:1000',
  localText: '10.0.0.1:80',
  directLocalText: '10.0.0.1:80',
  security: undefined,
  transportFailure: '',
  detected: undefined,
};

/** Returns the hash of a request, undefined without one, and the cookies set for its client. */
function evaluate(configs: RouteAction_HashPolicy[], start = 'GET / HTTP/1.1', ...lines: string[]) {
  const hash = new Word64();
  const cookies: string[] = [];
  const policy = HashPolicy.of(configs, 'here')!;
  const hasHash = policy.evaluate(requestHead(start, ...lines), info, hash, cookies);
  return { hash: hasHash ? numberOf(hash) : undefined, cookies };
}

function hashOf(configs: RouteAction_HashPolicy[], start?: string, ...lines: string[]): bigint | undefined {
  return evaluate(configs, start, ...lines).hash;
}

/** Returns the hash of several texts in order. */
function xxh(...texts: string[]): bigint {
  const hash = new Word64();
  for (const text of texts) xxh64Text(text, hash, hash.lo, hash.hi);
  return numberOf(hash);
}

function numberOf({ hi, lo }: Word64): bigint {
  return (BigInt(hi >>> 0) << 32n) | BigInt(lo >>> 0);
}

const X_USER: RouteAction_HashPolicy = { header: { header_name: 'X-User' } };

t.test('a header is hashed by its value, or by all its values in any order', async (t) => {
  t.equal(hashOf([X_USER], 'GET / HTTP/1.1', 'x-user: joe'), xxh('joe'));
  t.equal(hashOf([X_USER], 'GET / HTTP/1.1', 'x-user:'), xxh(''), 'an empty value counts');
  t.equal(hashOf([X_USER], 'GET / HTTP/1.1', 'x-other: joe'), undefined);
  t.equal(hashOf([X_USER], 'GET / HTTP/1.1', 'x-user: foo', 'X-USER: bar'), xxh('bar', 'foo'));
  t.equal(hashOf([X_USER], 'GET / HTTP/1.1', 'x-user: bar', 'x-user: foo'), xxh('bar', 'foo'));
  t.equal(hashOf([X_USER], 'GET / HTTP/1.1', 'x-user:', 'x-user: foo'), xxh('', 'foo'));
  const agent = [{ header: { header_name: 'user-agent' } }];
  t.equal(hashOf(agent, 'GET / HTTP/1.1', 'user-agent: foo', 'user-agent:', 'user-agent: bar'), xxh('foo,bar'));
  t.equal(hashOf([{ header: { header_name: ':path' } }], 'GET /a?b HTTP/1.1'), xxh('/a?b'));
  t.equal(hashOf([{ header: { header_name: ':method' } }]), xxh('GET'));
  t.equal(hashOf([{ header: { header_name: ':authority' } }], 'GET / HTTP/1.1', 'host: h'), xxh('h'));
});

t.test('regex_rewrite extracts the hashed part of a header', async (t) => {
  const tenant: RouteAction_HashPolicy = {
    header: { header_name: ':path', regex_rewrite: { pattern: { regex: '^/(\\w+)/.*$' }, substitution: '\\1' } },
  };
  t.equal(hashOf([tenant], 'GET /shop/a HTTP/1.1'), xxh('shop'));
  t.equal(hashOf([tenant], 'GET /shop/b HTTP/1.1'), xxh('shop'));
  t.equal(hashOf([tenant], 'GET /shop HTTP/1.1'), xxh('/shop'), 'without a match the value is unchanged');
});

t.test('an existing cookie is hashed', async (t) => {
  const cookie: RouteAction_HashPolicy[] = [{ cookie: { name: 'id', ttl: '60s' } }];
  const values: [line: string, value: string][] = [
    ['cookie: id=abc', 'abc'],
    ['cookie: a=1; id=abc; b=2', 'abc'],
    ['cookie: xid=no;id=abc;id=second', 'abc'],
    ['cookie: id="abc"', 'abc'],
    ['cookie: idx=no; junk; id=a=b', 'a=b'],
    ['cookie: =; ;; id=abc ;', 'abc '],
    ['cookie: id="', '"'],
  ];
  for (const [line, value] of values) {
    t.same(evaluate(cookie, 'GET / HTTP/1.1', line), { hash: xxh(value), cookies: [] }, line);
  }
  t.equal(hashOf(cookie, 'GET / HTTP/1.1', 'cookie: a=1', 'cookie: id=abc'), xxh('abc'), 'in a second field');
});

t.test('a missing cookie is generated when it has a ttl', async (t) => {
  const made = xxh('10.9.9.9:100010.0.0.1:80').toString(16).padStart(16, '0');
  for (const line of [
    'a: b',
    'cookie: ids=1; aid=2',
    'cookie: id=',
    'cookie: id=""',
    'cookie: id',
    'cookie: id ="x"',
  ]) {
    const { cookies, hash } = evaluate([{ cookie: { name: 'id', ttl: '90.7s' } }], 'GET / HTTP/1.1', line);
    t.same(cookies, [`id="${made}"; Max-Age=90; HttpOnly`], line);
    t.equal(hash, xxh(made), 'hashed like an existing one');
  }
  t.same(evaluate([{ cookie: { name: 'id' } }]), { hash: undefined, cookies: [] }, 'not without a ttl');
  const attributes = [{ name: 'SameSite', value: 'Strict' }, { name: 'Secure' }];
  const { cookies } = evaluate([{ cookie: { name: 'id', ttl: '0s', path: '/für', attributes } }]);
  t.same(cookies, [`id="${made}"; Path=/fÃ¼r; SameSite=Strict; Secure; HttpOnly`], '0s: until the client ends');
});

t.test('the client address is hashed without its port', async (t) => {
  const source: RouteAction_HashPolicy[] = [{ connection_properties: { source_ip: true } }];
  t.equal(hashOf(source), xxh('10.1.2.3'));
  const former = info.inferredRemoteAddress;
  info.inferredRemoteAddress = '[::1]:80';
  t.equal(hashOf(source), xxh('::1'));
  info.inferredRemoteAddress = '/run/client.sock';
  t.equal(hashOf(source), undefined, 'a Unix socket has no address');
  info.inferredRemoteAddress = former;
  t.equal(HashPolicy.of([{ connection_properties: {} }], ''), undefined);
});

t.test('a query parameter is hashed by its first value', async (t) => {
  const parameter: RouteAction_HashPolicy[] = [{ query_parameter: { name: 'k' } }];
  t.equal(hashOf(parameter, 'GET /?a=1&k=v%20&k=w HTTP/1.1'), xxh('v%20'));
  t.equal(hashOf(parameter, 'GET /?k HTTP/1.1'), xxh(''));
  t.equal(hashOf(parameter, 'GET /?kk=v HTTP/1.1'), undefined);
});

t.test('several policies are combined as in Envoy, and without inputs there is no hash', async (t) => {
  const rotate = (value: bigint) => ((value << 1n) | (value >> 63n)) & (2n ** 64n - 1n);
  const both: RouteAction_HashPolicy[] = [X_USER, { query_parameter: { name: 'k' } }];
  const combined = rotate(xxh('joe')) ^ xxh('v');
  t.equal(hashOf(both, 'GET /?k=v HTTP/1.1', 'x-user: joe'), combined);
  t.equal(hashOf(both, 'GET /?k=v HTTP/1.1'), xxh('v'));
  t.equal(hashOf(both), undefined);
  const [first, second] = both;
  const terminal = [{ ...first, terminal: true }, second!];
  t.equal(hashOf(terminal, 'GET /?k=v HTTP/1.1', 'x-user: joe'), xxh('joe'), 'a terminal one ends the evaluation');
  t.equal(hashOf(terminal, 'GET /?k=v HTTP/1.1'), xxh('v'), 'but not without an input');
});

t.test('header and cookie names that can never occur are refused with their position', async (t) => {
  const cases: [RouteAction_HashPolicy, string][] = [
    [{}, 'here[0]'],
    [{ header: { header_name: ':scheme' } }, 'here[0].header.header_name'],
    [{ header: { header_name: 'a b' } }, 'here[0].header.header_name'],
    [
      { header: { header_name: 'a', regex_rewrite: { pattern: { regex: '(' } } } },
      'here[0].header.regex_rewrite.pattern.regex',
    ],
    [{ cookie: { name: 'a;b' } }, 'here[0].cookie.name'],
    [{ cookie: { name: 'a', ttl: '-1s' } }, 'here[0].cookie.ttl'],
    [{ cookie: { name: 'a', ttl: '1s', path: '/; Secure' } }, 'here[0].cookie.path'],
    [
      { cookie: { name: 'a', ttl: '1s', attributes: [{ name: 'a', value: 'b\r\n' }] } },
      'here[0].cookie.attributes[0].value',
    ],
  ];
  for (const [config, where] of cases) {
    try {
      HashPolicy.of([config], 'here');
      t.fail(where);
    } catch (error) {
      t.equal((error as BatonError).where, where);
    }
  }
});
