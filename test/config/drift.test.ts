// Keeps code and table consistent: src reads the fields that the table calls implemented, and the fields of the API that src
// reads are in the table.
//
// Names are compared, not types: a name that several messages have counts as found if one of them has it. One-word names (name,
// address) are therefore checked in one direction only, because any variable may have such a name.

import { readdirSync, readFileSync } from 'node:fs';
import t from 'tap';
import { packagePath } from '../../src/common/package/package-root.js';
import { type AnyRow, implementedBy, rowOf } from '../../src/config/implemented/index.js';
import { loadSchema } from '../../src/config/schema/schema.js';
import { EXTENSIONS } from '../../src/extensions/index.js';
import { ROUTE_TEST_FIELDS } from '../../src/server/route-tests/fields.js';

/** Fields that are implemented without being read, with the reason. */
const NOT_READ: { readonly [field: string]: string } = {
  'envoy.config.core.v3.SocketOption.description': 'it is for people',
  'envoy.config.core.v3.ApiConfigSource.transport_api_version': 'there is only one version',
  'envoy.config.metrics.v3.MetricsServiceConfig.transport_api_version': 'there is only one version',
  'envoy.extensions.filters.http.ext_authz.v3.ExtAuthz.transport_api_version': 'there is only one version',
  'envoy.config.ratelimit.v3.RateLimitServiceConfig.transport_api_version': 'there is only one version',
  'envoy.extensions.filters.network.ext_authz.v3.ExtAuthz.transport_api_version': 'there is only one version',
  'envoy.extensions.access_loggers.grpc.v3.CommonGrpcAccessLogConfig.transport_api_version':
    'there is only one version',
  'envoy.config.tap.v3.OutputSink.streaming_admin': 'traces are streamed unless the sink is buffered_admin',
  'envoy.config.bootstrap.v3.Bootstrap.default_regex_engine': 'there is only one engine',
  'envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy.upstream_connect_mode':
    'the only accepted value is the default behaviour',
};

const PROCESSOR = 'part of messages of external processors';

/** Names of the API that src reads or writes and no configuration can set, with the reason. */
const NOT_CONFIGURED: { readonly [name: string]: string } = {
  rate_limited: 'a stat of network filters',
  send_all_clusters: 'part of requests of load reporting services',
  load_reporting_interval: 'part of requests of load reporting services',
  report_endpoint_granularity: 'part of requests of load reporting services',
  rejected_data_points: 'part of responses from metrics collectors',
  error_message: 'part of responses from metrics collectors',
  current_limit: 'part of answers of rate limit services',
  duration_until_reset: 'part of answers of rate limit services',
  limit_remaining: 'part of answers of rate limit services',
  overall_code: 'part of answers of rate limit services',
  raw_body: 'part of answers of rate limit services',
  response_headers: PROCESSOR,
  response_trailers: PROCESSOR,
  request_trailers: PROCESSOR,
  clear_body: PROCESSOR,
  streamed_response: PROCESSOR,
  header_mutation: PROCESSOR,
  body_mutation: PROCESSOR,
  set_headers: PROCESSOR,
  remove_headers: PROCESSOR,
  request_body: PROCESSOR,
  immediate_response: PROCESSOR,
  override_message_timeout: PROCESSOR,
  metadata_context: PROCESSOR,
  end_of_stream: PROCESSOR,
  mode_override: PROCESSOR,
  denied_response: 'part of answers of authorization services',
  error_response: 'part of answers of authorization services',
  headers_to_remove: 'part of answers of authorization services',
  ok_response: 'part of answers of authorization services',
  query_parameters_to_remove: 'part of answers of authorization services',
  query_parameters_to_set: 'part of answers of authorization services',
};

/**
 * Rooms whose names are not about configuration: the table itself, the types, hints for old fields, the reader of binary
 * protos, the check of certificates (which also looks at refused parts), responses of the admin interface.
 */
const ELSEWHERE =
  /^(config\/(implemented|generated|text\/hints\.ts|forms\/binary-proto\.ts|schema\/certificates\.ts)|admin)\b/;

const schema = loadSchema();
const table = implementedBy([...EXTENSIONS, { implemented: ROUTE_TEST_FIELDS }]);
const sources = sourcesOf('src');

t.test('each implemented field is read', async (t) => {
  const exceptions = new Set(Object.keys(NOT_READ));
  const identifiers = found(/\b([a-z][a-z0-9_]*)\b/g);
  for (const name of Object.keys(table)) {
    for (const field of schema.message(name)!.fields.values()) {
      const row = rowOf(table, name, field.name);
      if (row === undefined || hasNoEffect(row)) continue;
      const isExcepted = exceptions.delete(`${name}.${field.name}`);
      const isRead = identifiers.has(field.name);
      if (isRead === isExcepted) t.fail(`${name}.${field.name} is ${isRead ? 'read after all' : 'read nowhere'}`);
    }
  }
  t.same([...exceptions], [], 'every exception is an implemented field');
});

/** Returns whether the row allows only the default of the field. */
function hasNoEffect(row: AnyRow): boolean {
  return typeof row === 'object' && ['refused', 'accepted', 'onlyEmpty', 'onlyFalse'].some((kind) => kind in row);
}

t.test('each field of the API that is read can be configured', async (t) => {
  const configured = new Set<string>();
  for (const name of Object.keys(table)) {
    for (const field of schema.message(name)!.fields.keys())
      if (rowOf(table, name, field) !== undefined) configured.add(field);
  }
  const exceptions = new Set(Object.keys(NOT_CONFIGURED));
  // As properties, or destructured. Names that are only written belong to responses.
  const identifiers = found(
    /\.([a-z][a-z0-9_]*)\b(?!\()/g,
    /(?<=[{,]\s*)([a-z][a-z0-9_]*)(?=[^{}]*\} ?(?:=[^>]|: [A-Z]))/g,
  );
  for (const name of fieldNames()) {
    if (!name.includes('_') || configured.has(name) || !identifiers.has(name)) continue;
    if (!exceptions.delete(name)) t.fail(`${name} is read in ${[...identifiers.get(name)!].join(', ')}`);
  }
  t.same([...exceptions], [], 'every exception is needed');
});

/** Returns the sources by file, without comments, strings and the rows of extensions. */
function sourcesOf(folder: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const file of readdirSync(packagePath(folder), { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.ts') || ELSEWHERE.test(file)) continue;
    const source = readFileSync(packagePath(folder, file), 'utf8')
      .replace(/\/\*.*?\*\//gs, '')
      .replace(/\/\/.*$/gm, '')
      .replace(/'(?:[^'\\\n]|\\.)*'/g, "''")
      .replace(/\bimplemented: \{(?:[^\n]*\},$|.*?\n {2}\},)/gms, '')
      .replace(/: ImplementedTable = \{.*?\n\};/gs, '')
      .replace(/ = \{\n(?:(?!\n\}).)*\n\} satisfies ImplementedTable;/gs, '');
    found.set(file, source);
  }
  return found;
}

/** Returns the identifiers that a pattern matches, with their files. */
function found(...patterns: readonly RegExp[]): ReadonlyMap<string, ReadonlySet<string>> {
  const identifiers = new Map<string, Set<string>>();
  for (const [file, source] of sources) {
    for (const [, word] of patterns.flatMap((pattern) => [...source.matchAll(pattern)])) {
      if (!identifiers.has(word!)) identifiers.set(word!, new Set());
      identifiers.get(word!)!.add(file);
    }
  }
  return identifiers;
}

/** Returns the names of all fields that an Envoy configuration can have. */
function fieldNames(): ReadonlySet<string> {
  const names = new Set<string>();
  for (const message of schema.messageNames()) {
    if (message.startsWith('envoy.admin.')) continue;
    for (const field of schema.message(message)!.fields.keys()) names.add(field);
  }
  return names;
}
