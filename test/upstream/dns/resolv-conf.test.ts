import t from 'tap';
import { candidateNames, parseResolvConf } from '../../../src/upstream/dns/resolv-conf.js';

t.test('resolv.conf is parsed as in the C library', async (t) => {
  const conf = parseResolvConf(
    `# comment
; comment
nameserver 10.0.0.1
nameserver 2001:db8::1
nameserver not-an-address
nameserver 10.0.0.2:0
nameserver /run/names
nameserver 10.0.0.3:5353
domain first.test
search one.test two.test.
options ndots:20 timeout:0
options attempts:9 rotate
`,
    'ignored.test',
  );
  t.same(conf, {
    servers: ['10.0.0.1', '2001:db8::1', '10.0.0.3:5353'],
    isServerDefault: false,
    search: ['one.test', 'two.test'],
    ndots: 15,
    timeoutMs: 1000,
    attempts: 5,
  });
  t.same(parseResolvConf('', 'corp.test'), {
    servers: ['127.0.0.1'],
    isServerDefault: true,
    search: ['corp.test'],
    ndots: 1,
    timeoutMs: undefined,
    attempts: undefined,
  });
  t.same(parseResolvConf('search a\nsearch .', 'corp.test').search, []);
});

t.test('candidate names are in the order of the C library', async (t) => {
  const conf = { ...parseResolvConf('', ''), search: ['s1', 's2'], ndots: 1 };
  t.same(candidateNames('a', conf), ['a.s1', 'a.s2', 'a']);
  t.same(candidateNames('a.b', conf), ['a.b', 'a.b.s1', 'a.b.s2']);
  t.same(candidateNames('a.', conf), ['a']);
});
