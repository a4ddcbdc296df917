// Loading: the result for a valid configuration in every format.

import { createRequire } from 'node:module';
import type protobufjs from 'protobufjs';
import t from 'tap';
import { loadInThread } from '../../../src/config/load/load-in-thread.js';
import { unpack } from '../../../src/config/schema/any.js';
import { loadAllMessages } from '../../../src/config/schema/messages.js';
import { testCatalog } from '../catalog.js';
import { GOOD } from '../good.js';
import { bootstrapOf, loadText, problemsOf, withFile } from '../load-text.js';

const HCM = 'envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager';

t.test('a configuration is returned in canonical form, with only the fields that are set', async (t) => {
  const { static_resources: resources, node, admin, stats_flush_interval: interval } = bootstrapOf(GOOD);
  t.same(node, { id: 'one', cluster: 'front', locality: { region: 'r', zone: 'z' } });
  t.equal(interval, '5s');
  t.same(admin, { address: { socket_address: { address: '127.0.0.1', port_value: 0 } } }, 'a port of 0 is set');
  const listener = resources?.listeners?.[0];
  t.equal(listener?.enable_reuse_port, true);
  const manager = unpack(listener?.filter_chains?.[0]?.filters?.[0]?.typed_config, HCM);
  t.equal(manager?.codec_type, undefined, 'AUTO is the default');
  t.equal(manager?.common_http_protocol_options?.idle_timeout, '3600s');
  const routes = manager?.route_config?.virtual_hosts?.[0]?.routes;
  t.same(routes?.[2]?.route, { cluster: 'blue', timeout: '0s' }, 'a duration of 0 is set');
  t.equal(routes?.[0]?.route?.retry_policy?.per_try_timeout, '0.500s');
  t.equal(routes?.[1]?.redirect?.response_code, 'FOUND');
  const blue = resources?.clusters?.[0];
  t.equal(blue?.type, 'STRICT_DNS');
  t.equal(blue?.circuit_breakers?.thresholds?.[1]?.priority, 'HIGH');
  const metadata = resources?.clusters?.[1]?.load_assignment?.endpoints?.[0]?.lb_endpoints?.[0]?.metadata;
  t.same(metadata?.filter_metadata?.['envoy.lb'], { canary: true, big: 12345678901234567000 });
});

t.test('JSON, lowerCamelCase names, binary and text protos give the same result as YAML', async (t) => {
  const expected = bootstrapOf(GOOD);
  const json = JSON.stringify(expected, null, '\t');
  t.same(bootstrapOf(json, { file: 'a.json' }), expected);
  t.same(bootstrapOf(camelCased(json), { file: 'a.json' }), expected);
  t.same(bootstrapOf(GOOD, { file: 'A.YAML' }), expected, 'file extensions are case-insensitive');
  const { binary, text } = protoForms(expected);
  t.same(bootstrapOf(binary, { file: 'a.pb' }), expected);
  t.same(bootstrapOf(text, { file: 'a.pb_text' }), expected);
});

t.test('--config-yaml alone is a configuration; YAML and JSON are both understood', async (t) => {
  for (const yaml of ['node: { id: x }', '{"node": {"id": "x"}}']) {
    const result = withFile('', 'unused', () => loadText('{}', { yaml }));
    t.match(result, { ok: true, bootstrap: { node: { id: 'x' } } });
  }
});

t.test(
  '--config-yaml is merged onto the file: values replace, messages merge, lists append, oneofs switch',
  async (t) => {
    const yaml = `
node: { cluster: edge, metadata: { a: 1 } }
static_resources:
  listeners:
  - address: { socket_address: { address: "::1", port_value: 1 } }
    filter_chains: [ { filters: [ { name: t, typed_config: {
      "@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, stat_prefix: x, cluster: blue } } ] } ]
admin: { address: { pipe: { path: /tmp/admin } } }`;
    const { node, static_resources: resources, admin } = bootstrapOf(GOOD, { yaml });
    t.same(node, { id: 'one', cluster: 'edge', locality: { region: 'r', zone: 'z' }, metadata: { a: 1 } });
    t.equal(resources?.listeners?.length, 3);
    t.same(admin, { address: { pipe: { path: '/tmp/admin' } } });
  },
);

t.test('a mistake in a list of --config-yaml has its index in the merged list', async (t) => {
  const cluster = (fields: string) => `static_resources:
  clusters:
  - ${fields}
    load_assignment: { cluster_name: a, endpoints: [ { lb_endpoints: [ { endpoint: { address: { socket_address: { address: host, port_value: 1 } } } } ] } ] }
`;
  const problems = problemsOf(cluster('name: a'), { yaml: cluster('name: b\n    type: STRICT_DSN') });
  const at = (index: number) => `static_resources.clusters[${index}]`;
  const address = 'load_assignment.endpoints[0].lb_endpoints[0].endpoint.address.socket_address.address';
  t.same(
    problems.split('\n').filter((line) => line.includes(at(0)) || line.includes(at(1))),
    [
      `baton.yaml:4:124: ${at(0)}.${address}: malformed IP address: host. Consider setting the cluster's type to 'STRICT_DNS' or 'LOGICAL_DNS'`,
      `--config-yaml:4:11: ${at(1)}.type: unknown value 'STRICT_DSN'; did you mean 'STRICT_DNS'?`,
    ],
  );
});

t.test('a mistake is located in the file or in --config-yaml', async (t) => {
  const yaml = 'static_resources:\n  clusters:\n  - name: third\n    lb_policy: CLUSTER_PROVIDED\n';
  t.equal(
    problemsOf(GOOD, { yaml }),
    `--config-yaml:4:16: static_resources.clusters[2].lb_policy: a cluster of type STATIC does not determine the host of a request: use another policy
  4 |     lb_policy: CLUSTER_PROVIDED
    |                ^`,
  );
});

t.test('unimplemented features may be disabled explicitly', async (t) => {
  const switched = (value: boolean) => `static_resources:
  listeners:
  - name: a
    address: { socket_address: { address: 127.0.0.1, port_value: 0 } }
    filter_chains:
    - use_proxy_proto: ${value}
      filters:
      - name: m
        typed_config:
          "@type": type.googleapis.com/${HCM}
          stat_prefix: m
          stream_error_on_invalid_http_message: ${value}
          http_protocol_options: { override_stream_error_on_invalid_http_message: ${value} }
          route_config: {}
          http_filters:
          - name: r
            typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }
`;
  const { static_resources: resources } = bootstrapOf(switched(false));
  t.equal(resources?.listeners?.[0]?.filter_chains?.[0]?.use_proxy_proto, false);
  const problems = problemsOf(switched(true));
  for (const [line, field] of [
    [6, 'use_proxy_proto'],
    [12, 'stream_error_on_invalid_http_message'],
    [13, 'override_stream_error_on_invalid_http_message'],
  ]) {
    t.match(
      problems,
      new RegExp(`^baton.yaml:${line}:\\d+: .*: field '${field}' of .* is not implemented in Baton: `, 'm'),
    );
  }
});

t.test('a single value stands for a list, as in Envoy', async (t) => {
  const one =
    'static_resources: { clusters: { name: a, load_assignment: { cluster_name: a, endpoints: { priority: 0 } } } }';
  t.match(bootstrapOf(one).static_resources?.clusters, [{ name: 'a', load_assignment: { endpoints: [{}] } }]);
  t.equal(
    bootstrapOf('stats_config: { histogram_bucket_settings: { match: { exact: a }, buckets: 1 } }').stats_config
      ?.histogram_bucket_settings?.[0]?.buckets?.[0],
    1,
  );
  t.match(
    problemsOf(one, { yaml: 'static_resources:\n  clusters:\n    name: b\n    lb_policy: CLUSTER_PROVIDED\n' }),
    /^--config-yaml:4:16: static_resources\.clusters\[1\]\.lb_policy: a cluster of type STATIC /,
  );
  t.equal(
    bootstrapOf('static_resources: { clusters: }').static_resources?.clusters,
    undefined,
    'an unset value is not an element',
  );
});

t.test('empty documents may follow, as in concatenated files', async (t) => {
  const expected = bootstrapOf(GOOD);
  for (const end of ['---', '---\n', '--- \n\n', '---\n# done\n', '---\r\n  # done\r\n', '--- # none\n---\n']) {
    t.same(bootstrapOf(`---${GOOD}${end}`), expected, JSON.stringify(end));
  }
  t.match(problemsOf(`${GOOD}---#\n`), /^baton\.yaml:\d+:1: Implicit map keys/, 'this does not begin a document');
  t.match(problemsOf('---\n# nothing\n---\n'), /^baton\.yaml:1:1: expected the fields of .*Bootstrap, found nothing/);
});

t.test('anchors, aliases, merge keys and !ignore work', async (t) => {
  const { node } = bootstrapOf(`
!ignore shared: &shared { id: x, cluster: y }
node: { <<: *shared, id: &name z, metadata: { again: *name } }`);
  t.same(node, { id: 'z', cluster: 'y', metadata: { again: 'z' } });
});

t.test(
  'an extension given by name only has its defaults; a TypedStruct is the message that it stands for',
  async (t) => {
    const { static_resources: resources } = bootstrapOf(`
static_resources:
  listeners:
  - name: l
    address: { socket_address: { address: 127.0.0.1, port_value: 80 } }
    filter_chains:
    - filters:
      - name: http
        typed_config:
          "@type": type.googleapis.com/xds.type.v3.TypedStruct
          type_url: ${HCM}
          value: { stat_prefix: x, route_config: { name: r }, http_filters: [ { name: envoy.filters.http.router } ] }`);
    const manager = unpack(resources?.listeners?.[0]?.filter_chains?.[0]?.filters?.[0]?.typed_config, HCM);
    t.same(manager?.http_filters, [
      {
        name: 'envoy.filters.http.router',
        typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' },
      },
    ]);
  },
);

t.test('unknown fields are accepted if configured, with one warning each and a count of all uses', async (t) => {
  const many =
    'static_resources: { clusters: [ { name: a, load_assignment: { cluster_name: a, idd: 1 } }, { name: b, load_assignment: { cluster_name: b, idd: 1 } } ] }';
  const found = loadText(many, { unknownStaticFields: 'warn' });
  t.match(found, { ok: true, counts: { unknownFields: 2 } });
  t.equal(found.warnings.length, 1);
  const text = 'node: { idd: x }\nadmn: {}\n';
  t.match(loadText(text, { unknownStaticFields: 'warn' }), {
    ok: true,
    counts: { unknownFields: 2, deprecatedUses: 0 },
    bootstrap: { node: {} },
    warnings: [
      { path: 'node.idd', line: 1 },
      { path: 'admn', line: 2 },
    ],
  });
});

t.test('deprecated fields are accepted with a warning', async (t) => {
  const text = GOOD.replace('enable_reuse_port: yes', 'reuse_port: true');
  t.match(loadText(text), {
    ok: true,
    warnings: [{ message: "field 'reuse_port' of envoy.config.listener.v3.Listener is deprecated" }],
    counts: { deprecatedUses: 1 },
  });
});

t.test('a deprecated field causes one warning, or none if configured, and each use is counted', async (t) => {
  const text = `static_resources: { listeners: [ ${listenerWith(1, 'reuse_port: true')}, ${listenerWith(2, 'reuse_port: true')} ],
    clusters: [ { name: known, load_assignment: { cluster_name: known } } ] }`;
  const loud = loadText(text);
  t.match(loud, { ok: true, counts: { deprecatedUses: 2 } });
  t.equal(loud.warnings.length, 1);
  const quiet = loadText(text, { skipDeprecatedLogs: true });
  t.match(quiet, { ok: true, counts: { deprecatedUses: 2 } });
  t.equal(quiet.warnings.length, 0);
});

t.test('routes that Envoy accepts although a part of them has no effect are accepted with a warning', async (t) => {
  const action = (more: string, prefix = '/') => `{ match: { prefix: ${prefix} }, route: { ${more} } }`;
  const rewrite = '{ pattern: { regex: "^/(a)" }, substitution: "/\\\\2" }';
  const routes = [
    action('cluster: known, retry_policy: { retry_on: "5xx,often,http3-post-connect-failure" }', '/a'),
    action(`cluster: known, regex_rewrite: ${rewrite}`, '/b'),
    action('weighted_clusters: { clusters: [ { name: known, weight: 1 } ], total_weight: 100 }'),
  ];
  const hosts = `[ { name: v, domains: [ a ], routes: [ ${routes.join(', ')} ] }, { name: v, domains: [ b ] } ]`;
  const router =
    '{ name: r, typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router } }';
  const manager = `{ "@type": type.googleapis.com/${HCM}, stat_prefix: p, http_filters: [ ${router} ], route_config: { virtual_hosts: ${hosts} } }`;
  const chains = `filter_chains: [ { filters: [ { name: h, typed_config: ${manager} } ] } ]`;
  const address = 'address: { socket_address: { address: 127.0.0.1, port_value: 0 } }';
  const found = loadText(
    `static_resources: { listeners: [ { name: l, ${address}, ${chains} } ], clusters: [ { name: known } ] }`,
  );
  t.match(found, {
    ok: true,
    warnings: [
      { message: "'often' is unknown and has no effect: the conditions are 5xx, gateway-error, " },
      { message: 'it names \\2, a group that the expression does not have: as in Envoy, nothing is replaced' },
      { message: /total_weight/ },
      { message: 'it has no effect: the weights add up to 1' },
    ],
  });
});

t.test('a per-route configuration of a filter that the chain lacks causes a warning', async (t) => {
  t.match(
    loadText(
      GOOD.replace('                envoy.filters.http.buffer:\n', '                envoy.filters.http.bufer:\n'),
    ),
    {
      ok: true,
      warnings: [
        {
          message:
            /^it has no effect: no filter of the chain has the name 'envoy.filters.http.bufer'; did you mean 'envoy.filters.http.buffer'\?/,
        },
      ],
    },
  );
});

t.test('the warning suggests the filter of the chain that accepts the per-route configuration', async (t) => {
  const text = GOOD.replace(
    '- name: envoy.filters.http.buffer\n            typed_config:',
    '- name: acme.holds-bodies\n            typed_config:',
  );
  const known = {
    ok: true,
    warnings: [{ message: /'envoy.filters.http.buffer'; did you mean 'acme.holds-bodies'\?$/ }],
  };
  t.match(loadText(text), known);
  const missing = loadText(text.replace(/ *- name: acme(?:.*\n){4}/, ''));
  t.match(missing, { ok: true, warnings: [{ message: /has the name 'envoy.filters.http.buffer'$/ }] });
});

t.test('a disabled extension is refused', async (t) => {
  const catalog = testCatalog(['envoy.filters.network/envoy.filters.network.tcp_proxy']);
  t.match(
    problemsOf(GOOD, { catalog }),
    "Didn't find a registered implementation for 'tcp' with type URL: " +
      "'type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy': " +
      "'envoy.filters.network/envoy.filters.network.tcp_proxy' is disabled by --disable-extensions",
  );
});

t.test('loading in a thread gives the same result', async (t) => {
  const entry = new URL('../loader-thread.js', import.meta.url);
  t.same(await loadInThread(entry, { yaml: GOOD }), loadText(GOOD));
  const refused = await loadInThread(entry, { yaml: 'x: 1' });
  t.match(refused, { ok: false, errors: [{ path: 'x' }] });
});

function listenerWith(port: number, fields: string): string {
  return `{ name: of_${port}, address: { socket_address: { address: 127.0.0.1, port_value: ${port} } }, ${fields}, filter_chains: [ { filters: [ { name: t,
    typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, stat_prefix: x,
      cluster: known } } ] } ] }`;
}

function camelCased(json: string): string {
  return json.replace(/"([a-z]+_[a-z0-9_]*)":/g, (_all, name: string) => {
    return `"${name.replace(/_([a-z0-9])/g, (_part, letter: string) => letter.toUpperCase())}":`;
  });
}

/** Returns what protoc would generate for it. */
function protoForms(bootstrap: object): { readonly binary: Uint8Array; readonly text: string } {
  const require = createRequire(import.meta.url);
  const protojson = require('protobufjs/ext/protojson.js') as {
    fromJson(type: protobufjs.Type, json: object): protobufjs.Message;
  };
  const textformat = require('protobufjs/ext/textformat.js') as {
    toText(type: protobufjs.Type, message: object): string;
  };
  const type = loadAllMessages().lookupType('envoy.config.bootstrap.v3.Bootstrap');
  const message = protojson.fromJson(type, bootstrap);
  return { binary: type.encode(message).finish(), text: textformat.toText(type, message) };
}
