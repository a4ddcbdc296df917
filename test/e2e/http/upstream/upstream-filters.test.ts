// Upstream HTTP filters: which tries pass them, what they see and change, and how their answers are counted.

import t, { type Test } from 'tap';
import { ResourceFile } from '../../dynamic/resource-file.js';
import { besideEnvoy, type ProxyProgram } from '../../harness/envoy.js';
import {
  bootstrap,
  type Config,
  type EchoedRequest,
  fileAccessLog,
  httpListener,
  httpRequest,
  logLines,
  ROUTER_FILTER,
  routeAllTo,
  startBaton,
  startEchoUpstream,
  startUpstream,
  staticCluster,
  tempDir,
  waitFor,
} from '../../harness/index.js';

const HTTP = 'type.googleapis.com/envoy.extensions.filters.http';
const OPTIONS = 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions';
const CODEC = {
  name: 'envoy.filters.http.upstream_codec',
  typed_config: { '@type': `${HTTP}.upstream_codec.v3.UpstreamCodec` },
};

/** Adds a field to requests and one to responses. */
function adds(field: string, value: string, name = 'mutation'): Config {
  const append = { header: { key: field, value }, append_action: 'APPEND_IF_EXISTS_OR_ADD' };
  const mutations = { request_mutations: [{ append }], response_mutations: [{ append }] };
  return { name, typed_config: { '@type': `${HTTP}.header_mutation.v3.HeaderMutation`, mutations } };
}

const lua = (code: string): Config => ({
  name: 'lua',
  typed_config: { '@type': `${HTTP}.lua.v3.Lua`, default_source_code: { inline_string: code } },
});
const buffer = (max_request_bytes: number): Config => ({
  name: 'buffer',
  typed_config: { '@type': `${HTTP}.buffer.v3.Buffer`, max_request_bytes },
});
const denies = (prefix: string): Config => ({
  name: 'rbac',
  typed_config: {
    '@type': `${HTTP}.rbac.v3.RBAC`,
    rules: {
      action: 'DENY',
      policies: {
        closed: { permissions: [{ url_path: { path: { prefix } } }], principals: [{ any: true }] },
      },
    },
  },
});

function withFilters(name: string, port: number, http_filters: Config[] | undefined): Config {
  if (http_filters === undefined) return staticCluster(name, port);
  const options = { '@type': `type.googleapis.com/${OPTIONS}`, explicit_http_config: { http_protocol_options: {} } };
  return {
    ...staticCluster(name, port),
    typed_extension_protocol_options: { [OPTIONS]: { ...options, http_filters } },
  };
}

interface Clusters {
  readonly [name: string]: Config[] | undefined;
}

/** Starts a proxy whose routes lead to clusters of the same name, each with its filters. The host answers /500 with 500. */
async function start(
  t: Test,
  program: ProxyProgram,
  clusters: Clusters,
  { routes = {}, router = {} }: { routes?: Record<string, Config>; router?: Config } = {},
) {
  const log = `${tempDir(t)}/log`;
  const host = await startUpstream(t, (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { headers, method, url = '' } = request;
      response.statusCode = url.endsWith('/500') ? 500 : 200;
      response.end(JSON.stringify({ body: Buffer.concat(chunks).toString(), headers, method, url }));
    });
  });
  const routeTo = (cluster: string) => {
    const { action, ...more } = (routes[cluster] ?? {}) as { action?: Config };
    return { match: { prefix: `/${cluster}` }, route: { cluster, ...action }, ...more };
  };
  const listener = httpListener('in', 0, {
    stat_prefix: 'in',
    access_log: [
      fileAccessLog(log, '%RESPONSE_CODE% %RESPONSE_CODE_DETAILS% %RESPONSE_FLAGS% %UPSTREAM_REQUEST_ATTEMPT_COUNT%\n'),
    ],
    route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes: Object.keys(clusters).map(routeTo) }] },
    http_filters: [{ name: 'router', typed_config: { '@type': `${HTTP}.router.v3.Router`, ...router } }],
  });
  const config = bootstrap({
    listeners: [listener],
    clusters: Object.entries(clusters).map(([name, filters]) =>
      withFilters(name, name === 'gone' ? 1 : host.port, filters),
    ),
  });
  const args = ['--file-flush-interval-msec', '50', '--concurrency', '1'];
  const baton = await startBaton(t, { ...program, args, config });
  const port = await baton.listenerPort('in');
  const lines = (count: number) =>
    waitFor(() => (logLines(log).length === count ? logLines(log) : undefined), { what: `${count} lines` });
  const on = (path: string, body?: string) =>
    httpRequest(port, path, body === undefined ? {} : { method: 'POST', body });
  const seen = async (path: string, body?: string) => JSON.parse((await on(path, body)).body) as EchoedRequest;
  return { baton, host, lines, on, seen };
}

besideEnvoy('a cluster has its filters, and other clusters those of the router', async (t, program) => {
  const { on, seen } = await start(
    t,
    program,
    { own: [adds('x-from', 'cluster'), CODEC], none: [CODEC], other: undefined },
    { router: { upstream_http_filters: [adds('x-from', 'router'), CODEC] } },
  );
  t.equal((await seen('/own')).headers['x-from'], 'cluster');
  t.equal((await on('/own')).headers['x-from'], 'cluster');
  t.equal((await seen('/none')).headers['x-from'], undefined, 'the codec alone replaces the filters of the router');
  t.equal((await seen('/other')).headers['x-from'], 'router');
});

besideEnvoy(
  'the filters run for each try, know its host, and come before the decision to retry',
  async (t, program) => {
    const { baton, host, on } = await start(
      t,
      program,
      {
        tries: [adds('x-try', '%UPSTREAM_HOST% %UPSTREAM_CLUSTER%'), CODEC],
        changed: [lua('function envoy_on_response(handle) handle:headers():replace(":status", "503") end'), CODEC],
      },
      {
        routes: {
          tries: { action: { retry_policy: { retry_on: '5xx', num_retries: 2 } } },
          changed: {
            action: {
              retry_policy: { retry_on: 'retriable-status-codes', retriable_status_codes: [503], num_retries: 1 },
            },
          },
        },
      },
    );
    const answer = await on('/tries/500');
    const each = `127.0.0.1:${host.port} tries`;
    const { headers } = JSON.parse(answer.body) as EchoedRequest;
    t.equal(headers['x-try'], `${each}, ${each}, ${each}`, 'as in Envoy, the tries share the head of the request');
    t.equal(answer.headers['x-try'], each);
    t.equal((await on('/changed/500')).status, 503);
    await baton.waitForStats({ 'cluster.tries.upstream_rq_retry': 2, 'cluster.changed.upstream_rq_retry': 1 });
    await baton.waitForStats({ 'cluster.changed.upstream_rq_503': 1, 'cluster.changed.retry.upstream_rq_503': 1 });
  },
);

besideEnvoy(
  'an answer of a filter ends the request: it is not retried, and no response of the cluster',
  async (t, program) => {
    const retry_policy = {
      retry_on: 'retriable-status-codes',
      retriable_status_codes: [403, 413, 418],
      num_retries: 2,
    };
    const tea = 'function envoy_on_request(handle) handle:respond({[":status"] = "418"}, "tea") end';
    const action = { retry_policy };
    const { baton, lines, on, seen } = await start(
      t,
      program,
      {
        large: [buffer(5), CODEC],
        closed: [denies('/closed/no'), CODEC],
        tea: [lua(tea), CODEC],
        gone: [denies('/'), CODEC],
      },
      { routes: { large: { action }, closed: { action }, tea: { action }, gone: { action } } },
    );
    t.match(await on('/large', 'x'.repeat(100)), { status: 413, body: 'Payload Too Large' });
    t.equal((await seen('/large', 'small')).body, 'small');
    t.match(await on('/closed/no'), { status: 403, body: 'RBAC: access denied' });
    t.equal((await on('/closed')).status, 200);
    t.match(await on('/tea'), { status: 418, body: 'tea' });
    t.equal((await on('/gone')).status, 403, 'no connection is needed');
    t.strictSame(await lines(6), [
      '413 request_payload_too_large - 1',
      '200 via_upstream - 1',
      '403 rbac_access_denied_matched_policy[closed] - 1',
      '200 via_upstream - 1',
      '418 lua_response - 1',
      '403 rbac_access_denied_matched_policy[closed] - 1',
    ]);
    await baton.waitForStats({
      'cluster.closed.rbac.denied': 1,
      'cluster.closed.rbac.allowed': 1,
      'cluster.closed.upstream_rq_total': 1,
      'cluster.closed.upstream_rq_completed': 1,
      'cluster.closed.upstream_rq_retry': 0,
      'cluster.gone.upstream_cx_total': 0,
      'cluster.tea.lua.executions': 1,
      'cluster.tea.upstream_rq_completed': 0,
      'cluster.large.upstream_rq_completed': 1,
      'cluster.large.upstream_rq_active': 0,
      'http.in.downstream_rq_too_large': 0,
    });
  },
);

besideEnvoy('routes configure, enable and disable the filters by name', async (t, program) => {
  const FILTER_CONFIG = 'type.googleapis.com/envoy.config.route.v3.FilterConfig';
  const off = [{ ...adds('x-from', 'cluster'), disabled: true }, CODEC];
  const on = [adds('x-from', 'cluster'), CODEC];
  const own = {
    '@type': `${HTTP}.header_mutation.v3.HeaderMutationPerRoute`,
    mutations: { request_mutations: [{ append: { header: { key: 'x-from', value: 'route' } } }] },
  };
  const routed = (mutation: Config) => ({ typed_per_filter_config: { mutation } });
  const { seen } = await start(
    t,
    program,
    { plain: off, enabled: off, both: off, more: on, disabled: on },
    {
      routes: {
        enabled: routed({ '@type': FILTER_CONFIG, config: {} }),
        both: routed(own),
        more: routed(own),
        disabled: routed({ '@type': FILTER_CONFIG, disabled: true }),
      },
    },
  );
  const from = async (path: string) => (await seen(path)).headers['x-from'];
  t.equal(await from('/plain'), undefined);
  t.equal(await from('/enabled'), 'cluster');
  t.equal(await from('/both'), 'cluster, route');
  t.equal(await from('/more'), 'cluster, route');
  t.equal(await from('/disabled'), undefined);
});

besideEnvoy('filters read and replace whole messages', async (t, program) => {
  const code = `function envoy_on_request(handle)
    handle:body():setBytes("<" .. handle:body():getBytes(0, handle:body():length()) .. ">")
  end
  function envoy_on_response(handle)
    local length = handle:body():length()
    handle:headers():replace("x-length", tostring(length))
  end`;
  const { on } = await start(t, program, { whole: [lua(code), CODEC] });
  const body = 'b'.repeat(5000);
  const answer = await on('/whole', body);
  t.equal((JSON.parse(answer.body) as EchoedRequest).body, `<${body}>`);
  t.equal(answer.headers['x-length'], String(answer.body.length));
});

besideEnvoy('requests to an aggregate pass its filters instead of those of its clusters', async (t, program) => {
  const host = await startEchoUpstream(t);
  const aggregate = (name: string, http_filters?: Config[]) => {
    const { load_assignment: _, type: __, ...options } = withFilters(name, 1, http_filters);
    const cluster_type = {
      name: 'envoy.clusters.aggregate',
      typed_config: {
        '@type': 'type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig',
        clusters: ['one'],
      },
    };
    return { ...options, lb_policy: 'CLUSTER_PROVIDED', cluster_type };
  };
  const names = ['plain', 'filtered', 'one'];
  const baton = await startBaton(t, {
    ...program,
    config: bootstrap({
      listeners: [
        httpListener('in', 0, {
          route_config: {
            virtual_hosts: [
              {
                name: 'all',
                domains: ['*'],
                routes: names.map((cluster) => ({ match: { prefix: `/${cluster}` }, route: { cluster } })),
              },
            ],
          },
          http_filters: [ROUTER_FILTER],
        }),
      ],
      clusters: [
        aggregate('plain'),
        aggregate('filtered', [adds('x-from', 'aggregate'), CODEC]),
        withFilters('one', host.port, [adds('x-from', 'one'), CODEC]),
      ],
    }),
  });
  const port = await baton.listenerPort('in');
  const seen = await Promise.all(
    names.map(async (name) => {
      const { headers } = JSON.parse((await httpRequest(port, `/${name}`)).body) as EchoedRequest;
      return headers['x-from'];
    }),
  );
  t.strictSame(seen, [undefined, 'aggregate', 'one']);
});

t.test('a discovered cluster changes its filters under traffic', async (t) => {
  const host = await startEchoUpstream(t);
  const clusters = new ResourceFile(tempDir(t), 'clusters');
  const write = (value: string) =>
    clusters.write(
      'envoy.config.cluster.v3.Cluster',
      withFilters('found', host.port, [adds('x-from', value), denies('/no'), CODEC]),
    );
  write('first');
  const baton = await startBaton(t, {
    config: bootstrap({
      listeners: [
        httpListener('in', 0, {
          route_config: { ...routeAllTo('found'), validate_clusters: false },
          http_filters: [ROUTER_FILTER],
        }),
      ],
      clusters: [],
      extra: { dynamic_resources: { cds_config: clusters.source } },
    }),
  });
  const port = await baton.listenerPort('in');
  const from = async () => (JSON.parse((await httpRequest(port, '/')).body) as EchoedRequest).headers['x-from'];
  t.equal(await from(), 'first');
  t.equal((await httpRequest(port, '/no')).status, 403);
  for (const value of ['second', 'third']) {
    write(value);
    await waitFor(async () => (await from()) === value, { what: `the filters of the version '${value}'` });
  }
  t.equal((await httpRequest(port, '/no')).status, 403);
  await baton.waitForStats({ 'cluster.found.rbac.denied': 2 });
});

t.test('other filters and other ends of the list are refused by name', async (t) => {
  const refusal = async (filters: Config[]) => {
    const config = bootstrap({ listeners: [], clusters: [withFilters('c', 1, filters)] });
    const baton = await startBaton(t, { args: ['--mode', 'validate'], config, wait: 'spawned' });
    await baton.exited;
    return baton.stderr;
  };
  const cors = { name: 'x', typed_config: { '@type': `${HTTP}.cors.v3.Cors` } };
  const [noCodec, twice, other, discovered] = await Promise.all([
    refusal([adds('a', 'b')]),
    refusal([CODEC, CODEC]),
    refusal([cors, CODEC]),
    refusal([{ name: 'x', config_discovery: { config_source: { ads: {} }, type_urls: [] } }, CODEC]),
  ]);
  t.match(noCodec, 'The codec filter is the only valid terminal upstream HTTP filter');
  t.match(twice, 'must be the last filter');
  t.match(other, /Didn't find a registered implementation for 'x' with type URL: '.*cors.*upstream filters can be/);
  t.match(discovered, 'configurations of upstream filters are not discovered');
});
