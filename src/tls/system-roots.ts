// The certificates that the operating system trusts.

import { existsSync } from 'node:fs';
import { BatonError } from '../common/errors/errors.js';
import { readRegularFile } from '../common/files/regular-file.js';

/** Bundles of distributions, as in Envoy: Debian, Alpine; Fedora, RHEL; openSUSE; OpenELEC; CentOS; others. */
const BUNDLES = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/pki/tls/cacert.pem',
  '/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem',
  '/etc/ssl/cert.pem',
];

/** Returns the first bundle. Throws BatonError CONFIG_UNREADABLE if there is none. */
export function readSystemRoots(): Buffer {
  const found = BUNDLES.find((path) => existsSync(path));
  if (found !== undefined) return readRegularFile(found);
  throw new BatonError(
    'CONFIG_UNREADABLE',
    `this system has no bundle of trusted certificates: ${BUNDLES.join(', ')}`,
    {
      remedy: 'install ca-certificates, or name a file with trusted_ca',
    },
  );
}
