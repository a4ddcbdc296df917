// Certificates for the TLS workloads, and OpenSSL's settings of their clients.

import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface KeyPair {
  /** Paths of files in PEM form. */
  readonly certificate: string;
  readonly key: string;
  /** A file with both, as HAProxy reads them. */
  readonly both: string;
}

export interface TlsFiles {
  readonly ecdsa: KeyPair;
  readonly rsa: KeyPair;
  /** OPENSSL_CONF of clients: TLS 1.3 with one cipher suite and one group, so that no peer chooses. */
  readonly clientConfig: string;
}

const CLIENT_CONFIG = `openssl_conf = all
[all]
ssl_conf = modules
[modules]
system_default = tls
[tls]
MinProtocol = TLSv1.3
Ciphersuites = TLS_AES_128_GCM_SHA256
Groups = X25519
`;

/** Makes self-signed certificates. */
export function makeTlsFiles(directory: string): TlsFiles {
  const clientConfig = join(directory, 'client.cnf');
  writeFileSync(clientConfig, CLIENT_CONFIG);
  const ecdsa = keyPair(directory, 'ecdsa', ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256']);
  return { ecdsa, rsa: keyPair(directory, 'rsa', ['-newkey', 'rsa:2048']), clientConfig };
}

function keyPair(directory: string, name: string, kind: readonly string[]): KeyPair {
  const certificate = join(directory, `${name}.pem`);
  const key = join(directory, `${name}.key`);
  const subject = ['-nodes', '-days', '3', '-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'];
  execFileSync('openssl', ['req', '-x509', ...kind, ...subject, '-keyout', key, '-out', certificate], {
    stdio: 'ignore',
  });
  const both = join(directory, `${name}-both.pem`);
  writeFileSync(both, readFileSync(certificate, 'latin1') + readFileSync(key, 'latin1'));
  return { certificate, key, both };
}
