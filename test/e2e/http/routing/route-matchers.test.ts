// VirtualHost.matcher: the routes that a matcher selects. The expected results are those of Envoy 1.40.

import t from 'tap';
import { besideEnvoy, type ProxyProgram } from '../../harness/envoy.js';
import {
  bootstrap,
  type Config,
  httpListener,
  httpRequest,
  ROUTER_FILTER,
  startBaton,
  startUpstream,
  staticCluster,
  type Teardown,
} from '../../harness/index.js';
import { managerOf } from '../proxy.js';

const ROUTE = 'type.googleapis.com/envoy.config.route.v3.Route';
const LIST = 'type.googleapis.com/envoy.config.route.v3.RouteList';
const input = (header_name: string): Config => ({
  name: 'input',
  typed_config: { '@type': 'type.googleapis.com/envoy.type.matcher.v3.HttpRequestHeaderMatchInput', header_name },
});
const answers = (prefix: string, text: string): Config => ({
  match: { prefix },
  direct_response: { status: 200, body: { inline_string: text } },
});
const route = (config: Config): Config => ({ action: { name: 'route', typed_config: { '@type': ROUTE, ...config } } });
const list = (...routes: Config[]): Config => ({
  action: { name: 'routes', typed_config: { '@type': LIST, routes } },
});
const byPath = (map: Config): Config => ({
  matcher: { matcher_tree: { input: input(':path'), prefix_match_map: { map } } },
});
const adds = { '@type': 'type.googleapis.com/envoy.extensions.filters.http.header_mutation.v3.HeaderMutationPerRoute' };

const upstream = await startUpstream(t, (request, answer) => void answer.end(`host ${request.url}`));

async function start(
  t: Teardown,
  program: ProxyProgram,
  host: Config,
): Promise<(what: string, path: string) => Promise<string>> {
  const config = managerOf([], {
    route_config: { name: 'r', virtual_hosts: [{ name: 'v', domains: ['*'], ...host }] },
    http_filters: [
      {
        name: 'mutation',
        typed_config: { '@type': adds['@type'].replace('PerRoute', ''), mutations: {} },
      },
      ROUTER_FILTER,
    ],
  });
  const baton = await startBaton(t, {
    ...program,
    config: bootstrap({
      listeners: [httpListener('http', 0, config)],
      clusters: [staticCluster('host', upstream.port)],
    }),
  });
  const port = await baton.listenerPort('http');
  return async (what, path) => {
    const { body, headers, status } = await httpRequest(port, path, { headers: { do: what } });
    return [status, headers['x-filter'], body].filter((part) => part !== undefined && part !== '').join(' ');
  };
}

besideEnvoy('a matcher selects the routes of a request', async (t, program) => {
  const ask = await start(t, program, {
    matcher: {
      matcher_tree: {
        input: input('do'),
        exact_match_map: {
          map: {
            one: route(answers('/', 'one')),
            narrow: route(answers('/narrow', 'narrow')),
            list: list(answers('/a', 'a'), answers('/b', 'b')),
            deep: byPath({ '/p': route(answers('/p/q', 'deep')), '/': route(answers('/', 'shallow')) }),
            host: route({
              match: { prefix: '/' },
              route: { cluster: 'host', prefix_rewrite: '/to/' },
              typed_per_filter_config: {
                mutation: {
                  ...adds,
                  mutations: { response_mutations: [{ append: { header: { key: 'x-filter', value: 'yes' } } }] },
                },
              },
            }),
          },
        },
      },
      on_no_match: route({ match: { prefix: '/else' }, redirect: { path_redirect: '/x' } }),
    },
  });
  t.equal(await ask('one', '/'), '200 one');
  t.equal(await ask('narrow', '/'), '404', 'the route has a match too');
  t.equal(await ask('narrow', '/narrow'), '200 narrow');
  t.equal(await ask('list', '/a'), '200 a');
  t.equal(await ask('list', '/b'), '200 b');
  t.equal(await ask('list', '/c'), '404');
  t.equal(await ask('deep', '/p/q'), '200 deep');
  t.equal(await ask('deep', '/p/x'), '404', 'the longest prefix decides');
  t.equal(await ask('deep', '/z'), '200 shallow');
  t.equal(await ask('host', '/path'), '200 yes host /to/path');
  t.equal(await ask('nothing', '/else'), '301');
  t.equal(await ask('nothing', '/'), '404');
});

besideEnvoy('configurations that cannot be used are refused', async (t, program) => {
  const cases: [what: string, host: Config][] = [
    ['matcher and routes', { routes: [answers('/', 'a')], matcher: { on_no_match: route(answers('/', 'b')) } }],
    ['a route without an action', { matcher: { on_no_match: route({ match: { prefix: '/' } }) } }],
    [
      'another action',
      {
        matcher: {
          on_no_match: {
            action: {
              name: 'cluster',
              typed_config: {
                '@type': 'type.googleapis.com/envoy.extensions.router.cluster_specifiers.matcher.v3.ClusterAction',
                cluster: 'host',
              },
            },
          },
        },
      },
    ],
  ];
  for (const [what, host] of cases) {
    const manager = managerOf([], {
      route_config: { name: 'r', virtual_hosts: [{ name: 'v', domains: ['*'], ...host }] },
    });
    const baton = await startBaton(t, {
      ...program,
      args: ['--mode', 'validate'],
      wait: 'spawned',
      config: bootstrap({ listeners: [httpListener('http', 0, manager)], clusters: [staticCluster('host', 1)] }),
    });
    t.not((await baton.exited).code, 0, what);
  }
});

t.test('clusters of such routes must exist, as those of other routes', async (t) => {
  const missing = list({ match: { prefix: '/' }, route: { cluster: 'missing' } });
  const host = { name: 'v', domains: ['*'], matcher: { on_no_match: missing } };
  const baton = await startBaton(t, {
    args: ['--mode', 'validate'],
    wait: 'spawned',
    config: bootstrap({
      listeners: [httpListener('http', 0, managerOf([], { route_config: { name: 'r', virtual_hosts: [host] } }))],
      clusters: [staticCluster('host', 1)],
    }),
  });
  t.equal((await baton.exited).code, 1);
  t.match(baton.stderr, /matcher\.on_no_match\.action\.typed_config\.routes\[0\]\.route\.cluster.*missing/);
});
