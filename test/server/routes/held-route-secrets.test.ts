// Secrets of routes: workers lose those of former routes only after they have the new ones.

import t from 'tap';
import type { RouteConfiguration, SdsSecretConfig } from '../../../src/config/generated/api.js';
import { EXTENSIONS } from '../../../src/extensions/index.js';
import { ExtensionRegistry } from '../../../src/extensions/registry.js';
import { HeldRouteSecrets } from '../../../src/server/routes/held-route-secrets.js';
import { RouteSecrets } from '../../../src/server/routes/route-secrets.js';

const OAUTH = 'type.googleapis.com/envoy.extensions.filters.http.oauth2.v3.OAuth2PerRoute';

/** Returns routes of which one names the secret. */
function routesWith(name: string): RouteConfiguration {
  const credentials = { client_id: 'c', hmac_secret: { name } };
  const typed_per_filter_config = { login: { '@type': OAUTH, config: { credentials } } };
  return {
    virtual_hosts: [{ name: 'all', domains: ['*'], routes: [{ match: { prefix: '/' }, typed_per_filter_config }] }],
  } as RouteConfiguration;
}

/** Returns a holder, the names of the secrets in use, and what waits for the workers. */
function holding() {
  const inUse: string[] = [];
  const applied: (() => void)[] = [];
  const use = (configs: Iterable<SdsSecretConfig>) => {
    const names = Array.from(configs, ({ name = '' }) => name);
    inUse.push(...names);
    return { close: () => names.forEach((name) => void inUse.splice(inUse.indexOf(name), 1)) };
  };
  const secrets = new RouteSecrets(new ExtensionRegistry(EXTENSIONS), { problem: () => undefined, use });
  const held = new HeldRouteSecrets({ secrets, whenApplied: (callback) => void applied.push(callback) });
  return { applied, held, inUse };
}

t.test('the secrets of former routes are kept until all workers have the latest', async (t) => {
  const { applied, held, inUse } = holding();
  held.add([routesWith('a')]);
  held.keepLatest();
  held.add([routesWith('b')]);
  held.add([routesWith('c'), routesWith('d')]);
  t.same(inUse, ['a', 'b', 'c', 'd']);
  held.keepLatest();
  t.same(inUse, ['a', 'b', 'c', 'd'], 'workers may have the first routes yet');
  for (const callback of applied.splice(0)) callback();
  t.same(inUse, ['c', 'd']);
  held.add([{}]);
  held.keepLatest();
  for (const callback of applied.splice(0)) callback();
  t.same(inUse, []);
  held.add([routesWith('e')]);
  held.close();
  t.same(inUse, []);
});

t.test('the secrets of routes that are refused are removed', async (t) => {
  const { applied, held, inUse } = holding();
  held.add([routesWith('a')]);
  held.prepare([routesWith('refused')]);
  t.same(inUse, ['a', 'refused']);
  const use = held.prepare([routesWith('b')]);
  t.same(inUse, ['a', 'b'], 'those that were prepared before are not in use');
  use();
  held.keepLatest();
  for (const callback of applied.splice(0)) callback();
  t.same(inUse, ['b']);
  held.prepare([routesWith('c')]);
  held.close();
  t.same(inUse, []);
});
