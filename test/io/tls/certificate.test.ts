// The contents of certificates as text. The expected texts are those of Envoy 1.40.

import { X509Certificate } from 'node:crypto';
import t from 'tap';
import { Random } from '../../../src/common/random.js';
import { Certificate } from '../../../src/io/tls/certificate.js';
import { client, issuer, minimal, server } from './certificates.js';

t.test('names, serial number, digests and validity', async (t) => {
  const facts = new Certificate(client);
  t.equal(
    facts.subject,
    'emailAddress=j@x.org,CN=J\\C3\\BCrgen \\"q\\"\\, x\\;y\\\\,OU=\\ #sp\\ ,O=Zwei,O=Acme+OU=dev,ST=Ca/l,C=US',
  );
  t.equal(facts.issuer, 'CN=Inter \\"x\\",O=Sue\\, Grabbit,C=GB');
  t.same(facts.subjectName, { commonName: 'Jürgen "q", x;y\\', organizationNames: ['Acme', 'Zwei'] });
  t.equal(facts.serial, 'abcdef0123');
  t.equal(facts.sha256, '0b0d0f29a71cd7df105d88dc5e73a7f2351e08ecc458d99d325d519cc23eb554');
  t.equal(facts.sha1, 'bc57b8ae14a43de2b3a10a0160c34c343f58d43b');
  t.same(facts.uriSans, ['spiffe://x/y;z', 'http://u2/a%20b']);
  t.same(facts.dnsSans, ['a.example.com', '*.b.example.com']);
  t.same(facts.ipSans, ['10.1.2.3', 'fd00::1:2']);
  t.same(facts.emailSans, ['a@b.org']);
  t.same(facts.otherNameSans, ['upn@x', '-255']);
  t.same(facts.extensionOids, ['2.5.29.17', '2.5.29.15', '2.5.29.37', '2.5.29.14', '2.5.29.35']);
  t.equal(facts.validFromMs, Date.UTC(2026, 10, 29, 23, 33, 27));
  t.equal(facts.validUntilMs, Date.UTC(2026, 11, 9, 23, 33, 27));
  t.same(
    [issuer, server, minimal].map((der) => new Certificate(der).serial),
    ['ff01', '07', '0'],
  );
  t.equal(new Certificate(minimal).subject, 'O=OnlyOrg');
  t.same(new Certificate(minimal).uriSans, []);
});

t.test('PEM, plain and with the escapes of a URL', async (t) => {
  const facts = new Certificate(client);
  t.equal(facts.pem, new X509Certificate(client).toString());
  t.match(
    facts.urlEncodedPem,
    /^-----BEGIN%20CERTIFICATE-----%0AMIICsTCCAlegAwIBAgIGAKvN7wEj[^\n +/=]*%0A-----END%20CERTIFICATE-----%0A$/,
  );
  t.equal(decodeURIComponent(facts.urlEncodedPem), facts.pem);
});

t.test('control characters of names are escaped', async (t) => {
  const changed = Buffer.from(client);
  const at = changed.indexOf('a.example.com');
  changed.write('a\r\n\0\x7f\xc2\x9b', at, 'latin1');
  t.same(new Certificate(changed).dnsSans[0], 'a\\0d\\0a\\00\\7f\\9ble.com');
});

t.test('damaged certificates have other or no contents, and are read in bounded time', async (t) => {
  const random = new Random(7);
  const keys = ['subject', 'issuer', 'serial', 'uriSans', 'ipSans', 'otherNameSans', 'extensionOids'] as const;
  for (let round = 0; round < 3000; round++) {
    const bytes = Buffer.from([client, server, minimal][round % 3]!);
    for (let left = 1 + random.below(3); left > 0; left--) bytes[random.below(bytes.length)] = random.below(256);
    const facts = new Certificate(bytes.subarray(0, random.below(4) === 0 ? random.below(bytes.length) : bytes.length));
    if (keys.some((key) => /\\u00[01]/.test(JSON.stringify(facts[key])))) t.fail(bytes.toString('hex'));
    if (typeof facts.subjectName.commonName !== 'string') t.fail('a name is not text');
    if (!(facts.validFromMs >= -1e14 && facts.validUntilMs <= 1e15)) t.fail('a time is invalid');
  }
  t.pass('none was thrown');
});
