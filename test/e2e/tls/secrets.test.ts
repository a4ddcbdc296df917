// Static secrets that TLS contexts name, and the combination of validation contexts.

import t from 'tap';
import { Authority } from '../harness/certificates.js';
import { besideEnvoy, type ProxyProgram } from '../harness/envoy.js';
import { bootstrap, type Config, startBaton, type Teardown } from '../harness/index.js';
import { httpsGet, httpsListener, serverTls, tlsCertificate, trustedCa } from './contexts.js';
import { MANAGER } from './https-proxy.js';

const root = await Authority.create();
const server = await root.issue({ names: ['server.test'] });
const [one, two] = [await root.issue({ names: ['one.test'] }), await root.issue({ names: ['two.test'] })];
const stranger = await (await Authority.create('Other Root')).issue({ names: ['one.test'] });
const ca = root.certificate;
const exactly = (name: string) => ({
  match_typed_subject_alt_names: [{ san_type: 'DNS', matcher: { exact: name } }],
});

/** Starts a listener `main` with the context `common`, without waiting for it. */
function start(
  t: Teardown,
  program: ProxyProgram,
  common: Config,
  secrets: Config[],
  wait: 'live' | 'spawned',
  args: string[] = [],
) {
  const listener = httpsListener('main', serverTls([], common, { require_client_certificate: true }), MANAGER);
  const config = bootstrap({ listeners: [], clusters: [] });
  return startBaton(t, {
    ...program,
    ...{ wait, args },
    config: { ...config, static_resources: { listeners: [listener], secrets } },
  });
}

const CERTIFICATE = { name: 'certificate', tls_certificate: tlsCertificate(server) };
const tls_certificate_sds_secret_configs = [{ name: 'certificate' }];

besideEnvoy('a combined context accepts the names of the default and of the secret', async (t, program) => {
  const common = {
    tls_certificate_sds_secret_configs,
    combined_validation_context: {
      default_validation_context: exactly('one.test'),
      validation_context_sds_secret_config: { name: 'rules' },
    },
  };
  const rules = { name: 'rules', validation_context: { ...trustedCa(root), ...exactly('two.test') } };
  const baton = await start(t, program, common, [CERTIFICATE, rules], 'live');
  const port = await baton.listenerPort('main');
  for (const { chain: cert, key } of [one, two]) t.equal((await httpsGet(port, { ca, cert, key })).status, 200);
  await t.rejects(httpsGet(port, { ca, cert: server.chain, key: server.key }), 'another name');
  await t.rejects(httpsGet(port, { ca, cert: stranger.chain, key: stranger.key }), 'a name that no CA vouches for');
});

for (const [what, common, rules] of [
  ['a secret', { validation_context_sds_secret_config: { name: 'rules' } }, exactly('one.test')],
  [
    'a combined context',
    {
      combined_validation_context: {
        default_validation_context: exactly('one.test'),
        validation_context_sds_secret_config: { name: 'rules' },
      },
    },
    { allow_expired_certificate: true },
  ],
] as [string, Config, Config][]) {
  besideEnvoy(`${what} with names and without a CA is refused: anybody can have any name`, async (t, program) => {
    const secret = { name: 'rules', validation_context: rules };
    const all = { tls_certificate_sds_secret_configs, ...common };
    const baton = await start(t, program, all, [CERTIFICATE, secret], 'spawned');
    t.equal((await baton.exited).code, 1);
    t.match(baton.stderr, /without trusted[ _]ca/i);
  });
}

t.test('a secret without the part that a context needs is refused', async (t) => {
  const common = { tls_certificate_sds_secret_configs, validation_context_sds_secret_config: { name: 'certificate' } };
  const baton = await start(t, { command: undefined }, common, [CERTIFICATE], 'spawned');
  t.equal((await baton.exited).code, 1);
  t.match(baton.stderr, /the secret 'certificate' has no validation_context/);
});

besideEnvoy('--mode validate refuses contexts that cannot be made of the static secrets', async (t, program) => {
  const naming = (name: string) => ({ validation_context_sds_secret_config: { name } });
  const rules = { name: 'rules', validation_context: exactly('one.test') };
  const cases: [Config, Baton: RegExp, Envoy: RegExp][] = [
    [naming('rulse'), /common_tls_context: static_resources\.secrets has no 'rulse'; did you mean 'rules'/, /rulse/],
    [naming('rules'), /without trusted_ca/, /without trusted[ _]ca/i],
    [naming('certificate'), /the secret 'certificate' has no validation_context/, /Unknown static .*certificate/],
  ];
  for (const [common, ofBaton, ofEnvoy] of cases) {
    const all = { tls_certificate_sds_secret_configs, ...common };
    const args = ['--mode', 'validate'];
    const process = await start(t, program, all, [CERTIFICATE, rules], 'spawned', args);
    t.equal((await process.exited).code, 1);
    t.match(process.stderr, program.command === undefined ? ofBaton : ofEnvoy);
  }
});
