// RouteMatch.cookies. The expected results are those of Envoy 1.40.

import { besideEnvoy } from '../../harness/envoy.js';
import { bootstrap, type Config, httpListener, httpRequest, startBaton } from '../../harness/index.js';
import { managerOf } from '../proxy.js';

const matches = (prefix: string, ...cookies: Config[]): Config => ({
  match: { prefix, cookies },
  direct_response: { status: 203 },
});
const cookie = (string_match: Config, rest: Config = {}): Config => ({ name: 'role', string_match, ...rest });

const ROUTES = [
  matches('/exact', cookie({ exact: 'admin' })),
  matches('/not', cookie({ exact: 'admin' }, { invert_match: true })),
  matches('/both', cookie({ exact: 'admin' }), { name: 'team', string_match: { prefix: 'a' } }),
  matches('/empty', cookie({ exact: '' })),
  matches('/regex', cookie({ safe_regex: { regex: 'ad.*' } })),
  { match: { prefix: '/' }, direct_response: { status: 202 } },
];

/** Path, the cookie fields of the request, and whether the route matches. */
const CASES: ReadonlyArray<readonly [path: string, cookies: readonly string[], isMatch: boolean]> = [
  ['/exact', [], false],
  ['/exact', ['role=admin'], true],
  ['/exact', ['x=y;role=admin'], true],
  ['/exact', ['role=admin; x=y'], true],
  ['/exact', ['role="admin"'], true],
  ['/exact', ['role=user; role=admin'], false],
  ['/exact', ['role=admin; role=user'], true],
  ['/exact', ['role=user', 'role=admin'], false],
  ['/exact', ['role=admin', 'role=user'], true],
  ['/exact', ['x=y', 'role=admin'], true],
  ['/exact', ['role = admin'], false],
  ['/exact', ['role=admin=1'], false],
  ['/exact', ['Role=admin'], false],
  ['/exact', ['arole=admin'], false],
  ['/exact', ['role'], false],
  ['/exact', ['x=y,role=admin'], false],
  ['/not', [], true],
  ['/not', ['x=y'], true],
  ['/not', ['role=admin'], false],
  ['/not', ['role=user'], true],
  ['/not', ['role=user; role=admin'], true],
  ['/not', ['role=admin; role=user'], false],
  ['/both', ['role=admin; team=ab'], true],
  ['/both', ['team=a; role=admin'], true],
  ['/both', ['role=admin'], false],
  ['/both', ['role=admin; team=ba'], false],
  ['/empty', [], false],
  ['/empty', ['role='], true],
  ['/empty', ['role=""'], true],
  ['/empty', ['role'], false],
  ['/regex', ['role=admin'], true],
  ['/regex', ['role=my-admin'], false],
];

besideEnvoy('routes match cookies', async (t, program) => {
  const config = managerOf([], { route_config: { virtual_hosts: [{ name: 'v', domains: ['*'], routes: ROUTES }] } });
  const baton = await startBaton(t, {
    ...program,
    config: bootstrap({ clusters: [], listeners: [httpListener('http', 0, config)] }),
  });
  const port = await baton.listenerPort('http');
  for (const [path, cookies, isMatch] of CASES) {
    const { status } = await httpRequest(port, path, { headers: { cookie: [...cookies] } });
    t.equal(status, isMatch ? 203 : 202, `${path} ${JSON.stringify(cookies)}`);
  }
});
