// Secrets from files and management servers, for the tests of this folder.

import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { RESOURCE_MESSAGES } from '../../../src/xds/resource.js';
import { ResourceFile } from '../dynamic/resource-file.js';
import type { IssuedCertificate } from '../harness/certificates.js';
import { bootstrap, type Config, type Teardown, waitFor } from '../harness/index.js';
import { httpsListener, secureConnection, serverTls } from './contexts.js';
import { MANAGER } from './https-proxy.js';

/** A secret in a resource file. */
export class SecretFile extends ResourceFile {
  readonly #name: string;

  constructor(directory: string, name: string) {
    super(directory, name);
    this.#name = name;
  }

  /** Returns an SdsSecretConfig. */
  get config(): Config {
    return { name: this.#name, sds_config: this.source };
  }

  /** Writes the next version. `content`: `{ tls_certificate: … }` */
  set(content: Config): void {
    this.write(RESOURCE_MESSAGES.secret, { name: this.#name, ...content });
  }
}

/** A certificate and its key in two files. */
export class PairFiles {
  readonly #chain: string;
  readonly #key: string;

  constructor(directory: string, name: string) {
    this.#chain = join(directory, `${name}.pem`);
    this.#key = join(directory, `${name}.key`);
  }

  /** Returns a TlsCertificate. */
  get certificate(): Config {
    return { certificate_chain: { filename: this.#chain }, private_key: { filename: this.#key } };
  }

  /** Moves another pair into place, one file after the other. */
  replace(pair: IssuedCertificate): void {
    this.replaceChain(pair.chain);
    this.replaceKey(pair.key);
  }

  replaceChain(pem: string): void {
    moveIntoPlace(this.#chain, pem);
  }

  replaceKey(pem: string): void {
    moveIntoPlace(this.#key, pem);
  }
}

export function moveIntoPlace(path: string, text: string): void {
  writeFileSync(`${path}.next`, text);
  renameSync(`${path}.next`, path);
}

/** Returns a bootstrap with the HTTPS listener `main`, whose certificate a source delivers. */
export function discoveringListener(
  certificate: Config,
  common: Config = {},
  more: Config = {},
  extra: Config = {},
): Config {
  const tls = serverTls([], { tls_certificate_sds_secret_configs: [certificate], ...common }, more);
  const listener = { ...httpsListener('main', tls, MANAGER), stat_prefix: 'main' };
  return bootstrap({
    listeners: [listener],
    clusters: [],
    extra: { node: { id: 'node', cluster: 'cluster' }, ...extra },
  });
}

/** Returns the common name of the certificate that a listener presents. */
export async function servedName(t: Teardown, port: number): Promise<string> {
  const socket = await secureConnection(t, port, { rejectUnauthorized: false });
  const name = String(socket.getPeerCertificate().subject.CN);
  socket.destroy();
  return name;
}

export async function waitForName(t: Teardown, port: number, name: string): Promise<void> {
  await waitFor(async () => (await servedName(t, port)) === name, { what: `the certificate ${name} on port ${port}` });
}
