// Mistakes of an extension's author are reported with its name and the place where the configuration uses it.

import t from 'tap';
import { type Extension, ExtensionCatalog } from '../../src/config/catalog/extension.js';
import { EXTENSIONS } from '../../src/extensions/index.js';
import { TEST_EXTENSIONS } from './catalog.js';
import { GOOD } from './good.js';
import { problemsOf } from './load-text.js';
import { partialTable } from './partial-table.js';

const BUFFER = 'envoy.extensions.filters.http.buffer.v3.Buffer';

function catalogWith(extension: Partial<Extension>): ExtensionCatalog {
  const whole = { category: 'envoy.filters.http', name: 'acme.a', typeUrls: [], ...extension };
  return new ExtensionCatalog([...TEST_EXTENSIONS, whole]);
}

t.test('two extensions with one name, or with one message', async (t) => {
  t.throws(() => catalogWith({ name: 'envoy.filters.http.buffer' }), {
    message: "two extensions are called 'envoy.filters.http/envoy.filters.http.buffer'",
  });
  t.throws(() => catalogWith({ typeUrls: [`type.googleapis.com/${BUFFER}`] }), {
    message: `the extensions 'envoy.filters.http.buffer' and 'acme.a' have the same message ${BUFFER}`,
  });
});

t.test('a message that no .proto file defines', async (t) => {
  const catalog = catalogWith({ typeUrls: ['type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lau'] });
  t.match(
    problemsOf(GOOD, { catalog }),
    "the extension 'acme.a' is configured by 'envoy.extensions.filters.http.lua.v3.Lau', which no .proto file defines; did you mean 'envoy.extensions.filters.http.lua.v3.Lua'?",
  );
});

t.test('a message that no extension has', async (t) => {
  const text = httpFilter('{ "@type": type.googleapis.com/opentelemetry.proto.resource.v1.Resource }');
  t.match(problemsOf(text), /yaml:8:\d+: .* no extension in src\/extensions\/index\.ts has this message/);
});

t.test('a check that throws', async (t) => {
  const catalog = catalogWith({
    typeUrls: ['type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua'],
    implemented: partialTable({ 'envoy.extensions.filters.http.lua.v3.Lua': { stat_prefix: true } }),
    validate() {
      throw new TypeError('x is undefined');
    },
  });
  const problems = problemsOf(httpFilter('{ "@type": type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua }'), {
    catalog,
  });
  t.match(
    problems,
    /yaml:8:\d+: .*http_filters\[0\]\.typed_config: validate\(\) of 'acme\.a' failed: TypeError: x is undefined at .*faulty-extensions\.test\./,
  );
});

t.test('an HTTP filter compiles its per-route configuration', async (t) => {
  for (const { category, name, typeUrls, ...rest } of EXTENSIONS) {
    const takesFromRoutes = 'takesOwnMessageFromRoutes' in rest || typeUrls.length > 1;
    if (category !== 'envoy.filters.http' || !takesFromRoutes) continue;
    t.ok('compileRouteConfig' in rest, `${name} takes messages from routes, so it needs compileRouteConfig()`);
  }
});

function httpFilter(config: string): string {
  return `static_resources:
  listeners:
  - name: l
    address: { socket_address: { address: 127.0.0.1, port_value: 80 } }
    filter_chains: [ { filters: [ { name: h, typed_config: {
      "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager,
      stat_prefix: h, route_config: {}, http_filters: [
        { name: x, typed_config: ${config} },
        { name: envoy.filters.http.router } ] } } ] } ]
`;
}
