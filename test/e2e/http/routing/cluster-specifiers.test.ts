// Cluster specifier plugins: Lua scripts and matchers that choose the clusters of requests. The expected results are those of Envoy 1.40.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { besideEnvoy, type ProxyProgram } from '../../harness/envoy.js';
import {
  bootstrap,
  type Config,
  fileAccessLog,
  httpListener,
  httpRequest,
  startBaton,
  startUpstream,
  staticCluster,
  type Teardown,
  tempDir,
  waitFor,
} from '../../harness/index.js';
import { managerOf } from '../proxy.js';

const LUA = 'type.googleapis.com/envoy.extensions.router.cluster_specifiers.lua.v3.LuaConfig';
const MATCHER = 'type.googleapis.com/envoy.extensions.router.cluster_specifiers.matcher.v3.MatcherClusterSpecifier';
const ACTION = 'type.googleapis.com/envoy.extensions.router.cluster_specifiers.matcher.v3.ClusterAction';
const HEADER = 'type.googleapis.com/envoy.type.matcher.v3.HttpRequestHeaderMatchInput';

const SCRIPT = `
kept = nil
function envoy_on_route(handle)
  local want = handle:headers():get("want")
  if want == "nil" then return nil end
  if want == "nothing" then return end
  if want == "number" then return 5 end
  if want == "table" then return {} end
  if want == "error" then error("boom") end
  if want == "two" then return "a", "b" end
  if want == "path" then return handle:headers():get(":path") == "/lua/x?y" and "a" or "b" end
  if want == "several" then return handle:headers():get("m") == "1,2" and "a" or "b" end
  if want == "missing" then return handle:getCluster("missing") == nil and "a" or "b" end
  if want == "counts" then
    local cluster = handle:getCluster("a")
    return cluster:numConnections() .. "-" .. cluster:numRequests() .. "-" .. cluster:numPendingRequests()
  end
  if want == "add" then handle:headers():add("x", "y") return "a" end
  if want == "log" then handle:logInfo("hello") return "a" end
  if want == "no argument" then return handle:getCluster() and "a" or "a" end
  return want
end`;

const lua = (code: string, more: Config = { default_cluster: 'b' }): Config => ({
  name: 'lua',
  typed_config: { '@type': LUA, source_code: { inline_string: code }, ...more },
});

/** Requests whose header env has the value go to the cluster. */
const matcher = (name: string, clusters: Record<string, string>, otherwise?: string): Config => ({
  name,
  typed_config: {
    '@type': MATCHER,
    cluster_matcher: {
      matcher_tree: {
        input: { name: 'env', typed_config: { '@type': HEADER, header_name: 'env' } },
        exact_match_map: {
          map: Object.fromEntries(Object.entries(clusters).map(([value, cluster]) => [value, to(cluster)])),
        },
      },
      ...(otherwise && { on_no_match: to(otherwise) }),
    },
  },
});

const to = (cluster: string): Config => ({
  action: { name: 'cluster', typed_config: { '@type': ACTION, cluster } },
});

const upstreams: Record<string, number> = {};
for (const name of ['a', 'b']) {
  upstreams[name] = (await startUpstream(t, (request, answer) => void answer.end(`${name} ${request.url}`))).port;
}

interface Rig {
  readonly ask: (path: string, headers?: Record<string, string>) => Promise<string>;
  readonly logged: () => Promise<string[]>;
}

async function start(t: Teardown, program: ProxyProgram, routeConfig: Config, routes: Config[]): Promise<Rig> {
  const log = join(tempDir(t), 'log');
  const config = managerOf([], {
    access_log: [fileAccessLog(log, '%RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS% %UPSTREAM_CLUSTER%\n')],
    route_config: { name: 'r', ...routeConfig, virtual_hosts: [{ name: 'v', domains: ['*'], routes }] },
  });
  const baton = await startBaton(t, {
    ...program,
    args: ['--file-flush-interval-msec', '20'],
    config: bootstrap({
      listeners: [httpListener('http', 0, config)],
      clusters: Object.entries(upstreams).map(([name, port]) => staticCluster(name, port)),
    }),
  });
  const port = await baton.listenerPort('http');
  let sent = 0;
  return {
    async ask(path, headers = {}) {
      sent++;
      const { body, status } = await httpRequest(port, path, { headers });
      return `${status} ${body}`;
    },
    async logged() {
      const lines = () => readFileSync(log, 'utf8').split('\n').slice(0, -1);
      await waitFor(() => lines().length >= sent, { what: 'the lines of all requests' });
      return lines();
    },
  };
}

besideEnvoy('a Lua script chooses the cluster, and the default one applies when it fails', async (t, program) => {
  const route = { prefix_rewrite: '/to/', inline_cluster_specifier_plugin: { extension: lua(SCRIPT) } };
  const { ask } = await start(t, program, {}, [{ match: { prefix: '/lua/' }, route }]);
  const want = (value: string, path = '/lua/') => ask(path, { want: value, m: '1,2' });
  t.equal(await want('a'), '200 a /to/');
  t.equal(await want('b'), '200 b /to/');
  for (const failing of ['nil', 'nothing', 'table', 'error', 'add', 'no argument'])
    t.equal(await want(failing), '200 b /to/', failing);
  t.equal(await want('two'), '200 b /to/', 'the last value counts');
  t.equal(await want('path', '/lua/x?y'), '200 a /to/x?y');
  for (const fine of ['several', 'missing', 'log']) t.equal(await want(fine), '200 a /to/', fine);
  for (const unknown of ['number', 'counts', 'unknown']) t.equal(await want(unknown), '503 ', unknown);
  t.equal(await ask('/lua/'), '200 b /to/', 'a field that the request does not have is nil');
});

besideEnvoy('routes share a plugin by its name, and a matcher chooses', async (t, program) => {
  const { ask, logged } = await start(
    t,
    program,
    {
      cluster_specifier_plugins: [
        { extension: matcher('m', { one: 'a', two: 'b', three: 'missing' }) },
        // The first one of a name counts.
        { extension: matcher('m', { one: 'b' }) },
      ],
    },
    [
      {
        match: { prefix: '/404' },
        route: { cluster_specifier_plugin: 'm', cluster_not_found_response_code: 'NOT_FOUND' },
      },
      { match: { prefix: '/' }, route: { cluster_specifier_plugin: 'm' } },
    ],
  );
  t.equal(await ask('/', { env: 'one' }), '200 a /');
  t.equal(await ask('/404', { env: 'two' }), '200 b /404');
  t.equal(await ask('/', { env: 'three' }), '503 ');
  t.equal(await ask('/404', { env: 'four' }), '404 ');
  t.equal(await ask('/'), '503 ');
  t.strictSame(await logged(), [
    '200 - via_upstream a',
    '200 - via_upstream b',
    '503 NC cluster_not_found -',
    '404 NC cluster_not_found -',
    '503 NC cluster_not_found -',
  ]);
});

besideEnvoy('routes of an optional plugin that is unknown take no request', async (t, program) => {
  const unknown = {
    name: 'u',
    typed_config: {
      '@type': 'type.googleapis.com/xds.type.v3.TypedStruct',
      type_url: 'type.googleapis.com/acme.Unknown',
    },
  };
  const { ask } = await start(t, program, { cluster_specifier_plugins: [{ extension: unknown, is_optional: true }] }, [
    { match: { prefix: '/' }, route: { cluster_specifier_plugin: 'u' } },
    { match: { prefix: '/next' }, route: { cluster: 'a' } },
  ]);
  t.equal(await ask('/'), '404 ');
  t.equal(await ask('/next'), '200 a /next');
});

besideEnvoy('plugins that cannot be used are refused', async (t, program) => {
  const inline = (extension: Config) => [
    { match: { prefix: '/' }, route: { inline_cluster_specifier_plugin: { extension } } },
  ];
  const byName = [{ match: { prefix: '/' }, route: { cluster_specifier_plugin: 'm' } }];
  const cases: [what: string, routeConfig: Config, routes: Config[]][] = [
    ['no such plugin', {}, byName],
    ['no function', {}, inline(lua('function other() end'))],
    ['a syntax error', {}, inline(lua('function envoy_on_route('))],
    ['a script that fails', {}, inline(lua('error("boom")'))],
    ['no source', {}, inline({ name: 'lua', typed_config: { '@type': LUA } })],
    ['no cluster', {}, inline(matcher('m', { one: '' }))],
    ['an unknown plugin', {}, inline({ name: 'u', typed_config: { '@type': HEADER, header_name: 'x' } })],
  ];
  for (const [what, routeConfig, routes] of cases) {
    const manager = managerOf([], {
      route_config: { name: 'r', ...routeConfig, virtual_hosts: [{ name: 'v', domains: ['*'], routes }] },
    });
    const baton = await startBaton(t, {
      ...program,
      args: ['--mode', 'validate'],
      wait: 'spawned',
      config: bootstrap({ listeners: [httpListener('http', 0, manager)], clusters: [staticCluster('a', 1)] }),
    });
    t.not((await baton.exited).code, 0, what);
  }
});

t.test('a script that never ends is stopped, and other requests are served', async (t) => {
  const code = 'function envoy_on_route(h) if h:headers():get("x") then while true do end end coroutine.yield() end';
  const route = { inline_cluster_specifier_plugin: { extension: lua(code) } };
  const { ask } = await start(t, { command: undefined }, {}, [{ match: { prefix: '/' }, route }]);
  t.equal(await ask('/', { x: 'y' }), '200 b /');
  t.equal(await ask('/'), '200 b /', 'a script that yields has failed');
});

t.test('objects that a script keeps fail afterwards', async (t) => {
  const code = `function envoy_on_route(h)
    if kept then return kept:get("x") end
    kept = h:headers()
    return "a"
  end`;
  const route = { inline_cluster_specifier_plugin: { extension: lua(code) } };
  const { ask } = await start(t, { command: undefined }, {}, [{ match: { prefix: '/' }, route }]);
  t.equal(await ask('/', { x: 'a' }), '200 a /');
  const answers = await Promise.all(Array.from({ length: 8 }, () => ask('/', { x: 'a' })));
  t.ok(answers.includes('200 b /'), 'where the object was kept, the default cluster applies');
});
