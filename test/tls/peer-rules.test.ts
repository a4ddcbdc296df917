// Rules for the names of certificates, with names that an attacker could get certified.

import t from 'tap';
import type { CertificateEvidence } from '../../src/io/shim.js';
import { NameType } from '../../src/tls/certificate-names.js';
import { CompiledPeerRules, type NameRule } from '../../src/tls/peer-rules.js';

function rulesFor(type: NameType, exact: string): CompiledPeerRules {
  const names: NameRule[] = [{ type, matcher: { exact }, oid: '' }];
  return new CompiledPeerRules({
    names,
    digests: [],
    keyDigests: [],
    hasRoots: true,
    acceptsUntrusted: false,
    hasTrustDomains: false,
  });
}

function factsWith(type: NameType, ...values: (string | number[])[]): CertificateEvidence {
  const names = values.map((value) => ({ type, value: Buffer.from(value as string), oid: '' }));
  return { names } as Partial<CertificateEvidence> as CertificateEvidence;
}

t.test('a DNS name with a NUL matches nothing that precedes the NUL', async (t) => {
  const rules = rulesFor(NameType.Dns, 'good.test');
  t.ok(rules.judge(0, 0, '', factsWith(NameType.Dns, 'good.test')).isAccepted);
  for (const name of [
    'good.test\0.evil.test',
    'good.test\0',
    '\0good.test',
    '*.\0good.test',
    'good.test.',
    '*.test\0',
  ]) {
    t.notOk(rules.judge(0, 0, '', factsWith(NameType.Dns, name)).isAccepted, JSON.stringify(name));
  }
});

t.test('an address that is not as long as an IPv4 or IPv6 address matches no address', async (t) => {
  const rules = rulesFor(NameType.Ip, '::');
  t.ok(rules.judge(0, 0, '', factsWith(NameType.Ip, Array(16).fill(0))).isAccepted);
  for (const length of [0, 1, 3, 5, 15, 17, 32]) {
    t.notOk(rules.judge(0, 0, '', factsWith(NameType.Ip, Array(length).fill(0))).isAccepted, `${length} bytes`);
  }
});

t.test('the reason for a refusal takes one line, whatever the names contain', async (t) => {
  const { detail } = rulesFor(NameType.Dns, 'good.test').judge(
    0,
    0,
    '',
    factsWith(NameType.Dns, 'a\r\nb: c', '\x1b[2J'),
  );
  t.match(detail, 'SAN matcher, certificate SANs are [a');
  t.notMatch(detail, /[\0-\x1f]/);
});

t.test('the reason for a refusal is short, however many and long the names are', async (t) => {
  const rules = rulesFor(NameType.Dns, 'good.test');
  const detailOf = (...names: string[]) => rules.judge(0, 0, '', factsWith(NameType.Dns, ...names)).detail;
  const many = detailOf(...Array.from({ length: 5000 }, (_, i) => `host-${i}.test`));
  t.match(many, /\[host-0\.test, host-1\.test, .* and 49\d\d more\]$/);
  t.ok(many.length < 1200);
  const long = detailOf('a'.repeat(100_000), 'b.test');
  t.match(long, / are \[a{1000} … and 1 more\]$/);
  t.match(detailOf('c.test', 'd.test'), '[c.test, d.test]');
});

t.test('a name alone never vouches for a certificate, a digest does', async (t) => {
  const names: NameRule[] = [{ type: NameType.Dns, matcher: { exact: 'good.test' }, oid: '' }];
  const facts = {
    ...factsWith(NameType.Dns, 'good.test'),
    sha256: Buffer.from('aa', 'hex'),
    publicKeySha256: Buffer.alloc(0),
  };
  const rules = {
    names,
    digests: [],
    keyDigests: [],
    hasRoots: false,
    acceptsUntrusted: false,
    hasTrustDomains: false,
  };
  t.match(new CompiledPeerRules(rules).judge(0, 0, '', facts), { isAccepted: false, refusal: 'fail_verify_san' });
  t.match(new CompiledPeerRules({ ...rules, digests: ['aa'] }).judge(0, 0, '', facts), { isVerified: true });
  t.match(new CompiledPeerRules({ ...rules, digests: ['bb'] }).judge(0, 0, '', facts), { isAccepted: false });
});

t.test(
  "a connection's own name list is required in addition to the context's names, its server name instead of them",
  async (t) => {
    const rules = rulesFor(NameType.Dns, 'good.test');
    const facts = factsWith(NameType.Dns, 'good.test', '*.wild.test');
    for (const [listed, serverName, isAccepted] of [
      ['good.test', '', true],
      ['a.wild.test', '', true],
      ['a.b.wild.test', '', false],
      ['bad.test', '', false],
      ['', '', false],
      [undefined, 'a.wild.test', true],
      [undefined, 'bad.test', false],
      ['bad.test', 'good.test', false],
    ] as const) {
      t.equal(rules.judge(0, 0, '', facts, { listed, serverName }).isAccepted, isAccepted, `${listed} ${serverName}`);
    }
    const other = factsWith(NameType.Dns, 'other.test');
    t.notOk(rules.judge(0, 0, '', other, { listed: 'other.test', serverName: '' }).isAccepted);
    t.ok(rules.judge(0, 0, '', other, { listed: undefined, serverName: 'other.test' }).isAccepted);
    const address = factsWith(NameType.Ip, [127, 0, 0, 1]);
    t.match(rules.judge(0, 0, '', address, { listed: '127.0.0.2', serverName: '' }), {
      refusal: 'fail_verify_san',
      detail: 'verify cert failed: verify SAN list, expected SANs: [127.0.0.2], certificate SANs: [127.0.0.1]',
    });
  },
);
