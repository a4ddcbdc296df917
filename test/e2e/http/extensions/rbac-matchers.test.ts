// The rbac filter: matchers, metadata, filter state and templates as conditions, and what it records.

import type { Test } from 'tap';
import { besideEnvoy, type ProxyProgram } from '../../harness/envoy.js';
import {
  bootstrap,
  type Config,
  fileAccessLog,
  httpListener,
  httpRequest,
  logLines,
  ROUTER_FILTER,
  startBaton,
  startUpstream,
  staticCluster,
  tempDir,
  waitFor,
} from '../../harness/index.js';

const TYPE = 'type.googleapis.com';
const HTTP = `${TYPE}/envoy.extensions.filters.http`;
const typed = (name: string, message: string, fields: Config = {}): Config => ({
  name,
  typed_config: { '@type': `${TYPE}/${message}`, ...fields },
});
const header = (name: string) =>
  typed('envoy.matching.inputs.request_headers', 'envoy.type.matcher.v3.HttpRequestHeaderMatchInput', {
    header_name: name,
  });
const network = (name: string, message: string, fields: Config = {}) =>
  typed(`envoy.matching.inputs.${name}`, `envoy.extensions.matching.common_inputs.network.v3.${message}`, fields);
const action = (name: string, kind: string) => ({
  action: typed('envoy.filters.rbac.action', 'envoy.config.rbac.v3.Action', { name, action: kind }),
});
const when = (input: Config, value_match: Config, on_match: Config) => ({
  predicate: { single_predicate: { input, value_match } },
  on_match,
});
const has = (name: string) => ({ header: { name, present_match: true } });
const ANY = { any: true };
const policy = (permission: Config, principal: Config = ANY) => ({
  permissions: [permission],
  principals: [principal],
});

async function start(t: Test, program: ProxyProgram, listeners: Readonly<Record<string, Config>>) {
  const log = `${tempDir(t)}/log`;
  const host = await startUpstream(t, (_request, answer) => void answer.end('served'));
  const format =
    '%RESPONSE_CODE% %RESPONSE_CODE_DETAILS% %DYNAMIC_METADATA(envoy.filters.http.rbac)% %DYNAMIC_METADATA(envoy.common)%\n';
  const before = [
    {
      name: 'metadata',
      typed_config: {
        '@type': `${HTTP}.set_metadata.v3.Config`,
        metadata: [{ metadata_namespace: 'own', value: { a: 'x' } }],
      },
    },
    {
      name: 'state',
      typed_config: {
        '@type': `${HTTP}.set_filter_state.v3.Config`,
        on_request_headers: [
          {
            object_key: 'envoy.string',
            format_string: { text_format_source: { inline_string: '%REQ(x-state)%' } },
            skip_if_empty: true,
          },
        ],
      },
    },
  ];
  const routes = [
    { match: { prefix: '/route' }, route: { cluster: 'host' }, metadata: { filter_metadata: { own: { k: true } } } },
    { match: { prefix: '/' }, route: { cluster: 'host' } },
  ];
  const built = Object.entries(listeners).map(([name, rbac]) =>
    httpListener(name, 0, {
      access_log: [fileAccessLog(log, format)],
      route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] },
      http_filters: [
        ...before,
        { name: 'rbac', typed_config: { '@type': `${HTTP}.rbac.v3.RBAC`, ...rbac } },
        ROUTER_FILTER,
      ],
    }),
  );
  const baton = await startBaton(t, {
    ...program,
    args: ['--file-flush-interval-msec', '50'],
    config: bootstrap({ listeners: built, clusters: [staticCluster('host', host.port)] }),
  });
  const ports: Record<string, number> = {};
  for (const name of Object.keys(listeners)) ports[name] = await baton.listenerPort(name);
  const on = async (listener: string, path: string, headers: Record<string, string> = {}) =>
    (await httpRequest(ports[listener]!, path, { headers })).status;
  const lines = (count: number) =>
    waitFor(() => (logLines(log).length === count ? logLines(log) : undefined), { what: `${count} lines` });
  return { baton, lines, on };
}

besideEnvoy('a list of matchers decides by its first match', async (t, program) => {
  const not = { not_matcher: { single_predicate: { input: header('x-c'), value_match: { prefix: 'c' } } } };
  const either = {
    single_predicate: { input: header('x-b'), value_match: { safe_regex: { google_re2: {}, regex: 'b+' } } },
  };
  const { baton, lines, on } = await start(t, program, {
    main: {
      matcher: {
        matcher_list: {
          matchers: [
            when(header('x-a'), { exact: 'a' }, action('first', 'ALLOW')),
            { predicate: { or_matcher: { predicate: [either, not] } }, on_match: action('second one', 'DENY') },
            when(header('x-d'), { contains: 'log' }, action('third', 'LOG')),
          ],
        },
        on_no_match: action('last', 'ALLOW'),
      },
      shadow_matcher: { matcher_list: { matchers: [when(header('x-a'), { suffix: 'a' }, action('shadow', 'ALLOW'))] } },
      shadow_rules_stat_prefix: 'observed_',
    },
  });
  t.equal(await on('main', '/', { 'x-a': 'a' }), 200);
  t.equal(await on('main', '/', { 'x-b': 'bb' }), 403);
  t.equal(await on('main', '/'), 403);
  t.equal(await on('main', '/', { 'x-c': 'c' }), 200);
  t.equal(await on('main', '/', { 'x-c': 'c', 'x-d': 'alogb' }), 200);
  const [first, second, , last, third] = await lines(5);
  t.equal(
    first,
    '200 via_upstream {"enforced_effective_policy_id":"first","enforced_engine_result":"allowed","observed_shadow_effective_policy_id":"shadow","observed_shadow_engine_result":"allowed"} {"access_log_hint":false}',
  );
  t.match(
    second,
    '403 rbac_access_denied_matched_policy[second_one] {"enforced_effective_policy_id":"second one","enforced_engine_result":"denied","observed_shadow_engine_result":"denied"}',
  );
  t.match(last, '"enforced_effective_policy_id":"last"');
  t.match(third, /"enforced_effective_policy_id":"third".*\{"access_log_hint":true\}$/);
  await baton.waitForStats({
    'http.main.rbac.allowed': 3,
    'http.main.rbac.denied': 2,
    'http.main.rbac.observed_.shadow_allowed': 1,
    'http.main.rbac.observed_.shadow_denied': 4,
  });
});

besideEnvoy('a tree of matchers finds values, prefixes and addresses', async (t, program) => {
  const range = (address_prefix: string, prefix_len: number, on_match: Config, exclusive = false) => ({
    ranges: [{ address_prefix, prefix_len }],
    on_match,
    exclusive,
  });
  const inner = {
    matcher: { matcher_tree: { input: header('x-b'), exact_match_map: { map: { b: action('inner', 'DENY') } } } },
  };
  const { on } = await start(t, program, {
    map: {
      matcher: {
        matcher_tree: {
          input: header('x-a'),
          exact_match_map: {
            map: {
              one: action('one', 'ALLOW'),
              two: action('two', 'DENY'),
              three: {
                matcher: {
                  matcher_tree: {
                    input: header('x-b'),
                    prefix_match_map: { map: { b: action('b', 'ALLOW'), bb: action('bb', 'DENY') } },
                  },
                },
              },
            },
          },
        },
      },
    },
    ip: {
      matcher: {
        matcher_tree: {
          input: network('source_ip', 'SourceIPInput'),
          custom_match: typed('envoy.matching.custom_matchers.ip_range_matcher', 'xds.type.matcher.v3.IPMatcher', {
            range_matchers: [
              range('10.0.0.0', 8, action('ten', 'ALLOW')),
              range('10.1.0.0', 16, inner),
              range('11.0.0.0', 8, action('eleven', 'ALLOW'), true),
              range('11.1.0.0', 16, inner),
            ],
          }),
        },
      },
    },
    state: {
      matcher: {
        matcher_list: {
          matchers: [
            when(
              network('filter_state', 'FilterStateInput', { key: 'envoy.string' }),
              { exact: 's' },
              action('s', 'ALLOW'),
            ),
            {
              predicate: {
                single_predicate: {
                  input: network('dynamic_metadata', 'DynamicMetadataInput', { filter: 'own', path: [{ key: 'a' }] }),
                  custom_match: typed(
                    'envoy.matching.matchers.metadata_matcher',
                    'envoy.extensions.matching.input_matchers.metadata.v3.Metadata',
                    { value: { string_match: { exact: 'x' } } },
                  ),
                },
              },
              on_match: {
                matcher: {
                  matcher_tree: {
                    input: network('destination_port', 'DestinationPortInput'),
                    exact_match_map: { map: { '1': action('port', 'ALLOW') } },
                  },
                },
              },
            },
          ],
        },
      },
    },
  });
  t.equal(await on('map', '/', { 'x-a': 'one' }), 200);
  t.equal(await on('map', '/', { 'x-a': 'two' }), 403);
  t.equal(await on('map', '/', { 'x-a': 'three', 'x-b': 'bbc' }), 403);
  t.equal(await on('map', '/', { 'x-a': 'three', 'x-b': 'bc' }), 200);
  t.equal(await on('map', '/', { 'x-a': 'three' }), 403, 'nothing matches');
  t.equal(await on('map', '/'), 403);
  const from = (address: string, headers: Record<string, string> = {}) =>
    on('ip', '/', { 'x-forwarded-for': address, ...headers });
  t.equal(await from('10.3.0.1'), 200);
  t.equal(await from('10.1.0.1', { 'x-b': 'b' }), 403);
  t.equal(await from('10.1.0.1'), 200, 'the wider range applies');
  t.equal(await from('11.0.0.1'), 200);
  t.equal(await from('11.1.0.1'), 403, 'an exclusive one does not');
  t.equal(await from('12.0.0.1'), 403);
  t.equal(await on('state', '/', { 'x-state': 's' }), 200);
  t.equal(await on('state', '/', { 'x-state': 't' }), 403);
});

besideEnvoy('a predicate holds for addresses in ranges', async (t, program) => {
  const inRanges = (input: Config, stat_prefix: string, on_match: Config) => {
    const cidr_ranges = [
      { address_prefix: '10.0.0.0', prefix_len: 8 },
      { address_prefix: 'fd00::', prefix_len: 8 },
    ];
    const custom_match = typed('envoy.matching.matchers.ip', 'envoy.extensions.matching.input_matchers.ip.v3.Ip', {
      cidr_ranges,
      stat_prefix,
    });
    return { predicate: { single_predicate: { input, custom_match } }, on_match };
  };
  const { baton, on } = await start(t, program, {
    header: {
      matcher: { matcher_list: { matchers: [inRanges(header('x-ip'), 'by.header', action('in', 'ALLOW'))] } },
    },
    source: {
      matcher: {
        matcher_list: {
          matchers: [inRanges(network('source_ip', 'SourceIPInput'), 'by_source', action('in', 'DENY'))],
        },
        on_no_match: action('out', 'ALLOW'),
      },
    },
  });
  const ALLOWED = ['10.1.2.3', 'fd00::1'];
  for (const ip of ALLOWED) t.equal(await on('header', '/', { 'x-ip': ip }), 200, ip);
  for (const ip of ['11.0.0.1', '::ffff:10.0.0.1', 'fe00::1', '']) {
    t.equal(await on('header', '/', { 'x-ip': ip }), 403, ip);
  }
  t.equal(await on('header', '/'), 403);
  for (const text of ['10.1', '10.0.0.1, 10.0.0.2']) t.equal(await on('header', '/', { 'x-ip': text }), 403, text);
  await baton.waitForStat('by.header.ip_parsing_failed', 2);
  t.equal(await on('source', '/', { 'x-forwarded-for': '10.9.9.9' }), 403);
  t.equal(await on('source', '/', { 'x-forwarded-for': '12.9.9.9' }), 200);
});

besideEnvoy('a matcher replaces policies beside it, and reads the request line', async (t, program) => {
  const one = (input: Config, exact: string, name: string) => when(input, { exact }, action(name, 'ALLOW'));
  const { baton, lines, on } = await start(t, program, {
    main: {
      rules: { policies: { all: policy(ANY) } },
      shadow_rules: { policies: { all: policy(ANY) } },
      matcher: {
        matcher_list: {
          matchers: [one(header(':path'), '/open?a', 'LOG'), one(header(':authority'), 'open.test', 'authority')],
        },
      },
      shadow_matcher: { matcher_list: { matchers: [one(header(':method'), 'PUT', 'put')] } },
    },
  });
  t.equal(await on('main', '/'), 403);
  t.equal(await on('main', '/open?a'), 200);
  t.equal(await on('main', '/', { host: 'open.test' }), 200);
  t.match((await lines(3))[1], /"LOG".* -$/, 'the name of a policy is not an action');
  await baton.waitForStats({ 'http.main.rbac.denied': 1, 'http.main.rbac.shadow_denied': 3 });
});

besideEnvoy('policies look at metadata, filter state and templates of paths', async (t, program) => {
  const own = (key: string, value: Config) => ({ filter: 'own', path: [{ key }], value });
  const { on } = await start(t, program, {
    main: {
      rules: {
        policies: {
          metadata: policy({ metadata: own('a', { string_match: { exact: 'x' } }) }, has('x-1')),
          principal: policy(ANY, { and_ids: { ids: [{ metadata: own('a', { present_match: true }) }, has('x-2')] } }),
          state: policy(ANY, { filter_state: { key: 'envoy.string', string_match: { prefix: 's' } } }),
          address: policy(ANY, {
            filter_state: {
              key: 'envoy.string',
              address_match: { ranges: [{ address_prefix: '10.0.0.0', prefix_len: 8 }] },
            },
          }),
          route: policy(
            { sourced_metadata: { metadata_matcher: own('k', { bool_match: true }), metadata_source: 'ROUTE' } },
            has('x-3'),
          ),
          template: policy({
            uri_template: typed(
              'envoy.path.match.uri_template.uri_template_matcher',
              'envoy.extensions.path.match.uri_template.v3.UriTemplateMatchConfig',
              { path_template: '/users/{id}/*/files/{rest=**}' },
            ),
          }),
        },
      },
    },
  });
  t.equal(await on('main', '/', { 'x-1': '1' }), 200);
  t.equal(await on('main', '/', { 'x-2': '1' }), 200);
  t.equal(await on('main', '/', { 'x-state': 'st' }), 200);
  t.equal(await on('main', '/', { 'x-state': 'ts' }), 403);
  t.equal(await on('main', '/route', { 'x-3': '1' }), 200);
  t.equal(await on('main', '/', { 'x-3': '1' }), 403);
  for (const path of ['/users/1/2/files/', '/users/1/2/files/a/b', '/users/%20/2/files/a?q=1'])
    t.equal(await on('main', path), 200, path);
  for (const path of [
    '/users/1/files/a',
    '/users//2/files/a',
    '/users/1/2/files',
    '/users/1/2/filesa',
    '/users/1/2/3/files/a',
  ])
    t.equal(await on('main', path), 403, path);
});

besideEnvoy('decisions are recorded for logs, and counted by policy', async (t, program) => {
  const { baton, lines, on } = await start(t, program, {
    log: { rules: { action: 'LOG', policies: { a: policy(has('x-a')) } } },
    counted: {
      rules: { policies: { 'p one': policy(has('x-a')) } },
      rules_stat_prefix: 'own_',
      shadow_rules: { action: 'DENY', policies: { s: policy(has('x-s')) } },
      track_per_rule_stats: true,
    },
  });
  t.equal(await on('log', '/'), 200);
  t.equal(await on('log', '/', { 'x-a': '1' }), 200);
  t.equal(await on('counted', '/', { 'x-a': '1', 'x-s': '1' }), 200);
  t.equal(await on('counted', '/'), 403);
  t.same(await lines(4), [
    '200 via_upstream {"enforced_engine_result":"allowed"} {"access_log_hint":false}',
    '200 via_upstream {"enforced_effective_policy_id":"a","enforced_engine_result":"allowed"} {"access_log_hint":true}',
    '200 via_upstream {"own_enforced_effective_policy_id":"p one","own_enforced_engine_result":"allowed","shadow_effective_policy_id":"s","shadow_engine_result":"denied"} -',
    '403 rbac_access_denied_matched_policy[none] {"own_enforced_engine_result":"denied","shadow_engine_result":"allowed"} -',
  ]);
  await baton.waitForStats({
    'http.counted.rbac.own_.policy.p one.allowed': 1,
    'http.counted.rbac.policy.s.shadow_denied': 1,
    'http.log.rbac.allowed': 2,
  });
});
