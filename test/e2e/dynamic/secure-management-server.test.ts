// A management server that speaks only TLS with certificates on both sides.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ServerCredentials } from '@grpc/grpc-js';
import t from 'tap';
import { Authority, type IssuedCertificate } from '../harness/certificates.js';
import { startControlPlane, type XdsProtocol } from '../harness/control-plane.js';
import {
  bootstrap,
  type Config,
  httpListener,
  httpRequest,
  startBaton,
  type Teardown,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { clientTls, tlsCertificate, trustedCa } from '../tls/contexts.js';

const root = await Authority.create();
const server = await root.issue({ names: ['xds.test'] });
const client = await root.issue({ commonName: 'proxy' });
const stranger = await (await Authority.create('Other Root')).issue({ commonName: 'proxy' });

const credentials = () =>
  ServerCredentials.createSsl(
    Buffer.from(root.certificate),
    [{ cert_chain: Buffer.from(server.chain), private_key: Buffer.from(server.key) }],
    true,
  );

/** The context of the cluster, with the given certificate of the client. */
const context = (certificate: Config, names: readonly string[] = ['xds.test']) =>
  clientTls(
    {
      alpn_protocols: ['h2'],
      tls_certificates: [certificate],
      validation_context: {
        ...trustedCa(root),
        match_typed_subject_alt_names: names.map((exact) => ({ san_type: 'DNS', matcher: { exact } })),
      },
    },
    { sni: 'xds.test' },
  );

function inFiles(t: Teardown, { chain, key }: IssuedCertificate): Config {
  const [certificateFile, keyFile] = ['cert.pem', 'key.pem'].map((name) => join(tempDir(t), name)) as [string, string];
  writeFileSync(certificateFile, chain);
  writeFileSync(keyFile, key);
  return { certificate_chain: { filename: certificateFile }, private_key: { filename: keyFile } };
}

const listener = httpListener('front', 0, {
  route_config: {
    virtual_hosts: [
      { name: 'all', domains: ['*'], routes: [{ match: { prefix: '/' }, direct_response: { status: 202 } }] },
    ],
  },
});

for (const protocol of ['sotw', 'delta'] as XdsProtocol[]) {
  t.test(`${protocol}: configuration arrives over mTLS, and again after the server was restarted`, async (t) => {
    const plane = await startControlPlane(t, { credentials: credentials() });
    plane.set('listener', [listener]);
    const certificate = protocol === 'sotw' ? tlsCertificate(client) : inFiles(t, client);
    const baton = await startBaton(t, {
      config: bootstrap({
        listeners: [],
        clusters: [plane.cluster('control-plane', { transport_socket: context(certificate) })],
        extra: plane.ads(protocol),
      }),
    });
    t.equal((await httpRequest(await baton.listenerPort('front'), '/')).status, 202);
    t.equal(await baton.stat('cluster.control-plane.ssl.handshake'), 1);
    t.equal(await baton.stat('control_plane.connected_state'), 1);
    plane.stop();
    await waitFor(async () => (await baton.stat('control_plane.connected_state')) === 0, { what: 'the end' });
    plane.set('cluster', []);
    await plane.start();
    await plane.waitForAck('cluster');
    t.equal(await baton.stat('cluster.control-plane.ssl.handshake'), 2);
    await baton.stop();
  });
}

for (const [what, certificate, names, unverified] of [
  ['does not trust the proxy', stranger, ['xds.test'], 0],
  ['has another name', client, ['other.test'], 1],
] as const) {
  t.test(`nothing is exchanged with a management server that ${what}`, async (t) => {
    const plane = await startControlPlane(t, { credentials: credentials() });
    plane.set('listener', [listener]);
    const baton = await startBaton(t, {
      config: bootstrap({
        listeners: [],
        clusters: [plane.cluster('control-plane', { transport_socket: context(tlsCertificate(certificate), names) })],
        extra: plane.ads(),
      }),
      wait: 'admin',
    });
    await waitFor(async () => ((await baton.stat('cluster_manager.cds.update_failure')) ?? 0) > 1, {
      what: 'failures',
    });
    t.equal(plane.requests.length, 0);
    t.ok((await baton.stat('cluster.control-plane.ssl.fail_verify_san'))! >= unverified);
    t.match(baton.stderr, /gRPC config stream to control-plane closed: 14, /);
    await baton.stop();
  });
}
