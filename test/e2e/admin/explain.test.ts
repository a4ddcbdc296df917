// GET /explain says where a request would go, and requests go there.

import t from 'tap';
import {
  bootstrap,
  type Config,
  httpListener,
  httpRequest,
  ROUTER_FILTER,
  startBaton,
  startEchoUpstream,
  staticCluster,
} from '../harness/index.js';
import { answering } from '../http/proxy.js';

const ROUTES = {
  name: 'main',
  virtual_hosts: [
    {
      name: 'shop',
      domains: ['shop.example', '*.shop.example'],
      routes: [
        {
          name: 'admin',
          match: { prefix: '/admin', headers: [{ name: 'x-role', string_match: { exact: 'admin' } }] },
          route: { cluster: 'web', prefix_rewrite: '/internal', host_rewrite_literal: 'admin.internal' },
          typed_per_filter_config: {
            buffer: { '@type': 'type.googleapis.com/envoy.config.route.v3.FilterConfig', disabled: true },
          },
        },
        { match: { prefix: '/old' }, redirect: { path_redirect: '/new' } },
        { match: { path: '/ok' }, direct_response: { status: 204 } },
        {
          name: 'canary',
          match: { prefix: '/split' },
          route: {
            weighted_clusters: {
              clusters: [
                { name: 'web', weight: 90 },
                { name: 'gone', weight: 10 },
              ],
            },
          },
        },
      ],
    },
  ],
};
const BUFFER = {
  name: 'buffer',
  typed_config: {
    '@type': 'type.googleapis.com/envoy.extensions.filters.http.buffer.v3.Buffer',
    max_request_bytes: 1000,
  },
};

t.test('it follows a request from the listener to the hosts', async (t) => {
  const upstream = await startEchoUpstream(t);
  const web = httpListener('web', 0, {
    route_config: { ...ROUTES, validate_clusters: false },
    http_filters: [BUFFER, ROUTER_FILTER],
  });
  const config = bootstrap({ listeners: [web], clusters: [staticCluster('web', [upstream.port])] });
  const baton = await startBaton(t, { config });
  const explain = async (query: string, status = 200): Promise<Config> => {
    const answer = await baton.admin(`/explain?${query}`);
    t.equal(answer.status, status, answer.body);
    return status === 200 ? JSON.parse(answer.body).explanations[0] : { text: answer.body };
  };

  const admin = await explain(
    'authority=a.shop.example&path=/admin/x%3Fq=1&header=x-role:%20admin&header=x-other:%201',
  );
  t.match(admin, {
    listener: { name: 'web' },
    filter_chain: { name: 'filter_chains[0]' },
    http_filters: [
      { name: 'buffer', type: 'envoy.extensions.filters.http.buffer.v3.Buffer', disabled: true },
      { type: /Router$/ },
    ],
    route_config: 'main',
    virtual_host: { name: 'shop', domain: '*.shop.example' },
    routes: [{ index: 0, name: 'admin', taken: true }],
    action: {
      kind: 'forward',
      cluster: 'web',
      lb_policy: 'ROUND_ROBIN',
      hosts: [{ address: `127.0.0.1:${upstream.port}`, health: 'healthy', priority: 0, weight: 1 }],
      authority: 'admin.internal',
      path: '/internal/x?q=1',
    },
  });
  t.equal((admin['routes'] as unknown[]).length, 1);
  const port = await baton.listenerPort('web');
  const headers = { host: 'a.shop.example', 'x-role': 'admin' };
  const received = JSON.parse((await httpRequest(port, '/admin/x?q=1', { headers })).body);
  t.match(received, { url: '/internal/x?q=1', headers: { host: 'admin.internal' } }, 'a request goes there');

  t.match(await explain('authority=shop.example&path=/old&tls'), {
    routes: [
      { index: 0, name: 'admin', does_not_match: '{"prefix":"/admin"}' },
      { index: 1, taken: true },
    ],
    action: { kind: 'redirect', status: 301, location: 'https://shop.example/new' },
  });
  t.match(await explain('authority=shop.example&path=/admin&header=x-role:user'), {
    routes: [{ does_not_match: 'headers[0]: {"name":"x-role","string_match":{"exact":"admin"}}' }],
    action: { kind: 'not found' },
  });
  t.match(await explain('authority=shop.example&path=/ok'), { action: { kind: 'direct response', status: 204 } });
  t.match(await explain('authority=shop.example&path=/split&random_value=89'), { action: { cluster: 'web' } });
  t.match(await explain('authority=shop.example&path=/split&random_value=90'), {
    action: { kind: 'forward', cluster: 'gone', unknown_cluster: true, status: 503 },
  });
  t.match(await explain('authority=other'), { virtual_host: null, routes: [], action: { kind: 'not found' } });
  t.match(await explain('method=CONNECT&authority=shop.example'), {
    virtual_host: { name: 'shop' },
    action: { kind: 'not found' },
  });

  for (const [query, text] of [
    ['listener=nope', "unknown listener 'nope'; there are web"],
    ['method=G%20T', "invalid method 'G T'"],
    ['path=a', "invalid path 'a'"],
    ['path=/a%20b', 'invalid value of a path'],
    ['authority=a%0ab', 'invalid value of host'],
    ['header=content-length:1&header=content-length:2', 'one content-length'],
    ['header=x', "invalid header 'x'"],
    ['header=x%20y:z', "invalid header 'x y:z'"],
    ['header=x:a%0d%0ay', 'invalid header'],
    ['random_value=-1', "invalid random_value '-1'"],
    ['source=nowhere', "invalid source 'nowhere'"],
  ] as const) {
    t.match((await explain(query, 400))['text'], text);
  }
  t.equal((await baton.admin('/explain', { method: 'POST' })).status, 200);
});

t.test('it normalizes path and authority as the connection manager does', async (t) => {
  const route_config = {
    name: 'main',
    virtual_hosts: [
      {
        name: 'a',
        domains: ['a.example'],
        require_tls: 'EXTERNAL_ONLY',
        routes: [answering({ path: '/b/d' }, 'found')],
      },
    ],
  };
  const web = httpListener('web', 0, {
    ...{ route_config, normalize_path: true, merge_slashes: true, strip_matching_host_port: true },
    path_with_escaped_slashes_action: 'REJECT_REQUEST',
    strip_trailing_host_dot: true,
    early_header_mutation_extensions: [
      {
        name: 'early',
        typed_config: {
          '@type': 'type.googleapis.com/envoy.extensions.http.early_header_mutation.header_mutation.v3.HeaderMutation',
          mutations: [{ append: { header: { key: 'x-early', value: '1' } } }],
        },
      },
    ],
  });
  const baton = await startBaton(t, { config: bootstrap({ listeners: [web], clusters: [] }) });
  const port = await baton.listenerPort('web');
  const explain = async (query: string) => JSON.parse((await baton.admin(`/explain?${query}`)).body).explanations[0];
  t.match(await explain(`tls&authority=a.example.:${port}&path=//b/c/../d`), {
    virtual_host: { name: 'a' },
    routes: [{ index: 0, taken: true }],
    action: { kind: 'direct response', status: 200 },
  });
  t.match(await explain('authority=a.example&path=/b/d'), {
    virtual_host: { name: 'a' },
    routes: [],
    action: { kind: 'redirect', status: 301, location: 'https://a.example/b/d' },
  });
  const refused = await explain('tls&authority=a.example&path=/b%252Fd');
  t.match(refused, { route_config: null, action: { kind: 'answer before routing', status: 400 } });
  const headers = { host: `a.example.:${port}`, 'x-forwarded-proto': 'https' };
  t.match(await httpRequest(port, '//b/c/../d', { headers }), { status: 200, body: 'found' }, 'a request goes there');
  t.match(await httpRequest(port, '/b%2Fd', { headers }), { status: 400 });
});

t.test('it selects the listener and the filter chain as connections do', async (t) => {
  const web = httpListener('web', 0, { route_config: ROUTES });
  const [chain] = web['filter_chains'] as Config[];
  const chains = [
    {
      ...chain,
      name: 'local',
      filter_chain_match: { source_prefix_ranges: [{ address_prefix: '127.0.0.0', prefix_len: 8 }] },
    },
    { ...chain, name: 'named', filter_chain_match: { server_names: ['*.example'], transport_protocol: 'tls' } },
    { ...chain, name: 'h2', filter_chain_match: { application_protocols: ['h2'] } },
  ];
  const inspector = {
    name: 'tls',
    typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector' },
  };
  const chosen = { ...web, name: 'chosen', filter_chains: chains, listener_filters: [inspector] };
  const baton = await startBaton(t, {
    config: bootstrap({ listeners: [web, chosen], clusters: [staticCluster('web', [9]), staticCluster('gone', [9])] }),
  });
  const chainOf = async (query: string) =>
    JSON.parse((await baton.admin(`/explain?listener=chosen&${query}`)).body).explanations[0].filter_chain;
  t.match(await chainOf(''), { name: 'local' });
  t.match(await chainOf('source=10.0.0.1&tls&server_name=A.Example'), { name: 'named' });
  t.match(await chainOf('source=10.0.0.1:80&application_protocol=x&application_protocol=h2'), { name: 'h2' });
  t.equal(await chainOf('source=10.0.0.1'), null);
  const { explanations } = JSON.parse((await baton.admin('/explain?source=10.0.0.1')).body);
  t.match(explanations, [
    { listener: { name: 'web' }, route_config: 'main' },
    { listener: { name: 'chosen' }, filter_chain: null },
  ]);
});
