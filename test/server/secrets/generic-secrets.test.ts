// Generic secrets on the primary: what workers get, and which secrets cannot be used.

import { rmSync, writeFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import type { SdsSecretConfig, Secret } from '../../../src/config/generated/api.js';
import { GenericSecrets } from '../../../src/server/secrets/generic-secrets.js';
import type { SecretUser } from '../../../src/tls/secrets/secret-discovery.js';

const source: SdsSecretConfig = { name: 's', sds_config: { ads: {} } };
const inline = (name: string, text: string): Secret => ({
  name,
  generic_secret: { secret: { inline_string: text } },
});

function start(secrets: readonly Secret[]) {
  const published: Record<string, string>[] = [];
  const users: SecretUser[] = [];
  const all = new GenericSecrets(
    {
      use: (_config, _kind, user) => {
        users.push(user);
        return { secret: undefined, isSettled: false, close: () => void users.splice(users.indexOf(user), 1) };
      },
    },
    {
      workers: 1,
      publish: (state) => void published.push(Object.fromEntries(state as Map<string, string>)),
      onMessage: undefined,
      onWorkerDeath: undefined,
    },
    secrets,
  );
  return { all, published, users };
}

t.test('workers get the secrets in use, in one message', async (t) => {
  const { all, published } = start([inline('a', '1'), inline('b', '2'), inline('c', '3')]);
  const first = all.use([{ name: 'a' }, { name: 'b' }, { name: 'a' }]);
  t.same(published, [{ a: '1', b: '2' }]);
  const second = all.use([{ name: 'b' }]);
  t.equal(published.length, 1);
  first.close();
  t.same(published.at(-1), { b: '2' });
  first.close();
  second.close();
  t.same(published.slice(2), [{}]);
});

t.test('a file of the bootstrap is read once', async (t) => {
  const filename = `${t.testdir({ secret: 'first' })}/secret`;
  const { all, published } = start([{ name: 'f', generic_secret: { secret: { filename } } }]);
  t.equal(all.problem({ name: 'f' }), undefined);
  rmSync(filename);
  const part = all.use([{ name: 'f' }]);
  t.same(published, [{ f: 'first' }]);
  part.close();
  writeFileSync(filename, 'second');
  all.use([{ name: 'f' }]).close();
  t.same(published[2], { f: 'first' });
});

t.test('secrets that cannot be used', async (t: Test) => {
  const secrets = [
    { name: 'file', generic_secret: { secret: { filename: '/nonexistent/secret' } } },
    { name: 'variable', generic_secret: { secret: { environment_variable: 'BATON_NO_SUCH_VARIABLE' } } },
    { name: 'other', tls_certificate: {} },
  ];
  const { all, published, users } = start([...secrets, inline('a', '1')]);
  for (const [name, message] of [
    ['file', /unable to read file/],
    ['variable', /BATON_NO_SUCH_VARIABLE is not set/],
    ['other', /no generic_secret 'other'/],
    ['nope', /no generic_secret 'nope'/],
  ] as const) {
    t.match(all.problem({ name }), message);
    t.throws(() => all.use([{ name: 'a' }, source, { name }]), message);
    t.same(published.at(-1), {}, 'the others are released');
    t.equal(users.length, 0);
  }
  const part = all.use([source]);
  const user = users[0]!;
  t.throws(() => user.prepare(secrets[1]!), /BATON_NO_SUCH_VARIABLE is not set/);
  user.prepare(inline('s', 'x')).use();
  t.same(Object.values(published.at(-1)!), ['x']);
  part.close();
  t.equal(users.length, 0);
});
