// Certificates that clients present: chains, names, digests, revocation.

import t from 'tap';
import { Authority } from '../harness/certificates.js';
import { besideEnvoy } from '../harness/envoy.js';
import { bootstrap, type Config, startBaton } from '../harness/index.js';
import { httpsGet, httpsListener, serverTls, trustedCa } from './contexts.js';
import { MANAGER, startHttps } from './https-proxy.js';

const root = await Authority.create();
const other = await Authority.create('Other Root');
const server = await root.issue({ names: ['server.test'] });
const user = await (await root.issueAuthority('Intermediate')).issue({ names: ['user.test'] });
const ca = root.certificate;

besideEnvoy('a required client certificate is verified, and refusals are counted by kind', async (t, program) => {
  const common = { validation_context: trustedCa(root) };
  const tls = serverTls([server], common, { require_client_certificate: true });
  const { baton, port, ssl } = await startHttps(t, program, tls);
  const expired = await root.issue({ names: ['user.test'], validDays: [-20, -10] });
  const stranger = await other.issue({ names: ['user.test'] });
  t.equal((await httpsGet(port, { ca, cert: user.chain, key: user.key })).status, 200);
  await t.rejects(httpsGet(port, { ca }));
  await t.rejects(httpsGet(port, { ca, cert: expired.chain, key: expired.key }));
  await t.rejects(httpsGet(port, { ca, cert: stranger.chain, key: stranger.key }));
  await baton.waitForStats({
    [`${ssl}handshake`]: 1,
    [`${ssl}no_certificate`]: 0,
    [`${ssl}fail_verify_no_cert`]: 1,
    [`${ssl}fail_verify_error`]: 2,
    [`${ssl}connection_error`]: 0,
    [`${ssl}sigalgs.ecdsa_secp256r1_sha256`]: 1,
  });
});

besideEnvoy('an optional client certificate must be valid if there is one', async (t, program) => {
  const { port } = await startHttps(t, program, serverTls([server], { validation_context: trustedCa(root) }));
  const stranger = await other.issue();
  t.equal((await httpsGet(port, { ca })).status, 200);
  t.equal((await httpsGet(port, { ca, cert: user.chain, key: user.key })).status, 200);
  await t.rejects(httpsGet(port, { ca, cert: stranger.chain, key: stranger.key }));
});

besideEnvoy('ACCEPT_UNTRUSTED accepts any client certificate, and counts what is wrong with it', async (t, program) => {
  const validation = { ...trustedCa(root), trust_chain_verification: 'ACCEPT_UNTRUSTED' };
  const { baton, port, ssl } = await startHttps(t, program, serverTls([server], { validation_context: validation }));
  const stranger = await other.issue();
  t.equal((await httpsGet(port, { ca, cert: stranger.chain, key: stranger.key })).status, 200);
  await baton.waitForStats({ [`${ssl}handshake`]: 1, [`${ssl}fail_verify_error`]: 1 });
});

besideEnvoy('subject alternative names of all types decide about client certificates', async (t, program) => {
  const named = await root.issue({
    names: [
      'a.user.test',
      { type: 'url', value: 'spiffe://domain/user' },
      { type: 'email', value: 'user@a.test' },
      { type: 'ip', value: '10.1.2.3' },
    ],
  });
  const cases: [string, Config, boolean][] = [
    ['DNS', { exact: 'a.user.test' }, true],
    ['DNS', { exact: 'b.user.test' }, false],
    ['DNS', { suffix: '.user.test' }, true],
    ['DNS', { safe_regex: { regex: '[a-z]\\.user\\.test' } }, true],
    ['DNS', { safe_regex: { regex: '[a-z]\\.user' } }, false],
    ['URI', { prefix: 'spiffe://domain/' }, true],
    ['URI', { exact: 'a.user.test' }, false],
    ['EMAIL', { exact: 'user@a.test' }, true],
    ['IP_ADDRESS', { exact: '10.1.2.3' }, true],
    ['IP_ADDRESS', { exact: '10.1.2.4' }, false],
  ];
  const listeners = cases.map(([type, matcher], index) => {
    const validation = { ...trustedCa(root), match_typed_subject_alt_names: [{ san_type: type, matcher }] };
    return { ...httpsListener(`l${index}`, serverTls([server], { validation_context: validation }), MANAGER) };
  });
  const baton = await startBaton(t, { ...program, config: bootstrap({ listeners, clusters: [] }) });
  for (const [index, [type, matcher, isAccepted]] of cases.entries()) {
    const port = await baton.listenerPort(`l${index}`);
    const answer = httpsGet(port, { ca, cert: named.chain, key: named.key });
    const outcome = await answer.then(
      ({ status }) => status === 200,
      () => false,
    );
    t.equal(outcome, isAccepted, `${type} ${JSON.stringify(matcher)}`);
  }
});

besideEnvoy('hashes of a certificate or of its key vouch for it without a CA', async (t, program) => {
  const { createHash, X509Certificate } = await import('node:crypto');
  const certificate = new X509Certificate(user.certificate);
  const spki = certificate.publicKey.export({ type: 'spki', format: 'der' });
  const cases: [Config, boolean][] = [
    [{ verify_certificate_hash: [certificate.fingerprint256] }, true],
    [{ verify_certificate_hash: [certificate.fingerprint256.replaceAll(':', '').toLowerCase()] }, true],
    [{ verify_certificate_spki: [createHash('sha256').update(spki).digest('base64')] }, true],
    [{ verify_certificate_hash: ['00'.repeat(32)] }, false],
  ];
  const listeners = cases.map(([validation], index) =>
    httpsListener(`l${index}`, serverTls([server], { validation_context: validation }), MANAGER),
  );
  const baton = await startBaton(t, { ...program, config: bootstrap({ listeners, clusters: [] }) });
  for (const [index, [, isAccepted]] of cases.entries()) {
    const answer = httpsGet(await baton.listenerPort(`l${index}`), { ca, cert: user.chain, key: user.key });
    t.equal(
      await answer.then(
        ({ status }) => status === 200,
        () => false,
      ),
      isAccepted,
      `case ${index}`,
    );
  }
});

// Not beside Envoy, whose library does not read the lists that the tests' library makes.
t.test('a revoked client certificate is refused', async (t) => {
  const good = await root.issue();
  const revoked = await root.issue();
  const crl = { inline_string: await root.revoke([revoked]) };
  const validation = { ...trustedCa(root), crl };
  const { port } = await startHttps(t, {}, serverTls([server], { validation_context: validation }));
  t.equal((await httpsGet(port, { ca, cert: good.chain, key: good.key })).status, 200);
  await t.rejects(httpsGet(port, { ca, cert: revoked.chain, key: revoked.key }));
});
