// Keys of TLS sessions in a file (key_log), and the compliance policy.

import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { Authority } from '../harness/certificates.js';
import { besideEnvoy, type ProxyProgram } from '../harness/envoy.js';
import { bootstrap, startBaton, staticCluster, tempDir, waitFor } from '../harness/index.js';
import { managerOf, routeTo } from '../http/proxy.js';
import { clientTls, httpsGet, httpsListener, serverTls, startSecureHost, trustedCa } from './contexts.js';
import { MANAGER, startHttps } from './https-proxy.js';

const root = await Authority.create();
const server = await root.issue({ names: ['server.test'] });
const rsa = await root.issue({ names: ['server.test'], key: 'RSA-2048' });
const ca = root.certificate;

const TLS13 = [
  'CLIENT_HANDSHAKE_TRAFFIC_SECRET',
  'CLIENT_TRAFFIC_SECRET_0',
  'EXPORTER_SECRET',
  'SERVER_HANDSHAKE_TRAFFIC_SECRET',
  'SERVER_TRAFFIC_SECRET_0',
];

/** The labels of all lines, each of which has a label, the client's random number and a secret. */
function labels(path: string): string[] {
  const text = existsSync(path) ? readFileSync(path, 'latin1') : '';
  const lines = text.split('\n').filter((line) => line !== '');
  return lines.map((line) => /^([A-Z0-9_]+) [0-9a-f]{64} [0-9a-f]{64,96}$/.exec(line)?.[1] ?? line).sort();
}

const written = (path: string, count: number) =>
  waitFor(() => labels(path).length >= count && labels(path), { what: `${count} lines in ${path}` });

/** Envoy flushes such a file like an access log. */
const FLUSH = ['--file-flush-interval-msec', '20', '-l', 'warning', '--concurrency', '1'];

besideEnvoy('the keys of clients are written, of TLS 1.2 and 1.3', async (t, program) => {
  const path = join(tempDir(t), 'keys');
  const { port } = await startHttps(t, { ...program, args: FLUSH }, serverTls([server], { key_log: { path } }));
  await httpsGet(port, { ca });
  t.same(await written(path, 5), TLS13);
  await httpsGet(port, { ca, maxVersion: 'TLSv1.2' });
  t.same(await written(path, 6), [...TLS13, 'CLIENT_RANDOM'].sort());
  if (program.command === undefined) t.equal(statSync(path).mode & 0o777, 0o600, 'only its owner can read it');
});

besideEnvoy('only the keys of connections within the ranges are written', async (t, program) => {
  const directory = tempDir(t);
  const cidr = (address_prefix: string, prefix_len: number) => [{ address_prefix, prefix_len }];
  const logs = {
    local: { local_address_range: cidr('127.0.0.0', 8) },
    remote: { remote_address_range: cidr('127.0.0.1', 32), local_address_range: cidr('127.0.0.1', 32) },
    other_local: { local_address_range: cidr('10.0.0.0', 8) },
    other_remote: { local_address_range: cidr('127.0.0.0', 8), remote_address_range: cidr('10.0.0.0', 8) },
  };
  const listeners = Object.entries(logs).map(([name, ranges]) =>
    httpsListener(name, serverTls([server], { key_log: { path: join(directory, name), ...ranges } }), MANAGER),
  );
  const baton = await startBaton(t, { ...program, args: FLUSH, config: bootstrap({ listeners, clusters: [] }) });
  for (const name of ['other_local', 'other_remote', 'local', 'remote']) {
    await httpsGet(await baton.listenerPort(name), { ca });
  }
  for (const name of ['local', 'remote']) t.same(await written(join(directory, name), 5), TLS13, name);
  for (const name of ['other_local', 'other_remote']) t.same(labels(join(directory, name)), [], name);
});

besideEnvoy('a range that no address is in is refused', async (t, program) => {
  const remote_address_range = [{ address_prefix: '10.0.0', prefix_len: 8 }];
  const tls = serverTls([server], { key_log: { path: join(tempDir(t), 'keys'), remote_address_range } });
  const config = bootstrap({ listeners: [httpsListener('main', tls, MANAGER)], clusters: [] });
  const baton = await startBaton(t, { ...program, wait: 'spawned', config });
  t.not((await baton.exited).code, 0);
  t.match(baton.stderr, "invalid ip/mask combo '10.0.0/8'");
});

besideEnvoy('the keys of hosts are written', async (t, program) => {
  const path = join(tempDir(t), 'keys');
  const host = await startSecureHost(t, server, (_request, response) => void response.end('host'));
  const remote_address_range = [{ address_prefix: '127.0.0.1', prefix_len: 32 }];
  const tls = clientTls({ validation_context: trustedCa(root), key_log: { path, remote_address_range } });
  const listener = httpsListener('main', serverTls([server]), managerOf([routeTo({ prefix: '/' }, 'host')]));
  const clusters = [staticCluster('host', host.port, { transport_socket: tls })];
  const baton = await startBaton(t, {
    ...program,
    args: FLUSH,
    config: bootstrap({ listeners: [listener], clusters }),
  });
  t.equal((await httpsGet(await baton.listenerPort('main'), { ca })).body, 'host');
  t.same(await written(path, 1), ['CLIENT_RANDOM']);
});

besideEnvoy('FIPS_202205 sets versions, suites, curves and signature algorithms', fips);

async function fips(t: Test, program: ProxyProgram): Promise<void> {
  const tls_params = {
    compliance_policies: ['FIPS_202205'],
    // The policy replaces all of these.
    tls_maximum_protocol_version: 'TLSv1_2',
    cipher_suites: ['ECDHE-ECDSA-CHACHA20-POLY1305'],
    ecdh_curves: ['X25519'],
  };
  const { port } = await startHttps(t, program, serverTls([server, rsa], { tls_params }));
  const v12 = { ca, maxVersion: 'TLSv1.2' } as const;
  const v13 = { ca, minVersion: 'TLSv1.3' } as const;
  for (const options of [
    { ...v12, ciphers: 'ECDHE-ECDSA-AES128-GCM-SHA256' },
    { ...v12, ciphers: 'ECDHE-RSA-AES256-GCM-SHA384' },
    { ...v12, sigalgs: 'RSA+SHA256', ciphers: 'ECDHE-RSA-AES128-GCM-SHA256' },
    { ...v13, ciphers: 'TLS_AES_256_GCM_SHA384' },
    { ...v13, ciphers: 'TLS_AES_128_GCM_SHA256', ecdhCurve: 'P-384' },
    { ...v13, sigalgs: 'rsa_pss_rsae_sha512' },
  ])
    t.equal((await httpsGet(port, options)).status, 200, JSON.stringify(options, nothingLong));
  for (const options of [
    { ...v12, ciphers: 'ECDHE-ECDSA-CHACHA20-POLY1305' },
    { ...v13, ciphers: 'TLS_CHACHA20_POLY1305_SHA256' },
    { ...v13, ecdhCurve: 'X25519' },
    { ...v12, sigalgs: 'RSA+SHA1', ciphers: 'ECDHE-RSA-AES128-GCM-SHA256:@SECLEVEL=0' },
  ])
    await t.rejects(httpsGet(port, options), JSON.stringify(options, nothingLong));
}

besideEnvoy('CNSA1_202603 leaves AES-256, P-384 and SHA-384', cnsa1);

async function cnsa1(t: Test, program: ProxyProgram): Promise<void> {
  const strong = await root.issue({ names: ['server.test'], key: 'P-384' });
  const tls_params = { compliance_policies: ['CNSA1_202603'], ecdh_curves: ['X25519'] };
  const { port } = await startHttps(t, program, serverTls([strong], { tls_params }));
  const v12 = { ca, maxVersion: 'TLSv1.2' } as const;
  const v13 = { ca, minVersion: 'TLSv1.3' } as const;
  for (const options of [
    v12,
    v13,
    { ...v13, ecdhCurve: 'P-384' },
    { ...v12, ciphers: 'ECDHE-ECDSA-AES256-GCM-SHA384' },
  ])
    t.equal((await httpsGet(port, options)).status, 200, JSON.stringify(options, nothingLong));
  for (const options of [
    { ...v12, ciphers: 'ECDHE-ECDSA-AES128-GCM-SHA256' },
    { ...v13, ciphers: 'TLS_AES_128_GCM_SHA256' },
    { ...v13, ciphers: 'TLS_CHACHA20_POLY1305_SHA256' },
    { ...v13, ecdhCurve: 'X25519' },
    { ...v13, ecdhCurve: 'P-256' },
    { ...v12, sigalgs: 'ECDSA+SHA256' },
  ])
    await t.rejects(httpsGet(port, options), JSON.stringify(options, nothingLong));
}

function nothingLong(key: string, value: unknown): unknown {
  return key === 'ca' ? undefined : value;
}
