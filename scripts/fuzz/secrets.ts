// TLS secrets from a management server: certificates, keys, authorities, revocation lists and ticket keys with changed bytes, in PEM
// and within it. Whatever is delivered, the server answers TLS handshakes with the last good secret.

import type { Random } from '../../src/common/random.js';
import { Authority } from '../../test/e2e/harness/certificates.js';
import { startControlPlane } from '../../test/e2e/harness/control-plane.js';
import { type BatonProcess, bootstrap, type Config, startBaton, waitFor } from '../../test/e2e/harness/index.js';
import { httpsGet, httpsListener, serverTls } from '../../test/e2e/tls/contexts.js';
import { MANAGER } from '../../test/e2e/tls/https-proxy.js';
import { mutateBytes, pick } from './mutation.js';
import { defectIn, Finding, type Scope } from './scope.js';

const UPDATES_PER_CHECK = 50;
const TOKENS: readonly Buffer[] = [
  ...['-----BEGIN CERTIFICATE-----', '-----END CERTIFICATE-----', '-----BEGIN PRIVATE KEY-----', '\n', '\0', '='],
  ...['-----BEGIN ENCRYPTED PRIVATE KEY-----', '-----BEGIN X509 CRL-----', 'Proc-Type: 4,ENCRYPTED\n', 'BEGIN'],
  ...['\x30\x80', '\x30\x84\xff\xff\xff\xff', '\x06\x00', '\x02\x01\x00', '\x05\x00', '\x03\x02\x07\x80'],
].map((text) => Buffer.from(text, 'latin1'));

/** Throws a Finding when the server shows a defect. Returns a summary. */
export async function fuzzSecrets(scope: Scope, random: Random, durationMs: number): Promise<string> {
  const root = await Authority.create();
  const pairs = [await root.issue({ names: ['a.test'] }), await root.issue({ names: ['b.test'], key: 'RSA-2048' })];
  const crl = Buffer.from(await root.revoke(pairs));
  const chains = pairs.map(({ chain }) => Buffer.from(chain));
  const keys = pairs.map(({ key }) => Buffer.from(key));
  const authorities = [Buffer.from(root.certificate), chains[0]!];
  const changed = (seeds: readonly Buffer[]): Config => ({
    inline_bytes: (random.below(2) === 0 ? mutateBytes(random, seeds, TOKENS) : mutateContent(random, seeds)).toString(
      'base64',
    ),
  });
  const plane = await startControlPlane(scope);
  const send = (certificate: Config, validation: Config, tickets: Config): string =>
    plane.set('secret', [
      { name: 'server', tls_certificate: certificate },
      { name: 'trust', validation_context: validation },
      { name: 'tickets', session_ticket_keys: tickets },
    ]);
  const good = { inline_bytes: chains[0]!.toString('base64') };
  const goodKey = { inline_bytes: keys[0]!.toString('base64') };
  const goodTickets = Buffer.alloc(160, 1);
  send(
    { certificate_chain: good, private_key: goodKey },
    { trusted_ca: { inline_string: root.certificate } },
    { keys: [{ inline_bytes: goodTickets.subarray(80).toString('base64') }] },
  );
  const named = (name: string) => ({ name, sds_config: plane.source() });
  const tls = serverTls(
    [],
    {
      tls_certificate_sds_secret_configs: [named('server')],
      validation_context_sds_secret_config: named('trust'),
    },
    { session_ticket_keys_sds_secret_config: named('tickets') },
  );
  const config = bootstrap({
    listeners: [httpsListener('secure', tls, MANAGER)],
    clusters: [plane.cluster()],
    extra: { node: { id: 'node', cluster: 'cluster' } },
  });
  const baton = await startBaton(scope, { config });
  const port = await baton.listenerPort('secure');
  const end = performance.now() + durationMs;
  let updates = 0;
  while (performance.now() < end && baton.exit === undefined) {
    const index = random.below(2);
    const certificate = {
      certificate_chain: random.below(3) > 0 ? changed([chains[index]!]) : good,
      private_key: random.below(3) > 0 ? changed([keys[index]!]) : goodKey,
    };
    const validation = { trusted_ca: changed(authorities), ...(random.below(2) === 0 && { crl: changed([crl]) }) };
    const sent = plane.requests.length;
    const version = send(certificate, validation, { keys: [changed([goodTickets.subarray(80), goodTickets])] });
    // Each of the three subscriptions answers.
    const answers = () =>
      plane.requests.slice(sent).filter(({ nonce }) => nonce.startsWith(`${version}/`)).length >= 3 ||
      baton.exit !== undefined;
    await waitFor(answers, { what: `answers to version ${version}` });
    plane.requests.length = 0;
    if (++updates % UPDATES_PER_CHECK === 0) await check(baton, port);
  }
  await check(baton, port);
  const stats = await baton.stats();
  const rejected = ['server', 'trust', 'tickets'].reduce((sum, name) => sum + stats[`sds.${name}.update_rejected`]!, 0);
  return `${updates} updates of three secrets, of which ${rejected} were rejected; no defect`;
}

/** Changes the bytes that a PEM text encodes. */
function mutateContent(random: Random, seeds: readonly Buffer[]): Buffer {
  const pem = pick(random, seeds).toString('latin1');
  const content = /(-----BEGIN [^-]+-----\n)([^-]*)(-----END [^-]+-----)/.exec(pem);
  if (content === null) return mutateBytes(random, seeds, TOKENS);
  const [, begin, body, close] = content;
  const bytes = mutateBytes(random, [Buffer.from(body!, 'base64')], TOKENS);
  const lines = bytes.toString('base64').replace(/.{64}/g, '$&\n');
  return Buffer.from(`${begin}${lines}\n${close}\n`);
}

/** Throws a Finding if the server has shown a defect or serves no client. */
async function check(baton: BatonProcess, port: number): Promise<void> {
  const defect = baton.exit === undefined ? defectIn(baton.stderr) : `it has exited\n${baton.stderr.slice(-4000)}`;
  if (defect !== undefined) throw new Finding(defect);
  const answer = await httpsGet(port, { rejectUnauthorized: false }).catch(String);
  if (typeof answer === 'string' || answer.status !== 200) throw new Finding(`no answer: ${String(answer)}`);
  answer.socket.destroy();
}
