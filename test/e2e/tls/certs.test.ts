// GET /certs.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Authority } from '../harness/certificates.js';
import { besideEnvoy } from '../harness/envoy.js';
import { bootstrap, httpListener, startBaton, staticCluster, tempDir } from '../harness/index.js';
import { clientTls, serverTls, trustedCa } from './contexts.js';
import { MANAGER } from './https-proxy.js';

const root = await Authority.create();
const server = await root.issue({
  names: [{ type: 'ip', value: '10.0.0.1' }, 'server.test', { type: 'url', value: 'spiffe://server' }],
  validDays: [-3, 20.5],
});

besideEnvoy('/certs describes the certificates of listeners and clusters', async (t, program) => {
  const directory = tempDir(t);
  const file = join(directory, 'server.pem');
  writeFileSync(file, server.chain);
  const certificate = { certificate_chain: { filename: file }, private_key: { inline_string: server.key } };
  const tls = serverTls([], { tls_certificates: [certificate] });
  const listener = httpListener('main', 0, MANAGER);
  const [chain] = listener['filter_chains'] as object[];
  const cluster = staticCluster('host', 9, { transport_socket: clientTls({ validation_context: trustedCa(root) }) });
  const baton = await startBaton(t, {
    ...program,
    config: bootstrap({
      listeners: [{ ...listener, filter_chains: [{ ...chain, transport_socket: tls }] }],
      clusters: [cluster],
    }),
  });
  const { certificates } = JSON.parse((await baton.admin('/certs')).body) as { certificates: object[] };
  const seconds = (date: Date) => `${date.toISOString().slice(0, 19)}Z`;
  const ofListener = {
    ca_cert: [],
    cert_chain: [
      {
        path: file,
        serial_number: server.x509.serialNumber.replace(/^0+/, '').toLowerCase(),
        subject_alt_names: [{ dns: 'server.test' }, { uri: 'spiffe://server' }, { ip_address: '10.0.0.1' }],
        days_until_expiration: '20',
        valid_from: seconds(server.x509.notBefore),
        expiration_time: seconds(server.x509.notAfter),
      },
    ],
  };
  t.equal(certificates.length, 2);
  t.ok(
    certificates.some((each) => JSON.stringify(each) === JSON.stringify(ofListener)),
    JSON.stringify(certificates),
  );
  t.match(
    certificates.find((each) => JSON.stringify(each) !== JSON.stringify(ofListener)),
    { ca_cert: [{ path: '<inline>', subject_alt_names: [], days_until_expiration: '3649' }], cert_chain: [] },
  );
});
