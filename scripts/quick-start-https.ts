// The HTTPS listener of the quick start: its HTTP listener again, with a certificate that is made at each start.

import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as x509 from '@peculiar/x509';
import { parse } from 'yaml';

const TLS = 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext';
const DAY_MS = 86_400_000;
const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

interface Listener {
  readonly filter_chains: readonly object[];
}

export interface HttpsQuickStart {
  /** For `--config-yaml`, which adds the listener to the quick start. */
  readonly configuration: string;
  /** The path of the certificate, which clients must trust. */
  readonly certificate: string;
}

/** Writes a new certificate and its key to `directory`, and returns the listener that uses them. `quickStart`: path of its configuration. */
export async function httpsQuickStart(quickStart: string, directory: string, port: number): Promise<HttpsQuickStart> {
  const certificate = join(directory, 'localhost.pem');
  const key = join(directory, 'localhost.key');
  await writeCertificate(certificate, key);
  const { static_resources: resources } = parse(readFileSync(quickStart, 'utf8')) as {
    static_resources: { listeners: Listener[] };
  };
  const [http] = resources.listeners;
  const context = {
    '@type': TLS,
    common_tls_context: {
      alpn_protocols: ['h2', 'http/1.1'],
      tls_certificates: [{ certificate_chain: { filename: certificate }, private_key: { filename: key } }],
    },
  };
  const https = {
    ...http,
    name: 'https',
    address: { socket_address: { address: '127.0.0.1', port_value: port } },
    filter_chains: [{ ...http!.filter_chains[0], transport_socket: { name: 'tls', typed_config: context } }],
  };
  return { configuration: JSON.stringify({ static_resources: { listeners: [https] } }), certificate };
}

async function writeCertificate(certificate: string, key: string): Promise<void> {
  x509.cryptoProvider.set(webcrypto as never);
  const keys = (await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])) as webcrypto.CryptoKeyPair;
  const made = await x509.X509CertificateGenerator.createSelfSigned({
    name: 'CN=localhost',
    notBefore: new Date(Date.now() - DAY_MS),
    notAfter: new Date(Date.now() + 30 * DAY_MS),
    signingAlgorithm: ALGORITHM,
    keys,
    extensions: [
      new x509.SubjectAlternativeNameExtension([
        { type: 'dns', value: 'localhost' },
        { type: 'ip', value: '127.0.0.1' },
      ]),
    ],
  });
  const pkcs8 = await webcrypto.subtle.exportKey('pkcs8', keys.privateKey);
  writeFileSync(certificate, made.toString('pem'));
  writeFileSync(key, x509.PemConverter.encode(pkcs8, 'PRIVATE KEY'), { mode: 0o600 });
}
