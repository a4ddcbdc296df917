// Every kind of mistake, as the user reads it: file, line, column, path, what is wrong, the line, a caret.

import t from 'tap';
import { loadConfiguration, NO_CONFIGURATION } from '../../src/config/load.js';
import { testCatalog } from './catalog.js';
import { problemsOf } from './load-text.js';

const LISTENER = 'static_resources.listeners[0]';
const CLUSTER = 'static_resources.clusters[0]';

/** A listener whose only filter is the one given in flow style. */
function withFilter(filter: string): string {
  return `static_resources:
  clusters: [ { name: known, type: STATIC, load_assignment: { cluster_name: known } } ]
  listeners:
  - name: l
    address: { socket_address: { address: 127.0.0.1, port_value: 80 } }
    filter_chains: [ { filters: [
      ${filter}
      ] } ]
`;
}

const HCM_URL = 'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager';
const TCP_URL = 'type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy';
const ROUTER = '{ name: envoy.filters.http.router }';

/** A connection manager with these routes and HTTP filters. */
function withRoutes(hosts: string, filters = ROUTER): string {
  return withFilter(`{ name: h, typed_config: { "@type": ${HCM_URL}, stat_prefix: h, http_filters: [ ${filters} ],
        route_config: { virtual_hosts: [
          ${hosts}
        ] } } }`);
}

/** The text and a piece of what is said of it; the caret's place is checked by the column. */
const CASES: readonly (readonly [title: string, text: string, expected: string])[] = [
  [
    'an unknown field with a near name',
    'admin:\n  adress: {}\n',
    `baton.yaml:2:3: admin.adress: unknown field 'adress' of envoy.config.bootstrap.v3.Admin; did you mean 'address'?
  2 |   adress: {}
    |   ^`,
  ],
  [
    'a field of an older API',
    'static_resources:\n  clusters:\n  - name: a\n    load_assignment: { cluster_name: a }\n    hosts: []\n',
    `baton.yaml:5:5: ${CLUSTER}.hosts: unknown field 'hosts' of envoy.config.cluster.v3.Cluster: it is of an older API; use load_assignment
  5 |     hosts: []
    |     ^`,
  ],
  [
    'a field that is not implemented',
    'layered_runtime: {}\n',
    `baton.yaml:1:1: layered_runtime: field 'layered_runtime' of envoy.config.bootstrap.v3.Bootstrap is not implemented in Baton
  1 | layered_runtime: {}
    | ^`,
  ],
  [
    'a value of an enum that is not implemented',
    'static_resources:\n  clusters:\n  - { name: a, load_assignment: { cluster_name: a }, lb_policy: ring_hash }\n',
    `baton.yaml:3:65: ${CLUSTER}.lb_policy: 'RING_HASH' of envoy.config.cluster.v3.Cluster.lb_policy is not implemented in Baton
  3 |   - { name: a, load_assignment: { cluster_name: a }, lb_policy: ring_hash }
    |                                                                 ^`,
  ],
  [
    'more elements than are implemented',
    'static_resources:\n  listeners:\n  - address: { pipe: { path: /a } }\n    filter_chains: [ {}, {} ]\n',
    `baton.yaml:4:5: ${LISTENER}.filter_chains: field 'filter_chains' of envoy.config.listener.v3.Listener is not implemented in Baton: more than 1: a choice between filter chains is not implemented
  4 |     filter_chains: [ {}, {} ]
    |     ^`,
  ],
  [
    'text where a number belongs',
    'admin: { address: { socket_address: { address: 127.0.0.1, port_value: http } } }\n',
    `baton.yaml:1:71: admin.address.socket_address.port_value: expected a whole number, found 'http'
  1 | admin: { address: { socket_address: { address: 127.0.0.1, port_value: http } } }
    |                                                                       ^`,
  ],
  [
    'a number where text belongs',
    'node: { id: 12 }\n',
    `baton.yaml:1:13: node.id: expected text, found the number 12; put it in quotes
  1 | node: { id: 12 }
    |             ^`,
  ],
  [
    'a number out of range',
    'admin: { address: { socket_address: { address: 127.0.0.1, port_value: 70000 } } }\n',
    `baton.yaml:1:71: admin.address.socket_address.port_value: it must be at most 65535, found 70000
  1 | admin: { address: { socket_address: { address: 127.0.0.1, port_value: 70000 } } }
    |                                                                       ^`,
  ],
  [
    'a negative number where none can be',
    'static_resources:\n  listeners: [ { per_connection_buffer_limit_bytes: -1 } ]\n',
    `baton.yaml:2:16: ${LISTENER}: a listener needs an address
  2 |   listeners: [ { per_connection_buffer_limit_bytes: -1 } ]
    |                ^
baton.yaml:2:16: ${LISTENER}: no filter chains specified
  2 |   listeners: [ { per_connection_buffer_limit_bytes: -1 } ]
    |                ^
baton.yaml:2:53: ${LISTENER}.per_connection_buffer_limit_bytes: -1 is out of range: 0 to 4294967295
  2 |   listeners: [ { per_connection_buffer_limit_bytes: -1 } ]
    |                                                     ^`,
  ],
  [
    'a duration without its unit',
    'stats_flush_interval: 5\n',
    `baton.yaml:1:23: stats_flush_interval: expected a duration, found the number 5; write it as '5s'
  1 | stats_flush_interval: 5
    |                       ^`,
  ],
  [
    'a duration in another unit',
    'stats_flush_interval: 250ms\n',
    `baton.yaml:1:23: stats_flush_interval: expected a duration in seconds such as '1.5s', found '250ms'; write it as '0.25s'
  1 | stats_flush_interval: 250ms
    |                       ^`,
  ],
  [
    'a duration that the API does not allow',
    'stats_flush_interval: 0.0001s\n',
    `baton.yaml:1:23: stats_flush_interval: it must be at least 0.001s, found 0.000100s
  1 | stats_flush_interval: 0.0001s
    |                       ^`,
  ],
  [
    'an unknown value of an enum',
    'static_resources:\n  clusters:\n  - { name: a, load_assignment: { cluster_name: a }, type: STRICT_DSN }\n',
    `baton.yaml:3:60: ${CLUSTER}.type: unknown value 'STRICT_DSN'; did you mean 'STRICT_DNS'?
  3 |   - { name: a, load_assignment: { cluster_name: a }, type: STRICT_DSN }
    |                                                            ^`,
  ],
  [
    'a single element where a list belongs',
    'static_resources:\n  clusters:\n    name: a\n',
    `baton.yaml:3:5: static_resources.clusters: expected a list, found a map; put '- ' before its first line
  3 |     name: a
    |     ^`,
  ],
  [
    'a list where a single value belongs',
    'admin:\n- address: {}\n',
    `baton.yaml:2:1: admin: expected the fields of envoy.config.bootstrap.v3.Admin, found a list; remove the '-'
  2 | - address: {}
    | ^`,
  ],
  [
    'two members of a oneof',
    'admin:\n  address:\n    pipe: { path: /a }\n    socket_address: { address: 127.0.0.1, port_value: 1 }\n',
    `baton.yaml:4:5: admin.address.socket_address: only one of socket_address, pipe, envoy_internal_address can be set, and 'pipe' is set as well
  4 |     socket_address: { address: 127.0.0.1, port_value: 1 }
    |     ^`,
  ],
  [
    'a required oneof without any',
    'admin:\n  address: {}\n',
    `baton.yaml:2:12: admin.address: one of socket_address, pipe, envoy_internal_address must be set
  2 |   address: {}
    |            ^`,
  ],
  [
    'a field that must be set',
    'admin: { address: { pipe: {} } }\n',
    `baton.yaml:1:21: admin.address.pipe.path: it must be set
  1 | admin: { address: { pipe: {} } }
    |                     ^`,
  ],
  [
    'a key given twice',
    'node: { id: a, id: b }\n',
    `baton.yaml:1:16: 'id' is set twice
  1 | node: { id: a, id: b }
    |                ^`,
  ],
  [
    'a field given in both spellings',
    'statsFlushInterval: 1s\nstats_flush_interval: 1s\n',
    `baton.yaml:1:1: stats_flush_interval: 'stats_flush_interval' is set twice, the other time as 'statsFlushInterval'
  1 | statsFlushInterval: 1s
    | ^`,
  ],
  [
    'an expression that RE2 does not compile',
    withRoutes('{ name: v, domains: [ "*" ], routes: [ { match: { safe_regex: { regex: "(" } }, redirect: {} } ] }'),
    `baton.yaml:9:82: ${LISTENER}.filter_chains[0].filters[0].typed_config.route_config.virtual_hosts[0].routes[0].match.safe_regex.regex: invalid regular expression '(': missing ): (
  9 |           { name: v, domains: [ "*" ], routes: [ { match: { safe_regex: { regex: "(" } }, redirect: {} } ] }
    |                                                                                  ^`,
  ],
  [
    'an extension that nobody knows',
    withFilter('{ name: mine, typed_config: { "@type": type.googleapis.com/my.Filter } }'),
    `baton.yaml:7:46: ${LISTENER}.filter_chains[0].filters[0].typed_config.@type: Didn't find a registered implementation for 'mine' with type URL: 'type.googleapis.com/my.Filter'
  7 |       { name: mine, typed_config: { "@type": type.googleapis.com/my.Filter } }
    |                                              ^`,
  ],
  [
    'an extension that Baton does not implement',
    withFilter(
      '{ name: e, typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.network.echo.v3.Echo } }',
    ),
    `baton.yaml:7:43: ${LISTENER}.filter_chains[0].filters[0].typed_config.@type: Didn't find a registered implementation for 'e' with type URL: 'type.googleapis.com/envoy.extensions.filters.network.echo.v3.Echo': Baton does not implement this extension
  7 |       { name: e, typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.network.echo.v3.Echo } }
    |                                           ^`,
  ],
  [
    'an extension of an older API',
    withFilter(
      '{ name: t, typed_config: { "@type": type.googleapis.com/envoy.config.filter.network.tcp_proxy.v2.TcpProxy } }',
    ),
    `baton.yaml:7:43: ${LISTENER}.filter_chains[0].filters[0].typed_config.@type: Didn't find a registered implementation for 't' with type URL: 'type.googleapis.com/envoy.config.filter.network.tcp_proxy.v2.TcpProxy': it is of an older API; use '${TCP_URL}'
  7 |       { name: t, typed_config: { "@type": type.googleapis.com/envoy.config.filter.network.tcp_proxy.v2.TcpProxy } }
    |                                           ^`,
  ],
  [
    'an extension in the wrong place',
    withFilter(
      '{ name: r, typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router } }',
    ),
    `baton.yaml:7:43: ${LISTENER}.filter_chains[0].filters[0].typed_config.@type: Didn't find a registered implementation for 'r' with type URL: 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router': here one of envoy.filters.network is needed, and 'envoy.filters.http.router' is one of envoy.filters.http
  7 |       { name: r, typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router } }
    |                                           ^`,
  ],
  [
    'a name without a typed_config that nobody knows',
    withFilter('{ name: envoy.unknown }'),
    `baton.yaml:7:7: ${LISTENER}.filter_chains[0].filters[0]: Didn't find a registered implementation for 'envoy.unknown' with type URL: ''
  7 |       { name: envoy.unknown }
    |       ^`,
  ],
  [
    'a typed_config without a type',
    withFilter('{ name: t, typed_config: { cluster: known } }'),
    `baton.yaml:7:32: ${LISTENER}.filter_chains[0].filters[0].typed_config: '@type' is missing: a type URL such as type.googleapis.com/package.Message
  7 |       { name: t, typed_config: { cluster: known } }
    |                                ^`,
  ],
  [
    "what an extension's own check finds",
    withFilter(`{ name: t, typed_config: { "@type": ${TCP_URL}, stat_prefix: t, cluster: known,
        access_log: [ { name: f, typed_config: {
          "@type": type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog, path: /var/log/ } } ] } }`),
    `baton.yaml:9:101: ${LISTENER}.filter_chains[0].filters[0].typed_config.access_log[0].typed_config.path: a file is needed, not a directory
  9 |           "@type": type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog, path: /var/log/ } } ] } }
    |                                                                                                     ^`,
  ],
  [
    'a route to a cluster that does not exist',
    withRoutes('{ name: v, domains: [ "*" ], routes: [ { match: { prefix: / }, route: { cluster: knwon } } ] }'),
    `baton.yaml:9:92: ${LISTENER}.filter_chains[0].filters[0].typed_config.route_config.virtual_hosts[0].routes[0].route.cluster: unknown cluster 'knwon'; did you mean 'known'?
  9 |           { name: v, domains: [ "*" ], routes: [ { match: { prefix: / }, route: { cluster: knwon } } ] }
    |                                                                                            ^`,
  ],
  [
    'a TCP proxy to a cluster that does not exist',
    withFilter(`{ name: t, typed_config: { "@type": ${TCP_URL}, stat_prefix: t, cluster: gone } }`),
    `baton.yaml:7:144: ${LISTENER}.filter_chains[0].filters[0].typed_config.cluster: unknown cluster 'gone'`,
  ],
  [
    'virtual hosts and domains given twice',
    withRoutes('{ name: v, domains: [ a.b ] }, { name: v, domains: [ A.b ] }'),
    `baton.yaml:9:50: ${LISTENER}.filter_chains[0].filters[0].typed_config.route_config.virtual_hosts[1].name: duplicate virtual host 'v': ${LISTENER}.filter_chains[0].filters[0].typed_config.route_config.virtual_hosts[0].name is the same`,
  ],
  [
    'a terminal filter that others follow',
    withRoutes('{ name: v, domains: [ "*" ] }', `${ROUTER}, ${ROUTER}`),
    "terminal HTTP filter 'envoy.filters.http.router' must be the last one, and others follow it",
  ],
  [
    'a chain without a terminal filter',
    withRoutes(
      '{ name: v, domains: [ "*" ] }',
      '{ name: b, typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.buffer.v3.Buffer, max_request_bytes: 1 } }',
    ),
    "non-terminal HTTP filter 'envoy.filters.http.buffer' is the last one: the chain must end with a terminal filter",
  ],
  [
    'a connection manager without filters',
    withRoutes('{ name: v, domains: [ "*" ] }', ''),
    "typed_config: http_filters is empty: it must end with a filter such as 'envoy.filters.http.router'",
  ],
  [
    'a name in a STATIC cluster',
    `static_resources:
  clusters:
  - name: a
    load_assignment:
      cluster_name: a
      endpoints:
      - lb_endpoints: [ { endpoint: { address: { socket_address: { address: host, port_value: 1 } } } } ]
`,
    `baton.yaml:7:77: ${CLUSTER}.load_assignment.endpoints[0].lb_endpoints[0].endpoint.address.socket_address.address: malformed IP address: host. Consider setting the cluster's type to 'STRICT_DNS' or 'LOGICAL_DNS'
  7 |       - lb_endpoints: [ { endpoint: { address: { socket_address: { address: host, port_value: 1 } } } } ]
    |                                                                             ^`,
  ],
  [
    'two clusters of one name',
    `static_resources:
  clusters:
  - { name: a, load_assignment: { cluster_name: a } }
  - { name: a, load_assignment: { cluster_name: a } }
`,
    `baton.yaml:4:13: static_resources.clusters[1].name: duplicate cluster 'a': ${CLUSTER}.name is the same
  4 |   - { name: a, load_assignment: { cluster_name: a } }
    |             ^`,
  ],
  [
    'broken YAML',
    'node:\n\tid: x\n',
    `baton.yaml:2:1: Tabs are not allowed as indentation
  2 |  id: x
    | ^`,
  ],
  [
    'a second document',
    'node: {}\n---\nnode: {}\n',
    `baton.yaml:2:1: a configuration is one YAML document, and another one begins here
  2 | ---
    | ^`,
  ],
  [
    'an alias that holds itself',
    'node: &a { metadata: *a }\n',
    `baton.yaml:1:22: alias '*a' holds itself
  1 | node: &a { metadata: *a }
    |                      ^`,
  ],
];

for (const [title, text, expected] of CASES) {
  t.test(title, async (t) => {
    const found = problemsOf(text);
    if (expected.includes('\n')) t.equal(found, expected);
    else t.ok(found.includes(expected), `${found}\nshould include\n${expected}`);
  });
}

t.test('broken JSON is shown where it breaks', async (t) => {
  t.equal(
    problemsOf('{\n  "node": { "id": "x", }\n}', { file: 'a.json' }),
    `a.json:2:24: invalid JSON: Expected double-quoted property name
  2 |   "node": { "id": "x", }
    |                        ^`,
  );
});

t.test('protos without lines give the field path', async (t) => {
  t.equal(
    problemsOf('admin { address { pipe { } } }', { file: 'a.pb_text' }),
    'a.pb_text: admin.address.pipe.path: it must be set',
  );
});

t.test('files that cannot be a configuration are refused in one line', async (t) => {
  t.match(
    problemsOf('node {', { file: 'a.pb_text' }),
    /^a\.pb_text: unable to read the file as a text protobuf of .*$/,
  );
  t.match(problemsOf(new Uint8Array([0xff, 1, 2]), { file: 'a.pb' }), /^a\.pb: unable to read the file as a binary/);
  t.equal(problemsOf(new Uint8Array([0xff, 0xfe, 0])), 'baton.yaml: the file is not UTF-8 text');
  t.match(problemsOf('', { file: 'a.txt' }), /^a\.txt: unknown extension '\.txt': a configuration file ends in \.yaml/);
  t.match(loadConfiguration({ path: '/nowhere/a.yaml' }, testCatalog()), {
    errors: [{ source: '/nowhere/a.yaml', message: 'unable to read file: no such file or directory' }],
  });
  t.match(loadConfiguration({}, testCatalog()), { ok: false, errors: [{ message: NO_CONFIGURATION }] });
});

t.test('many mistakes are all counted, and the first hundred shown', async (t) => {
  const text = `node: {${Array.from({ length: 250 }, (_all, index) => ` x${index}: 1`).join(',')} }`;
  const lines = problemsOf(text).split('\n');
  t.equal(lines.filter((line) => line.startsWith('baton.yaml:1:')).length, 100);
  t.ok(lines.some((line) => line.endsWith('and 150 further errors')));
});
