// A refused configuration is reported with all its mistakes, each once, and without their consequences.

import t from 'tap';
import { ExtensionCatalog } from '../../../src/config/catalog/extension.js';
import { loadConfiguration } from '../../../src/config/load/load.js';
import { EXTENSIONS } from '../../../src/extensions/index.js';
import { CONFIGURATION_CHECKS } from '../../../src/server/configuration/configuration-checks.js';

const MANAGER = 'envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager';
const FILE_LOG = 'envoy.extensions.access_loggers.file.v3.FileAccessLog';
const MUTATION = 'envoy.extensions.filters.http.header_mutation.v3.HeaderMutation';
const AT = 'static_resources.listeners[0].filter_chains[0].filters[0].typed_config';

const ROUTE = '{ match: { prefix: / }, direct_response: { status: 200 } }';
const ANSWERS = `virtual_hosts: [ { name: v, domains: [ "*" ], routes: [ ${ROUTE} ] } ]`;

t.test('mistakes of nested extensions, of the schema and of formats are reported together', async (t) => {
  t.same(
    mistakes({
      manager: `via: "a\\0b", stream_idle_timeout: 1x, ${log('%FOO%')}`,
      routes: `${header('%BAR%')}, ${ANSWERS}`,
    }),
    [
      `${AT}.via`,
      `${AT}.stream_idle_timeout`,
      `${AT}.access_log[0].typed_config.log_format.text_format_source.inline_string`,
      `${AT}.route_config.response_headers_to_add[0].header.value`,
    ],
  );
});

t.test('mistakes of the whole bootstrap are reported together', async (t) => {
  const top = `application_log_config: { log_format: { text_format: "%Q" } }
admin: { access_log: [ { name: a, typed_config: { "@type": type.googleapis.com/${FILE_LOG}, path: /proc/self } } ], access_log_path: /proc }
stats_config: { stats_tags: [ { tag_name: a, regex: "(" } ] }
`;
  t.same(mistakes({ top, manager: 'stream_idle_timeout: 1x', routes: ANSWERS }), [
    'application_log_config.log_format',
    'admin.access_log[0].typed_config.path',
    'admin.access_log_path',
    'stats_config.stats_tags[0].regex',
    `${AT}.stream_idle_timeout`,
  ]);
});

t.test('a mistake that concerns every route is reported once', async (t) => {
  const routes = Array(3).fill(ROUTE).join(', ');
  t.same(
    mistakes({ routes: `${header('%FOO%')}, virtual_hosts: [ { name: v, domains: [ "*" ], routes: [ ${routes} ] } ]` }),
    [`${AT}.route_config.response_headers_to_add[0].header.value`],
  );
});

t.test('a domain of two virtual hosts is reported once', async (t) => {
  const host = (name: string) => `{ name: ${name}, domains: [ a.example ], routes: [ ${ROUTE} ] }`;
  t.same(mistakes({ routes: `virtual_hosts: [ ${host('v')}, ${host('w')} ]` }), [
    `${AT}.route_config.virtual_hosts[1].domains[0]`,
  ]);
});

t.test('consequences of a mistake are not reported', async (t) => {
  const hosts = (list: string) => mistakes({ routes: `virtual_hosts: [ ${list} ]` });
  t.same(hosts('3'), [`${AT}.route_config.virtual_hosts[0]`]);
  t.same(hosts(`{ name: v, domains: [ "*" ], routes: [ 4, ${ROUTE} ] }`), [
    `${AT}.route_config.virtual_hosts[0].routes[0]`,
  ]);
  t.same(hosts('{ name: v, domains: [ "*" ], routes: [ { match: { prefix: 1 }, direct_response: { status: 1 } } ] }'), [
    `${AT}.route_config.virtual_hosts[0].routes[0].match.prefix`,
    `${AT}.route_config.virtual_hosts[0].routes[0].direct_response.status`,
  ]);
  t.same(
    mistakes({
      top: 'admin: { access_log: [ { name: a, typed_config: { "@type": type.googleapis.com/shop.Log } }, 3 ] }\n',
    }),
    ['admin.access_log[0].typed_config.@type', 'admin.access_log[1]'],
  );
});

t.test('mistakes in header mutations are reported with their paths', async (t) => {
  const mutations = '{ request_mutations: [ { remove: host }, { append: { header: { key: a, value: "%FOO%" } } } ] }';
  const filter = `{ name: m, typed_config: { "@type": type.googleapis.com/${MUTATION}, mutations: ${mutations} } },`;
  const at = `${AT}.http_filters[0].typed_config.mutations.request_mutations`;
  t.same(mistakes({ filter }), [`${at}[0].remove`, `${at}[1].append.header.value`]);
});

function header(value: string): string {
  return `response_headers_to_add: [ { header: { key: a, value: "${value}" } } ]`;
}

function log(format: string): string {
  const source = `log_format: { text_format_source: { inline_string: "${format}" } }`;
  return `access_log: [ { name: f, typed_config: { "@type": type.googleapis.com/${FILE_LOG}, path: /dev/null, ${source} } } ]`;
}

interface Parts {
  /** YAML before the listener. */
  readonly top?: string;
  /** Fields of the connection manager, and of its route_config. */
  readonly manager?: string;
  readonly routes?: string;
  /** YAML before the router. */
  readonly filter?: string;
}

/** The paths of all mistakes in a bootstrap. */
function mistakes({ top = '', manager = '', routes = ANSWERS, filter = '' }: Parts): string[] {
  const yaml = `${top}static_resources:
  listeners:
  - name: l
    address: { socket_address: { address: 127.0.0.1, port_value: 0 } }
    filter_chains:
    - filters:
      - name: h
        typed_config: { "@type": type.googleapis.com/${MANAGER}, stat_prefix: a, ${manager === '' ? '' : `${manager},`}
          route_config: { ${routes} },
          http_filters: [ ${filter} { name: envoy.filters.http.router } ] }
`;
  const result = loadConfiguration(
    { yaml, logFormat: 'given' },
    new ExtensionCatalog(EXTENSIONS),
    CONFIGURATION_CHECKS,
  );
  return result.ok ? [] : result.errors.map(({ path, message }) => (/Cannot|undefined/.test(message) ? message : path));
}
