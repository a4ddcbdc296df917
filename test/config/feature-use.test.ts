// Fields that Envoy's API disallows must be allowed by runtime; uses of unfinished ones are counted.

import t from 'tap';
import { type Extension, ExtensionCatalog } from '../../src/config/catalog/extension.js';
import { BOOTSTRAP } from '../../src/config/implemented/bootstrap.js';
import { TEST_EXTENSIONS } from './catalog.js';
import { loadText, problemsOf } from './load-text.js';
import { partialTable } from './partial-table.js';

const TRACE = 'envoy.config.trace.v3';

/** Messages with deprecated and unfinished fields, registered as if they configured access loggers. */
const SHOWN: Extension = {
  category: 'envoy.access_loggers',
  name: 'shown',
  typeUrls: [
    `${TRACE}.DynamicOtConfig`,
    `${TRACE}.ZipkinConfig`,
    'envoy.extensions.common.async_files.v3.AsyncFileManagerConfig',
  ],
  implemented: partialTable({
    'envoy.config.trace.v3.DynamicOtConfig': 'all',
    'envoy.config.trace.v3.ZipkinConfig': 'all',
    'envoy.extensions.common.async_files.v3.AsyncFileManagerConfig': 'all',
    'envoy.extensions.common.async_files.v3.AsyncFileManagerConfig.ThreadPool': 'all',
    // The values of layers are read.
    'envoy.config.bootstrap.v3.Bootstrap': {
      ...(BOOTSTRAP['envoy.config.bootstrap.v3.Bootstrap'] as object),
      layered_runtime: true,
    },
    'envoy.config.bootstrap.v3.LayeredRuntime': 'all',
    'envoy.config.bootstrap.v3.RuntimeLayer': 'all',
  }),
};
const catalog = new ExtensionCatalog([...TEST_EXTENSIONS, SHOWN]);

function withLogger(type: string, fields: string, layer = '{}'): string {
  return `layered_runtime: { layers: [ { name: static, static_layer: ${layer} } ] }
static_resources:
  clusters: [ { name: known, load_assignment: { cluster_name: known } } ]
  listeners:
  - name: l
    address: { pipe: { path: /tmp/l } }
    filter_chains: [ { filters: [ { name: t, typed_config: {
      "@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, stat_prefix: x, cluster: known,
      access_log: [ { name: shown, typed_config: { "@type": type.googleapis.com/${type}, ${fields} } } ] } } ] } ]
`;
}

const LIBRARY = 'library: /lib/tracer.so, config: {}';
const KEY = `envoy.deprecated_features:${TRACE}.DynamicOtConfig`;

t.test('a field that is disallowed by default is refused with its runtime key', async (t) => {
  const found = problemsOf(withLogger(`${TRACE}.DynamicOtConfig`, LIBRARY), { catalog });
  t.match(
    found,
    `field 'library' of ${TRACE}.DynamicOtConfig is deprecated and disallowed by default; the runtime key ` +
      `'${KEY}.library' set to true in a static layer allows it`,
  );
  t.match(found, `field 'config' of ${TRACE}.DynamicOtConfig is deprecated and disallowed by default`);
});

t.test('a static layer allows it, by its key or by the key for all; a later layer can disallow it', async (t) => {
  for (const layer of [
    `{ "${KEY}.library": true, "${KEY}.config": "true" }`,
    '{ envoy.features.enable_all_deprecated_features: true }',
    '{ envoy: { features: { enable_all_deprecated_features: true } } }',
  ]) {
    t.match(loadText(withLogger(`${TRACE}.DynamicOtConfig`, LIBRARY, layer), { catalog }), {
      ok: true,
      counts: { deprecatedUses: 2 },
      warnings: [{ message: /library.* is deprecated$/ }, { message: /config.* is deprecated$/ }],
    });
  }
  const text = withLogger(`${TRACE}.DynamicOtConfig`, LIBRARY, `{ "${KEY}.library": false, "${KEY}.config": true }`);
  t.match(problemsOf(text, { catalog }), `disabled by the runtime key '${KEY}.library'`);
});

t.test('a disallowed default is refused if the field is not set', async (t) => {
  const fields = 'collector_cluster: known, collector_endpoint: /v1';
  t.match(
    problemsOf(withLogger(`${TRACE}.ZipkinConfig`, fields), { catalog }),
    "collector_endpoint_version: 'DEPRECATED_AND_UNAVAILABLE_DO_NOT_USE', the default of " +
      'collector_endpoint_version, is deprecated and disallowed by default',
  );
  const chosen = `${fields}, collector_endpoint_version: HTTP_JSON`;
  t.match(loadText(withLogger(`${TRACE}.ZipkinConfig`, chosen), { catalog }), { ok: true });
});

t.test('work in progress is accepted with a warning and counted', async (t) => {
  const files = 'envoy.extensions.common.async_files.v3.AsyncFileManagerConfig';
  t.match(loadText(withLogger(files, 'thread_pool: { thread_count: 1 }'), { catalog }), {
    ok: true,
    counts: { unfinishedUses: 2 },
    warnings: [
      { message: `${files} is work in progress in Envoy's API and may change without notice` },
      { message: `${files}.ThreadPool is work in progress in Envoy's API and may change without notice` },
    ],
  });
});
