// The field `cors` of virtual hosts and route actions: accepted, with a warning if no filter reads it.

import t from 'tap';
import { type Extension, ExtensionCatalog } from '../../src/config/catalog/extension.js';
import { TEST_EXTENSIONS } from './catalog.js';
import { loadText } from './load-text.js';
import { partialTable } from './partial-table.js';

const PACKAGE = 'envoy.extensions.filters.http.cors.v3';
const CORS: Extension = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.cors',
  typeUrls: [`${PACKAGE}.Cors`, `${PACKAGE}.CorsPolicy`],
  routeField: 'cors',
  implemented: partialTable({ [`${PACKAGE}.CorsPolicy`]: 'all' }),
};
const FILTER = `{ name: c, typed_config: { "@type": ${PACKAGE}.Cors } }`;
const TYPED = `typed_per_filter_config: { c: { "@type": ${PACKAGE}.CorsPolicy } }`;
const AT_HOST = 'virtual_hosts[0].cors';
const AT_ROUTE = 'virtual_hosts[0].routes[0].route.cors';
const NO_FILTER = "it has no effect: the chain has no filter 'envoy.filters.http.cors', or has it disabled";
const REPLACED = "it has no effect: typed_per_filter_config configures the filter 'c' instead";

/** Returns the warnings about the two fields, with further fields in route configuration, virtual host and route. */
function warningsOf(filter: string, routes = '', host = '', route = ''): string[] {
  const result = loadText(
    `
static_resources:
  listeners:
  - name: web
    address: { socket_address: { address: 127.0.0.1, port_value: 0 } }
    filter_chains:
    - filters:
      - name: http
        typed_config:
          "@type": envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: web
          route_config:
            ${routes}
            virtual_hosts:
            - name: all
              domains: [ "*" ]
              cors: { max_age: "1" }
              ${host}
              routes:
              - match: { prefix: / }
                route: { cluster: a, cors: { max_age: "2" } }
                ${route}
          http_filters:
          ${filter && `- ${filter}`}
          - { name: r, typed_config: { "@type": envoy.extensions.filters.http.router.v3.Router } }
  clusters: [ { name: a, load_assignment: { cluster_name: a } } ]
`,
    { catalog: new ExtensionCatalog([...TEST_EXTENSIONS, CORS]), skipDeprecatedLogs: true },
  );
  if (!result.ok) throw new Error(result.errors.map(({ message }) => message).join());
  return result.warnings.map(({ message, path }) => `${path.replace(/^.*route_config\./, '')}: ${message}`);
}

t.test('the chain needs a filter that reads the fields', async (t) => {
  const none = [`${AT_HOST}: ${NO_FILTER}`, `${AT_ROUTE}: ${NO_FILTER}`];
  t.same(warningsOf(''), none);
  t.same(warningsOf(FILTER), []);
  t.same(warningsOf(FILTER.replace('c,', 'c, disabled: true,')), none);
  const discovered = (url: string) =>
    `{ name: c, config_discovery: { config_source: { path: /c.yaml }, type_urls: [ ${url} ] } }`;
  t.same(warningsOf(discovered(`${PACKAGE}.Cors`)), []);
  t.same(warningsOf(discovered('envoy.extensions.filters.http.buffer.v3.Buffer')), none);
});

t.test('typed_per_filter_config replaces the fields on all routes that it applies to', async (t) => {
  t.same(warningsOf(FILTER, TYPED), [`${AT_HOST}: ${REPLACED}`, `${AT_ROUTE}: ${REPLACED}`]);
  t.same(warningsOf(FILTER, '', TYPED), [`${AT_HOST}: ${REPLACED}`, `${AT_ROUTE}: ${REPLACED}`]);
  t.same(warningsOf(FILTER, '', '', TYPED), [`${AT_ROUTE}: ${REPLACED}`], 'the virtual host may have other routes');
  t.same(warningsOf(`${FILTER}\n          - ${FILTER.replace('c,', 'd,')}`, TYPED), [], 'another filter reads them');
  // A filter that is only enabled there still reads the fields.
  const wrapped = (fields: string) =>
    `typed_per_filter_config: { c: { "@type": envoy.config.route.v3.FilterConfig, ${fields} } }`;
  t.same(warningsOf(FILTER, '', wrapped('config: {}')), []);
  t.same(warningsOf(FILTER, '', wrapped(`config: { "@type": ${PACKAGE}.CorsPolicy }`)), [
    `${AT_HOST}: ${REPLACED}`,
    `${AT_ROUTE}: ${REPLACED}`,
  ]);
});
