// Certificates and keys are read and compared when a configuration is checked, in any part of it.

import { readFileSync } from 'node:fs';
import t from 'tap';
import { packagePath } from '../../src/common/package/package-root.js';
import { problemsOf } from './load-text.js';

const FILES = packagePath('test/config/certificates');
const TLS = 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3';

/** Returns the errors about one tls_certificates entry of a listener, one per line, without those about TLS itself. */
function mistakesOf(certificate: object): string[] {
  const common = { tls_certificates: [certificate] };
  const socket = { name: 'tls', typed_config: { '@type': `${TLS}.DownstreamTlsContext`, common_tls_context: common } };
  return linesOf({ static_resources: { listeners: [{ filter_chains: [{ transport_socket: socket }] }] } });
}

function linesOf(config: object): string[] {
  const lines = problemsOf(JSON.stringify(config, undefined, 1), { file: 'a.json' }).split('\n');
  return lines
    .filter((line) => line.includes('tls_certificates') || line.includes('secrets[0]'))
    .map((line) => line.replace(/^a\.json:\d+:\d+: .*?(?:tls_certificates|secrets)\[0\]\.?/, ''));
}

const file = (name: string) => ({ filename: `${FILES}/${name}` });
const chain = file('server.crt');

t.test('a certificate with its key is accepted, from files, inline or as PKCS #12', async (t) => {
  t.same(mistakesOf({ certificate_chain: chain, private_key: file('server.key') }), []);
  t.same(
    mistakesOf({ certificate_chain: chain, private_key: file('locked.key'), password: { inline_string: 'open' } }),
    [],
  );
  const text = (name: string) => readFileSync(`${FILES}/${name}`);
  const inline = {
    certificate_chain: { inline_string: text('server.crt').toString() },
    private_key: { inline_bytes: text('server.key').toString('base64') },
  };
  t.same(mistakesOf(inline), []);
  t.same(mistakesOf({ pkcs12: file('server.p12'), password: { inline_string: 'open' } }), []);
});

t.test('unreadable and mismatched certificates are reported with their places', async (t) => {
  const key = file('server.key');
  const cases: readonly (readonly [object, RegExp])[] = [
    [
      { certificate_chain: file('none'), private_key: key },
      /^certificate_chain\.filename: unable to read file: ENOENT/,
    ],
    [{ certificate_chain: key, private_key: key }, /^certificate_chain: no certificate in PEM/],
    [
      {
        certificate_chain: { inline_string: '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----' },
        private_key: key,
      },
      /^certificate_chain: certificate 1 of 1 is not valid/,
    ],
    [{ certificate_chain: chain, private_key: chain }, /^private_key: the key is not valid/],
    [{ certificate_chain: chain, private_key: { inline_string: 'x' } }, /^private_key: no key in PEM/],
    [
      { certificate_chain: chain, private_key: file('other.key') },
      /^private_key: the key does not belong to the first/,
    ],
    [{ certificate_chain: chain, private_key: file('locked.key') }, /^private_key: the key is encrypted, and password/],
    [{ certificate_chain: chain, private_key: { environment_variable: 'NOT_SET_1' } }, /NOT_SET_1 is not set$/],
    [{ certificate_chain: chain }, /a certificate needs certificate_chain and private_key, or pkcs12$/],
    [
      { pkcs12: file('server.p12'), password: { inline_string: 'shut' } },
      /^pkcs12: not a valid PKCS #12 file: mac verify/,
    ],
  ];
  for (const [certificate, expected] of cases) {
    const mistakes = mistakesOf(certificate);
    t.equal(mistakes.length, 1, mistakes.join('\n'));
    t.match(mistakes[0], expected);
  }
});

t.test('other kinds of secrets are checked too', async (t) => {
  const secret = (fields: object) => linesOf({ static_resources: { secrets: [{ name: 's', ...fields }] } });
  t.same(secret({ validation_context: { trusted_ca: chain } }), []);
  t.match(secret({ validation_context: { trusted_ca: file('server.key') } }), [/trusted_ca: no certificate in PEM/]);
  t.match(secret({ validation_context: { crl: chain } }), [/crl: not a valid revocation list/]);
  t.match(secret({ session_ticket_keys: { keys: [{ inline_string: 'x' }] } }), [/keys\[0\]: .* has 80 bytes, found 1/]);
  t.match(secret({ generic_secret: { secret: file('none') } }), [/secret\.filename: unable to read file/]);
});

t.test('certificates directly in an Any are checked too, also in a nested Any', async (t) => {
  const secret = { '@type': `${TLS}.GenericSecret`, secret: file('none') };
  const packed = { '@type': 'type.googleapis.com/google.protobuf.Any', value: secret };
  for (const [typed_config, value] of [[secret, ''] as const, [packed, '\\.value'] as const]) {
    const config = { static_resources: { clusters: [{ name: 'c', transport_socket: { name: 'tls', typed_config } }] } };
    t.match(
      problemsOf(JSON.stringify(config), { file: 'a.json' }),
      new RegExp(`typed_config${value}\\.secret\\.filename: unable to read file: ENOENT`),
    );
  }
});

t.test('an invalid key is not shown', async (t) => {
  const text = readFileSync(`${FILES}/other.key`, 'utf8');
  const config = {
    static_resources: {
      secrets: [{ name: 's', tls_certificate: { certificate_chain: chain, private_key: { inline_string: text } } }],
    },
  };
  const found = problemsOf(JSON.stringify(config), { file: 'a.json' });
  t.match(found, 'the key does not belong');
  t.notMatch(found, text.split('\n')[1]!.slice(0, 10));
});
