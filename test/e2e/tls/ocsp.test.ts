// OCSP responses that listeners send with their certificates.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import type { Test } from 'tap';
import { Authority, type IssuedCertificate } from '../harness/certificates.js';
import { besideEnvoy, type ProxyProgram } from '../harness/envoy.js';
import { bootstrap, type Config, startBaton, tempDir, withDeadline } from '../harness/index.js';
import { ocspResponse, ocspTime, unsuccessfulResponse } from '../harness/ocsp.js';
import { httpsListener, serverTls, tlsCertificate } from './contexts.js';
import { MANAGER } from './https-proxy.js';

const root = await Authority.create();
const server = await root.issue({ names: ['server.test'] });
const rsa = await root.issue({ names: ['server.test'], key: 'RSA-2048' });
const other = await root.issue({ names: ['other.test'] });
const mustStaple = await root.issue({ names: ['server.test'], isMustStaple: true });
const ca = root.certificate;

const valid = ocspResponse([server]);
const expired = ocspResponse([server], { validDays: [-9, -2] });

function stapled(certificate: IssuedCertificate, staple: Buffer): Config {
  return { ...tlsCertificate(certificate), ocsp_staple: { inline_bytes: staple.toString('base64') } };
}

function tls(certificates: readonly Config[], policy?: string): Config {
  return serverTls([], { tls_certificates: certificates }, policy === undefined ? {} : { ocsp_staple_policy: policy });
}

/** Starts one listener for each context, with its name in its stats. */
async function start(t: Test, program: ProxyProgram, contexts: { readonly [name: string]: Config }) {
  const listeners = Object.entries(contexts).map(([name, context]) => ({
    ...httpsListener(name, context, MANAGER),
    stat_prefix: name,
  }));
  return startBaton(t, { ...program, config: bootstrap({ listeners, clusters: [] }) });
}

interface Outcome {
  readonly socket: TLSSocket;
  /** Undefined: the server has sent none. */
  readonly response: Buffer | undefined;
}

/** Makes a handshake. Rejects when it fails. */
function handshake(port: number, options: ConnectionOptions = {}, requestOCSP = true): Promise<Outcome> {
  const done = new Promise<Outcome>((resolve, reject) => {
    const all: object = { host: '127.0.0.1', port, servername: 'server.test', ca, requestOCSP, ...options };
    const socket = connect(all);
    let response: Buffer | undefined;
    socket.on('OCSPResponse', (bytes: Buffer | null) => {
      response = bytes ?? undefined;
    });
    socket.once('secureConnect', () => {
      socket.end();
      resolve({ socket, response });
    });
    socket.on('error', reject);
  });
  return withDeadline(done, `a handshake with port ${port}`);
}

const stats = (name: string, requests: number, responses: number, omitted: number, failed: number) => ({
  [`listener.${name}.ssl.ocsp_staple_requests`]: requests,
  [`listener.${name}.ssl.ocsp_staple_responses`]: responses,
  [`listener.${name}.ssl.ocsp_staple_omitted`]: omitted,
  [`listener.${name}.ssl.ocsp_staple_failed`]: failed,
});

besideEnvoy('a client that requests it gets the response, in TLS 1.2 and 1.3', async (t, program) => {
  const baton = await start(t, program, { main: tls([stapled(server, valid)]) });
  const port = await baton.listenerPort('main');
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    const { response } = await handshake(port, { minVersion: version, maxVersion: version });
    t.ok(response?.equals(valid), version);
  }
  t.equal((await handshake(port, {}, false)).response, undefined);
  await baton.waitForStats(stats('main', 2, 2, 0, 0));
});

besideEnvoy('the policy decides what happens without a valid response', async (t, program) => {
  const alone = tlsCertificate(server);
  const old = stapled(server, expired);
  const baton = await start(t, program, {
    lenient_without: tls([alone]),
    lenient_expired: tls([old], 'LENIENT_STAPLING'),
    strict_without: tls([alone], 'STRICT_STAPLING'),
    strict_expired: tls([old], 'STRICT_STAPLING'),
    strict_valid: tls([stapled(server, valid)], 'STRICT_STAPLING'),
    required_expired: tls([old], 'MUST_STAPLE'),
    required_valid: tls([stapled(server, valid)], 'MUST_STAPLE'),
    endless: tls([stapled(server, ocspResponse([server], { validDays: [-1] }))], 'STRICT_STAPLING'),
    must_staple: tls([stapled(mustStaple, ocspResponse([mustStaple], { validDays: [-9, -2] }))]),
  });
  for (const name of ['lenient_without', 'lenient_expired', 'strict_without']) {
    t.equal((await handshake(await baton.listenerPort(name))).response, undefined, name);
    await baton.waitForStats({ ...stats(name, 1, 0, 1, 0), [`listener.${name}.ssl.handshake`]: 1 });
  }
  for (const name of ['strict_valid', 'required_valid']) {
    t.ok((await handshake(await baton.listenerPort(name))).response?.equals(valid), name);
    await baton.waitForStats({ ...stats(name, 1, 1, 0, 0), [`listener.${name}.ssl.handshake`]: 1 });
  }
  for (const name of ['strict_expired', 'required_expired', 'endless', 'must_staple']) {
    const port = await baton.listenerPort(name);
    await t.rejects(handshake(port), { message: /handshake failure/ }, name);
    await handshake(port, {}, false);
    await baton.waitForStats({
      ...stats(name, 1, 0, 0, 1),
      [`listener.${name}.ssl.connection_error`]: 1,
      [`listener.${name}.ssl.handshake`]: 1,
    });
  }
});

besideEnvoy('each of several certificates has its own response', async (t, program) => {
  const rsaResponse = ocspResponse([rsa]);
  const baton = await start(t, program, {
    both: tls([stapled(rsa, rsaResponse), stapled(server, valid)]),
    half: tls([stapled(rsa, rsaResponse), stapled(server, expired)], 'STRICT_STAPLING'),
    none: tls([stapled(rsa, ocspResponse([rsa], { validDays: [-9, -2] })), stapled(server, expired)], 'MUST_STAPLE'),
  });
  const both = await baton.listenerPort('both');
  t.ok((await handshake(both)).response?.equals(valid));
  const onlyRsa = { maxVersion: 'TLSv1.2', ciphers: 'ECDHE-RSA-AES128-GCM-SHA256' } as const;
  t.ok((await handshake(both, onlyRsa)).response?.equals(rsaResponse));
  t.ok(
    (await handshake(both, { ...onlyRsa, servername: 'unknown.test', checkServerIdentity: () => undefined })).response,
  );
  await baton.waitForStats(stats('both', 3, 3, 0, 0));
  const half = await baton.listenerPort('half');
  t.ok((await handshake(half)).response?.equals(rsaResponse), 'a certificate with a valid response is preferred');
  const none = await baton.listenerPort('none');
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    const options = { minVersion: version, maxVersion: version };
    await t.rejects(handshake(none, options), { message: /handshake failure/ }, version);
  }
  await baton.waitForStats(stats('none', 2, 0, 0, 2));
});

besideEnvoy('resumed sessions count as others', async (t, program) => {
  const baton = await start(t, program, {
    one: tls([stapled(server, valid)]),
    two: tls([stapled(rsa, ocspResponse([rsa])), stapled(server, valid)]),
  });
  for (const name of ['one', 'two']) {
    const port = await baton.listenerPort(name);
    const options = { maxVersion: 'TLSv1.2' } as const;
    const session = (await handshake(port, options)).socket.getSession()!;
    t.ok((await handshake(port, { ...options, session })).socket.isSessionReused(), name);
    await baton.waitForStats(stats(name, 2, 2, 0, 0));
  }
});

besideEnvoy('/certs and a gauge show how long responses are valid', async (t, program) => {
  const file = join(tempDir(t), 'staple.der');
  writeFileSync(file, valid);
  const certificate = { ...tlsCertificate(server), ocsp_staple: { filename: file } };
  const baton = await start(t, program, { main: tls([certificate]) });
  t.match(JSON.parse((await baton.admin('/certs')).body), {
    certificates: [{ cert_chain: [{ ocsp_details: { valid_from: ocspTime(-1), expiration: ocspTime(7) } }] }],
  });
  t.ok((await handshake(await baton.listenerPort('main'))).response?.equals(valid));
});

const REFUSED: readonly [string, readonly Config[], string | undefined, RegExp][] = [
  ['of another certificate', [stapled(other, valid)], undefined, /OCSP response does not match its TLS certificate/],
  ['unsuccessful', [stapled(server, unsuccessfulResponse())], undefined, /OCSP response was unsuccessful/],
  ['of two certificates', [stapled(server, ocspResponse([server, other]))], undefined, /for one certificate only/],
  ['as text', [{ ...tlsCertificate(server), ocsp_staple: { inline_string: 'x' } }], undefined, /inline_string/],
  ['not readable', [stapled(server, Buffer.from('garbage'))], undefined, /ocsp|OCSP/],
  ['truncated', [stapled(server, valid.subarray(0, -10))], undefined, /ocsp|OCSP/],
  ['missing, with MUST_STAPLE', [tlsCertificate(server)], 'MUST_STAPLE', /Required OCSP response is missing/],
  [
    'missing, of a must-staple certificate',
    [tlsCertificate(mustStaple)],
    undefined,
    /required for must-staple certificate/,
  ],
];

besideEnvoy('a response that does not fit is refused, and a missing one that is required', async (t, program) => {
  const attempts = REFUSED.map(async ([what, certificates, policy, reason]) => {
    const listener = httpsListener('main', tls(certificates, policy), MANAGER);
    const config = bootstrap({ listeners: [listener], clusters: [] });
    const baton = await startBaton(t, { ...program, wait: 'spawned', config });
    t.not((await baton.exited).code, 0, what);
    t.match(baton.stderr, reason, what);
  });
  await Promise.all(attempts);
});
