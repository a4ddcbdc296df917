// Expressions (CEL) where configurations may have them: formats, filters of access logs, RBAC policies and matchers, descriptors of rate
// limits. Results are Envoy's.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { besideEnvoy } from '../harness/envoy.js';
import {
  bootstrap,
  type Config,
  httpListener,
  ROUTER_FILTER,
  rawExchange,
  startBaton,
  startEchoUpstream,
  staticCluster,
  waitFor,
} from '../harness/index.js';
import { answering, headerOption, managerOf, routeTo, startProxy } from './proxy.js';

const TYPE = 'type.googleapis.com';
const ALWAYS = { permissions: [{ any: true }], principals: [{ any: true }] };

/** What an expression is for a request, for its response, and in its log line. `null`: it has no value. */
const VALUES: readonly (readonly [
  expression: string,
  request: string | null,
  response: string | null,
  log: unknown,
])[] = [
  ['request.path', '/a/b?c=1', '/a/b?c=1', '/a/b?c=1'],
  ['request.url_path', '/a/b', '/a/b', '/a/b'],
  ['request.query', 'c=1', 'c=1', 'c=1'],
  ['request.headers["X-Id"]', 'one', 'one', 'one'],
  ['request.headers["none"]', null, null, null],
  ['request.headers["none"] == "" || true', 'true', 'true', true],
  ['request.method + ""', null, null, null],
  ['request.protocol', 'HTTP/1.1', 'HTTP/1.1', 'HTTP/1.1'],
  ['request.size', '0', '0', 0],
  ['request.useragent.matches("^te[s]t$")', 'true', 'true', true],
  ['has(request.duration)', 'false', 'false', true],
  ['has(request.nope)', 'false', 'false', false],
  ['response.code', null, '200', 200],
  ['response.flags', '0', '0', 0],
  ['response.grpc_status', null, '2', 2],
  ['has(response.backend_latency)', 'false', 'false', true],
  ['source.address == "127.0.0.1:" || source.port > 1024', 'true', 'true', true],
  ['connection.mtls', 'false', 'false', false],
  ['connection.tls_version', null, null, null],
  ['has(upstream.address)', 'false', 'true', true],
  ['upstream.request_attempt_count', '1', '1', 1],
  ['upstream.locality.region', null, '', ''],
  ['xds.cluster_name', 'host', 'host', 'host'],
  ['xds.route_name', 'named', 'named', 'named'],
  ['xds.route_metadata.filter_metadata.ns.key', 'value', 'value', 'value'],
  [
    'xds.route_metadata',
    ...same('filter_metadata { key: "ns" value { fields { key: "key" value { string_value: "value" } } } }'),
    { filter_metadata: { ns: { key: 'value' } } },
  ],
  ['xds.virtual_host_name', 'all', 'all', 'all'],
  ['xds.listener_direction', '0', '0', 0],
  ['metadata.filter_metadata.set.list[1]', 'x', 'x', 'x'],
  ['size(metadata.filter_metadata) > 0', 'true', 'true', true],
  ['filter_state["key"] == b"state"', 'true', 'true', true],
  ['1.5', '1.5', '1.5', 1.5],
  ['[1, "a"]', 'CelList value', 'CelList value', [1, 'a']],
  ['duration("90s")', '1m30s', '1m30s', '90s'],
  ['null', 'NULL', 'NULL', null],
  ['"a)b"', 'a)b', 'a)b', 'a)b'],
];

function same(text: string): [string, string] {
  return [text, text];
}

besideEnvoy('formats have the values of expressions, and logs the lines for which one is true', async (t, program) => {
  const host = await startEchoUpstream(t);
  const path = join(t.testdir(), 'log');
  const headers = VALUES.map(([expression], index) =>
    headerOption(`x-v${index}`, `%CEL(${expression})%`, {
      append_action: 'OVERWRITE_IF_EXISTS_OR_ADD',
      keep_empty_value: true,
    }),
  );
  const format = Object.fromEntries(VALUES.map(([expression], index) => [`v${index}`, `%TYPED_CEL(${expression})%`]));
  const cel_config = { enable_string_conversion: true, enable_string_concat: true, enable_string_functions: true };
  const { on } = await startProxy(t, {
    ...program,
    listeners: {
      values: managerOf(
        [
          routeTo(
            { prefix: '/' },
            'host',
            {},
            {
              name: 'named',
              metadata: { filter_metadata: { ns: { key: 'value' } } },
              request_headers_to_add: headers,
              response_headers_to_add: headers,
            },
          ),
        ],
        {
          access_log: [
            log(path, { json_format: format }, 'response.code == 200 && request.path.startsWith("/a/b")'),
            log(path, { text_format_source: { inline_string: 'never\n' } }, 'request.headers["none"] == "x"'),
            log(path, { text_format_source: { inline_string: 'text\n' } }, '"true"'),
            log(
              path,
              {
                json_format: { made: '%CEL("a,b".split(",")[1].upperAscii() + string(1)):2%' },
                formatters: [cel({ cel_config })],
              },
              'string(response.code) == "200"',
              { enable_string_conversion: true },
            ),
          ],
          http_filters: [...stateFilters(), ROUTER_FILTER],
        },
      ),
    },
    clusters: [staticCluster('host', host.port)],
  });
  const sent = { 'x-id': 'one', 'user-agent': 'test' };
  await on('values', '/other', { headers: sent });
  const answer = await on('values', '/a/b?c=1', { headers: sent });
  const received = (JSON.parse(answer.body) as { headers: Record<string, string> }).headers;
  const lines = () => readFileSync(path, 'utf8').trim().split('\n');
  await waitFor(() => lines().length >= 3, { what: 'log lines' });
  const logged = JSON.parse(lines().find((line) => line.includes('"v0"'))!) as Record<string, unknown>;
  t.same(
    lines().filter((line) => !line.includes('"v0"')),
    ['{"made":"B1"}', '{"made":"B1"}'],
  );
  for (const [index, [expression, request, response, line]] of VALUES.entries()) {
    t.equal(shown(received[`x-v${index}`]), request ?? '', `${expression} in the request`);
    t.equal(shown(answer.headers[`x-v${index}`]), response ?? '', `${expression} in the response`);
    t.same(logged[`v${index}`], line, `${expression} in the log`);
  }
});

/** Envoy writes spaces at the end of messages. */
function shown(value: string | string[] | undefined): string {
  return String(value ?? '').trim();
}

const variable = (name: string) => ({ ident_expr: { name } });
const field = (group: string, name: string) => ({ select_expr: { operand: variable(group), field: name } });
const text = (value: string) => ({ const_expr: { string_value: value } });
const call = (name: string, ...args: Config[]) => ({ call_expr: { function: name, args } });
const isPath = (path: string) => call('_==_', field('request', 'path'), text(path));

besideEnvoy('policies and matchers allow what an expression is true for', async (t, program) => {
  const inside = { call_expr: { target: field('.request', 'url_path'), function: 'startsWith', args: [text('/q')] } };
  const outside = { ...policy({ condition: call('!_', inside) }), action: 'DENY' };
  const listeners: Record<string, Config> = {
    true: rbac({ rules: policy({ condition: isPath('/p') }) }),
    false: rbac({ rules: policy({ condition: isPath('/q') }) }),
    checked: rbac({ rules: policy({ checked_condition: { expr: isPath('/p') } }) }),
    error: rbac({ rules: policy({ condition: call('_==_', field('request', 'nope'), text('')) }) }),
    text: rbac({ rules: policy({ condition: text('true') }) }),
    joined: rbac({
      rules: policy({ condition: call('_==_', call('_+_', text('/'), text('p')), field('request', 'path')) }),
    }),
    enabled: rbac({
      rules: policy({
        condition: call('_==_', call('_+_', text('/'), text('p')), field('request', 'path')),
        cel_config: { enable_string_concat: true },
      }),
    }),
    'denied by an error': rbac({
      rules: { ...policy({ condition: call('_==_', field('request', 'nope'), text('')) }), action: 'DENY' },
    }),
    'denied outside': rbac({ rules: outside }),
    'matcher true': rbac({ matcher: matcher({ cel_expr_parsed: { expr: isPath('/p') } }) }),
    'matcher false': rbac({ matcher: matcher({ checked_expr: { expr: isPath('/q') } }) }),
    'matcher error': rbac({ matcher: matcher({ parsed_expr: { expr: field('response', 'code') } }) }),
  };
  const { on, ports } = await startProxy(t, { ...program, listeners });
  // As in Envoy, an error is not true either where it would deny.
  const allowed = ['true', 'checked', 'enabled', 'denied by an error', 'matcher true'];
  for (const name of Object.keys(listeners))
    t.equal((await on(name, '/p')).status, allowed.includes(name) ? 200 : 403, name);
  const connect = await rawExchange(ports['denied outside']!, 'CONNECT a:80 HTTP/1.1\r\nhost: a:80\r\n\r\n', {
    until: /\r\n\r\n/,
  });
  t.match(connect.text, ' 403 ', 'the path of a CONNECT is empty, not an error');
});

besideEnvoy('descriptors of rate limits have the values of expressions', async (t, program) => {
  const listeners: Record<string, Config> = {
    path: limited({ text: 'request.path' }, '/p'),
    number: limited({ text: '1234567.5' }, '1.23457e+06'),
    parsed: limited({ parsed: field('request', 'path') }, '/p'),
    error: limited({ text: 'request.nope' }, ''),
    skipped: limited({ text: 'request.nope', skip_if_error: true }, ''),
  };
  const { on } = await startProxy(t, { ...program, listeners });
  for (const name of Object.keys(listeners)) {
    const second = ['path', 'number', 'parsed'].includes(name) ? 429 : 200;
    t.equal((await on(name, '/p')).status, 200, name);
    t.equal((await on(name, '/p')).status, second, `${name} again`);
  }
});

t.test('an invalid expression is refused with its place', async (t) => {
  for (const [name, manager, ...messages] of [
    [
      'filter',
      managerOf([], { access_log: [log('/dev/null', undefined, '1 +')], http_filters: [ROUTER_FILTER] }),
      'filter.extension_filter.typed_config.expression',
      'not an expression: Unexpected token: EOF',
    ],
    [
      'macro',
      managerOf([], { access_log: [log('/dev/null', undefined, '[1].all(x, x > 0)')], http_filters: [ROUTER_FILTER] }),
      'the macro all() is not available here',
    ],
    [
      'pattern',
      managerOf([], {
        access_log: [log('/dev/null', undefined, 'request.path.matches("(")')],
        http_filters: [ROUTER_FILTER],
      }),
      'matches(): invalid regular expression',
    ],
    [
      'policy',
      rbac({ rules: policy({ condition: call('nope') }) }),
      'rules.policies.p.condition',
      'there is no function nope()',
    ],
    ['string', rbac({ matcher: matcher({ cel_expr_string: 'true' }) }), 'cel_expr_string', 'as in Envoy'],
    ['descriptor', limited({ text: 'string(1)' }, ''), 'extension.typed_config.text', 'enable_string_conversion'],
  ] as [string, Config, ...string[]][]) {
    const output = await refusal(t, manager);
    for (const message of messages) t.ok(output.includes(message), `${name}: ${message}\n${output}`);
  }
});

async function refusal(t: Test, manager: Config): Promise<string> {
  const config = bootstrap({ listeners: [httpListener('l', 0, manager)], clusters: [] });
  const baton = await startBaton(t, { config, args: ['--mode', 'validate'], wait: 'spawned' });
  await baton.exited;
  return baton.stderr;
}

function cel(more: Config): Config {
  return { name: 'cel', typed_config: { '@type': `${TYPE}/envoy.extensions.formatter.cel.v3.Cel`, ...more } };
}

function log(path: string, log_format: Config | undefined, expression: string, cel_config?: Config): Config {
  const filter = `${TYPE}/envoy.extensions.access_loggers.filters.cel.v3.ExpressionFilter`;
  return {
    name: 'file',
    filter: { extension_filter: { name: 'cel', typed_config: { '@type': filter, expression, cel_config } } },
    typed_config: { '@type': `${TYPE}/envoy.extensions.access_loggers.file.v3.FileAccessLog`, path, log_format },
  };
}

/** Filters that set metadata and filter state of a request. */
function stateFilters(): Config[] {
  const value = { list: [1, 'x'] };
  const format_string = { text_format_source: { inline_string: 'state' } };
  const state = { object_key: 'key', factory_key: 'envoy.string', format_string };
  return [
    filterOf('set_metadata', 'Config', { metadata: [{ metadata_namespace: 'set', value }] }),
    filterOf('set_filter_state', 'Config', { on_request_headers: [state] }),
  ];
}

function filterOf(name: string, message: string, config: Config): Config {
  return { name, typed_config: { '@type': `${TYPE}/envoy.extensions.filters.http.${name}.v3.${message}`, ...config } };
}

function answered(filter: Config): Config {
  return managerOf([answering({ prefix: '/' }, 'yes')], { http_filters: [filter, ROUTER_FILTER] });
}

function rbac(config: Config): Config {
  return answered(filterOf('rbac', 'RBAC', config));
}

function policy(condition: Config): Config {
  return { policies: { p: { ...ALWAYS, ...condition } } };
}

function matcher(expr_match: Config): Config {
  const input = { name: 'input', typed_config: { '@type': `${TYPE}/xds.type.matcher.v3.HttpAttributesCelMatchInput` } };
  const custom_match = { name: 'cel', typed_config: { '@type': `${TYPE}/xds.type.matcher.v3.CelMatcher`, expr_match } };
  const action = { name: 'action', typed_config: { '@type': `${TYPE}/envoy.config.rbac.v3.Action`, name: 'allowed' } };
  const predicate = { single_predicate: { input, custom_match } };
  return { matcher_list: { matchers: [{ predicate, on_match: { action } }] } };
}

/** A filter that lets one request with this value of a descriptor pass. */
function limited(expression: Config, value: string): Config {
  const type = `${TYPE}/envoy.extensions.rate_limit_descriptors.expr.v3.Descriptor`;
  const extension = { name: 'expr', typed_config: { '@type': type, descriptor_key: 'k', ...expression } };
  const percent = { default_value: { numerator: 100 } };
  return answered(
    filterOf('local_ratelimit', 'LocalRateLimit', {
      stat_prefix: 'limit',
      filter_enabled: percent,
      filter_enforced: percent,
      token_bucket: { max_tokens: 1000, fill_interval: '60s' },
      rate_limits: [{ actions: [{ extension }] }],
      descriptors: [{ entries: [{ key: 'k', value }], token_bucket: { max_tokens: 1, fill_interval: '600s' } }],
    }),
  );
}
