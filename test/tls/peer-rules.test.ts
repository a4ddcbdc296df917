// Rules for the names of certificates, with names that an attacker could get certified.

import t from 'tap';
import type { CertificateEvidence } from '../../src/io/shim.js';
import { NameType } from '../../src/tls/certificate-names.js';
import { CompiledPeerRules, type NameRule } from '../../src/tls/peer-rules.js';

function rulesFor(type: NameType, exact: string): CompiledPeerRules {
  const names: NameRule[] = [{ type, matcher: { exact }, oid: '' }];
  return new CompiledPeerRules({ names, digests: [], keyDigests: [], hasRoots: true, acceptsUntrusted: false });
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

t.test('an address of another length than that of IPv4 or IPv6 matches no address', async (t) => {
  const rules = rulesFor(NameType.Ip, '::');
  t.ok(rules.judge(0, 0, '', factsWith(NameType.Ip, Array(16).fill(0))).isAccepted);
  for (const length of [0, 1, 3, 5, 15, 17, 32]) {
    t.notOk(rules.judge(0, 0, '', factsWith(NameType.Ip, Array(length).fill(0))).isAccepted, `${length} bytes`);
  }
});

t.test('the reason of a refusal takes one line, whatever the names contain', async (t) => {
  const { detail } = rulesFor(NameType.Dns, 'good.test').judge(
    0,
    0,
    '',
    factsWith(NameType.Dns, 'a\r\nb: c', '\x1b[2J'),
  );
  t.match(detail, 'SAN matcher, certificate SANs are [a');
  t.notMatch(detail, /[\0-\x1f]/);
});

t.test('a name alone never vouches for a certificate, a digest does', async (t) => {
  const names: NameRule[] = [{ type: NameType.Dns, matcher: { exact: 'good.test' }, oid: '' }];
  const facts = {
    ...factsWith(NameType.Dns, 'good.test'),
    sha256: Buffer.from('aa', 'hex'),
    publicKeySha256: Buffer.alloc(0),
  };
  const rules = { names, digests: [], keyDigests: [], hasRoots: false, acceptsUntrusted: false };
  t.match(new CompiledPeerRules(rules).judge(0, 0, '', facts), { isAccepted: false, refusal: 'fail_verify_san' });
  t.match(new CompiledPeerRules({ ...rules, digests: ['aa'] }).judge(0, 0, '', facts), { isVerified: true });
  t.match(new CompiledPeerRules({ ...rules, digests: ['bb'] }).judge(0, 0, '', facts), { isAccepted: false });
});
