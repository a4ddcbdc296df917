// Files that a listener or cluster names itself, with watched_directory: they are read again when they are moved into place. Envoy reads
// such files only once.

import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { Authority } from '../harness/certificates.js';
import { bootstrap, type Config, startBaton, tempDir, waitFor } from '../harness/index.js';
import { httpsGet, httpsListener, secureConnection, serverTls } from './contexts.js';
import { servedName, waitForName } from './discovered.js';
import { MANAGER, startHttps } from './https-proxy.js';

const root = await Authority.create();
const [first, second] = [await root.issue({ names: ['first.test'] }), await root.issue({ names: ['second.test'] })];
const ca = root.certificate;

/** Writes both versions of a pair, and returns what moves the link to the second into place. */
function linkedPair(directory: string): { readonly pair: Config; readonly renew: (to: string) => void } {
  for (const [version, { chain, key }] of Object.entries({
    v1: first,
    v2: second,
    half: { chain: second.chain, key: first.key },
  })) {
    mkdirSync(join(directory, version));
    writeFileSync(join(directory, version, 'server.pem'), chain);
    writeFileSync(join(directory, version, 'server.key'), key);
  }
  const current = join(directory, 'live');
  symlinkSync('v1', current);
  const pair = {
    certificate_chain: { filename: join(current, 'server.pem') },
    private_key: { filename: join(current, 'server.key') },
  };
  const renew = (to: string) => {
    symlinkSync(to, `${current}.next`);
    renameSync(`${current}.next`, current);
  };
  return { pair, renew };
}

function tlsWith(certificate: Config): Config {
  return serverTls([], { tls_certificates: [certificate] });
}

t.test('a certificate with watched_directory is renewed, and open connections stay', async (t) => {
  const directory = tempDir(t);
  const { pair, renew } = linkedPair(directory);
  const { port } = await startHttps(t, {}, tlsWith({ ...pair, watched_directory: { path: directory } }));
  const open = await secureConnection(t, port, { ca, servername: 'first.test' });
  t.equal(await servedName(t, port), 'first.test');
  renew('v2');
  await waitForName(t, port, 'second.test');
  open.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
  t.match(String(await new Promise((resolve) => open.once('data', resolve))), /^HTTP\/1\.1 200/);
});

t.test('a pair that does not fit changes nothing, and the next one is used', async (t) => {
  const directory = tempDir(t);
  const { pair, renew } = linkedPair(directory);
  const { baton, port } = await startHttps(t, {}, tlsWith({ ...pair, watched_directory: { path: directory } }));
  renew('half');
  await waitFor(() => baton.stderr.includes('the changed files of listener.main.ssl.* are not used'), {
    what: 'a refusal',
  });
  t.equal(await servedName(t, port), 'first.test');
  renew('v2');
  await waitForName(t, port, 'second.test');
});

t.test('each data source may name its directory', async (t) => {
  const directory = tempDir(t);
  const { pair, renew } = linkedPair(directory);
  const watched_directory = { path: directory };
  const sources = Object.entries(pair).map(([field, source]) => [field, { ...(source as Config), watched_directory }]);
  const { port } = await startHttps(t, {}, tlsWith(Object.fromEntries(sources)));
  renew('v2');
  await waitForName(t, port, 'second.test');
});

t.test('an authority with watched_directory is replaced', async (t) => {
  const directory = tempDir(t);
  const other = await Authority.create('Other');
  const file = join(directory, 'ca.pem');
  writeFileSync(file, ca);
  const validation_context = { trusted_ca: { filename: file }, watched_directory: { path: directory } };
  const { port } = await startHttps(
    t,
    {},
    serverTls([first], { validation_context }, { require_client_certificate: true }),
  );
  const [old, next] = [await root.issue(), await other.issue()];
  const isServed = ({ chain: cert, key }: { chain: string; key: string }) =>
    httpsGet(port, { ca, servername: 'first.test', cert, key }).then(
      () => true,
      () => false,
    );
  t.same([await isServed(old), await isServed(next)], [true, false]);
  writeFileSync(`${file}.next`, other.certificate);
  renameSync(`${file}.next`, file);
  await waitFor(() => isServed(next), { what: 'the other authority' });
  t.notOk(await isServed(old));
});

t.test('without watched_directory files are read once', async (t) => {
  const directory = tempDir(t);
  const { pair, renew } = linkedPair(directory);
  const watched = linkedPair(mkdirSync(join(directory, 'other'), { recursive: true })!);
  const listeners = [
    httpsListener('once', tlsWith(pair), MANAGER),
    httpsListener(
      'watched',
      tlsWith({ ...watched.pair, watched_directory: { path: join(directory, 'other') } }),
      MANAGER,
    ),
  ];
  const baton = await startBaton(t, { config: bootstrap({ listeners, clusters: [] }) });
  renew('v2');
  watched.renew('v2');
  await waitForName(t, await baton.listenerPort('watched'), 'second.test');
  t.equal(await servedName(t, await baton.listenerPort('once')), 'first.test');
});
