// Certificates are renewed while clients connect without end, in the ways in which certbot and Kubernetes do it: no handshake fails.

import { mkdirSync, renameSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from 'node:tls';
import t, { type Test } from 'tap';
import { Authority, type IssuedCertificate } from '../harness/certificates.js';
import { type Config, startBaton, tempDir, waitFor } from '../harness/index.js';
import { serverTls } from './contexts.js';
import { discoveringListener, moveIntoPlace, SecretFile } from './discovered.js';
import { startHttps } from './https-proxy.js';

const RENEWALS = 6;
const CLIENTS = 8;

const root = await Authority.create();
const versions = await Promise.all(
  Array.from({ length: RENEWALS + 1 }, (_, index) => root.issue({ names: [`v${index}.test`, 'server.test'] })),
);

/** Connects until it is stopped, with full handshakes. Collects the names of the certificates, and what has failed. */
class Clients {
  readonly names = new Set<string>();
  readonly failures: string[] = [];
  handshakes = 0;
  readonly #port: number;
  #isEnding = false;
  readonly #loops: Promise<void>[];

  constructor(port: number) {
    this.#port = port;
    this.#loops = Array.from({ length: CLIENTS }, () => this.#loop());
  }

  async stop(): Promise<void> {
    this.#isEnding = true;
    await Promise.all(this.#loops);
  }

  async #loop(): Promise<void> {
    while (!this.#isEnding) await this.#once();
  }

  #once(): Promise<void> {
    return new Promise((resolve) => {
      const socket = connect({ port: this.#port, host: '127.0.0.1', servername: 'server.test', ca: root.certificate });
      socket.once('secureConnect', () => {
        this.handshakes++;
        this.names.add(String(socket.getPeerCertificate().subject.CN));
        socket.destroy();
      });
      socket.once('error', ({ message }) => this.failures.push(message));
      socket.once('close', () => resolve());
    });
  }
}

/** Renews until each version has been served, and expects no failure. */
async function renewUnderLoad(t: Test, port: number, renew: (pair: IssuedCertificate, version: number) => void) {
  const clients = new Clients(port);
  const begun = performance.now();
  const served = (version: number) =>
    waitFor(() => clients.names.has(`v${version}.test`), { what: `version ${version}` });
  await served(0);
  for (let version = 1; version <= RENEWALS; version++) {
    renew(versions[version]!, version);
    await served(version);
  }
  await clients.stop();
  const perMinute = Math.round((clients.handshakes / (performance.now() - begun)) * 60_000);
  t.comment(`${clients.handshakes} handshakes, ${perMinute} a minute`);
  t.same(clients.failures, []);
}

/** Starts a listener whose secret names two files. */
async function startWithSecret(t: Test, files: Config): Promise<number> {
  const secret = new SecretFile(tempDir(t), 'server');
  secret.set({ tls_certificate: files });
  const baton = await startBaton(t, { config: discoveringListener(secret.config) });
  return baton.listenerPort('main');
}

function pairAt(directory: string): { readonly chain: string; readonly key: string; readonly certificate: Config } {
  const [chain, key] = [join(directory, 'fullchain.pem'), join(directory, 'privkey.pem')];
  return { chain, key, certificate: { certificate_chain: { filename: chain }, private_key: { filename: key } } };
}

t.test('files that are moved into place one after the other', async (t) => {
  const { certificate, chain, key } = pairAt(tempDir(t));
  writeFileSync(chain, versions[0]!.chain);
  writeFileSync(key, versions[0]!.key);
  const port = await startWithSecret(t, certificate);
  await renewUnderLoad(t, port, (pair) => {
    moveIntoPlace(chain, pair.chain);
    moveIntoPlace(key, pair.key);
  });
});

/** Certbot removes each link of its lineage, and then makes it again. */
t.test('links of a certbot lineage', async (t) => {
  const directory = tempDir(t);
  const live = join(directory, 'live');
  mkdirSync(live);
  const { certificate, chain, key } = pairAt(live);
  const write = (pair: IssuedCertificate, version: number) => {
    const archived = { [chain]: pair.chain, [key]: pair.key };
    for (const [link, text] of Object.entries(archived)) {
      const file = `${link.replace(live, directory)}.${version}`;
      writeFileSync(file, text);
      if (version > 0) unlinkSync(link);
      symlinkSync(file, link);
    }
  };
  write(versions[0]!, 0);
  const port = await startWithSecret(t, certificate);
  await renewUnderLoad(t, port, write);
});

t.test('a directory that is replaced, as Kubernetes does it, of a listener without secrets', async (t) => {
  const directory = tempDir(t);
  const current = join(directory, '..data');
  const write = (pair: IssuedCertificate, version: number) => {
    const next = join(directory, `..${version}`);
    mkdirSync(next);
    writeFileSync(join(next, 'fullchain.pem'), pair.chain);
    writeFileSync(join(next, 'privkey.pem'), pair.key);
    symlinkSync(next, `${current}_tmp`);
    renameSync(`${current}_tmp`, current);
  };
  write(versions[0]!, 0);
  const certificate = { ...pairAt(current).certificate, watched_directory: { path: directory } };
  const { port } = await startHttps(t, {}, serverTls([], { tls_certificates: [certificate] }));
  await renewUnderLoad(t, port, write);
});
