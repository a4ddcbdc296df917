// The JSON Schema accepts everything that the loader accepts, and no fields that are unknown or not implemented.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv, type ValidateFunction } from 'ajv';
import t from 'tap';
import { parse } from 'yaml';
import { mutateConfiguration, pick } from '../../scripts/fuzz/mutation.js';
import { jsonSchema } from '../../scripts/json-schema.js';
import { packagePath } from '../../src/common/package/package-root.js';
import { Random } from '../../src/common/random.js';
import { ExtensionCatalog } from '../../src/config/catalog/extension.js';
import { IMPLEMENTED, rowOf } from '../../src/config/implemented/index.js';
import { loadConfiguration } from '../../src/config/load/load.js';
import { jsonSchemaPath } from '../../src/config/schema/json-schema-path.js';
import { messageNameOf } from '../../src/config/schema/message-name.js';
import { loadSchema } from '../../src/config/schema/schema.js';
import { EXTENSIONS } from '../../src/extensions/index.js';
import { GOOD } from './good.js';

const schema = JSON.parse(readFileSync(jsonSchemaPath(), 'utf8')) as { readonly [keyword: string]: unknown };
const catalog = new ExtensionCatalog(EXTENSIONS);

// ajv's strict mode refuses keywords without an effect. Properties may be required where an outer schema describes them, with
// any type.
const ajv = new Ajv({ strict: true, strictRequired: false, strictTypes: false, allErrors: true });
const validators = new Map<string, ValidateFunction>();

/** Those for Kubernetes are manifests. */
const EXAMPLES = filesOf('examples', /^(?!kubernetes\/).*\.yaml$/);
/** Configurations, without the files that they name and those for the admin interface. */
const BOOTSTRAPS = EXAMPLES.filter((file) => /^# yaml-language-server/.test(readFileSync(file, 'utf8')));
const FILES = [...BOOTSTRAPS, ...filesOf('test/config/corpus', /^[^/]*\.(yaml|json)$/)];

t.test('the generated file matches the table', async (t) => {
  t.same(schema, JSON.parse(JSON.stringify(jsonSchema())));
});

t.test('it is a valid JSON Schema', async (t) => {
  t.ok(ajv.validateSchema(schema), ajv.errorsText());
  t.doesNotThrow(() => schemaErrors({}));
});

t.test('every example is valid', async (t) => {
  t.ok(BOOTSTRAPS.length > 15);
  for (const file of BOOTSTRAPS) t.same(schemaErrors(read(file)), [], file);
  for (const file of EXAMPLES.filter((name) => !BOOTSTRAPS.includes(name))) {
    const content = read(file) as { readonly resources?: readonly Resource[] } | readonly Resource[];
    const resources = Array.isArray(content) ? content : (content as { resources?: readonly Resource[] }).resources;
    // The others are a body for POST /tap, and route tests.
    t.ok(resources || file.endsWith('/requests/tap.yaml') || file.includes('/route-tests/'), file);
    for (const { '@type': url, ...resource } of (resources ?? []) as readonly Resource[]) {
      t.same(schemaErrors(resource, `#/definitions/${messageNameOf(url)}`), [], `${file}: ${url}`);
    }
  }
});

t.test('every configuration of the corpus that loads is valid', async (t) => {
  for (const file of FILES) {
    if (!loadConfiguration({ path: file }, catalog).ok) continue;
    t.same(schemaErrors(read(file)), [], file);
  }
  t.same(schemaErrors(parse(GOOD, YAML)), []);
});

t.test('values of the wrong type that the loader accepts are valid', async (t) => {
  const random = new Random(1);
  const seeds = [...FILES.map(read), parse(GOOD, YAML)];
  let accepted = 0;
  for (let left = 400; left > 0; left--) {
    const mutant = mutateConfiguration(random, pick(random, seeds));
    if (!loadConfiguration({ yaml: JSON.stringify(mutant) }, catalog).ok) continue;
    accepted++;
    const errors = schemaErrors(mutant);
    if (errors.length > 0) t.same(errors, [], JSON.stringify(mutant));
  }
  t.ok(accepted > 20, `${accepted} were accepted`);
});

t.test('all spellings that the loader accepts are valid', async (t) => {
  for (const config of [
    { staticResources: { clusters: [] }, statsFlushInterval: '1.5s', node: null },
    { admin: { address: { socket_address: { address: '::1', port_value: '80', ipv4_compat: 'Yes' } } } },
    { static_resources: { clusters: [{ name: 'a', type: 'strict_dns', lb_policy: 0, load_assignment: {} }] } },
    { static_resources: { clusters: { name: 'a', load_assignment: {} } } },
    withPolicies({ typed_extension_config: { name: 'a', typed_config: { '@type': 'a/b.C', d: 1 } } }),
    withRouteConfig({ '@type': WRAPPER, config: {} }),
    withRouteConfig({ '@type': WRAPPER, isOptional: true, config: { '@type': 'a/b.C', d: 1 } }),
    withRouteConfig({ '@type': WRAPPER, config: { '@type': BUFFER_PER_ROUTE, disabled: true } }),
    { static_resources: { clusters: [{ name: 1.5, alt_stat_name: 3_000_000_000, load_assignment: {} }] } },
  ]) {
    t.same(schemaErrors(config), [], JSON.stringify(config));
  }
});

t.test('mistakes are invalid', async (t) => {
  const listener = (typed: object) => ({
    static_resources: { listeners: [{ filter_chains: [{ filters: [{ name: 'x', typed_config: typed }] }] }] },
  });
  const TCP = 'type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy';
  t.same(schemaErrors(listener({ '@type': TCP, stat_prefix: 'x', cluster: 'y' })), []);
  for (const config of [
    { admn: {} },
    { static_resources: { clusters: [{ conect_timeout: '1s' }] } },
    { static_resources: { clusters: [{ connect_timeout: '250ms' }] } },
    { static_resources: { clusters: [{ lb_policy: 'MAGLEVV' }] } },
    { static_resources: { clusters: { nam: 'a' } } },
    { admin: { address: { socket_address: { address: '::1', port_value: 70000 } } } },
    listener({ '@type': TCP, stat_prefix: 'x', clustr: 'y' }),
    listener({ '@type': 'type.googleapis.com/envoy.extensions.filters.network.mongo_proxy.v3.MongoProxy' }),
    listener({ stat_prefix: 'x' }),
    listener({ '@type': WRAPPER, disabled: true }),
    withPolicies({ typed_config: { '@type': 'a/b.C' } }),
    withRouteConfig({ '@type': WRAPPER, dsabled: true }),
    withRouteConfig({ '@type': WRAPPER, config: { '@type': 'a/b.C' } }),
    withRouteConfig({ '@type': WRAPPER, config: { '@type': BUFFER_PER_ROUTE, dsabled: true } }),
  ]) {
    t.not(schemaErrors(config).length, 0, JSON.stringify(config));
  }
});

t.test('fields that the table refuses or lacks are not properties', async (t) => {
  const definitions = schema['definitions'] as Record<string, { properties?: object }>;
  const api = loadSchema();
  let missing = 0;
  for (const name of Object.keys(IMPLEMENTED)) {
    const properties = definitions[name]?.properties;
    if (!properties) continue;
    for (const field of api.message(name)!.fields.values()) {
      const row = rowOf(IMPLEMENTED, name, field.name);
      const isOpen = row !== undefined && !(typeof row === 'object' && 'refused' in row);
      if (isOpen !== Object.hasOwn(properties, field.name)) t.fail(`${name}.${field.name}`);
      if (!isOpen) missing++;
    }
  }
  t.ok(missing > 100, `${missing} fields are not properties`);
});

t.test('examples refer to the path of the schema after a build', async (t) => {
  for (const file of BOOTSTRAPS) {
    const [, path] = /^# yaml-language-server: \$schema=(\S+)\n/.exec(readFileSync(file, 'utf8')) ?? [];
    t.ok(path !== undefined && existsSync(join(file, '..', path)), `${file}: ${path}`);
  }
});

const YAML = { merge: true };
const WRAPPER = 'type.googleapis.com/envoy.config.route.v3.FilterConfig';
const BUFFER_PER_ROUTE = 'type.googleapis.com/envoy.extensions.filters.http.buffer.v3.BufferPerRoute';

function withPolicies(policies: object): object {
  return { static_resources: { clusters: [{ name: 'c', load_balancing_policy: { policies } }] } };
}

/** Returns a configuration with this per-route filter configuration. */
function withRouteConfig(config: object): object {
  const manager = 'envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager';
  const route_config = { virtual_hosts: [{ name: 'v', domains: ['*'], typed_per_filter_config: { f: config } }] };
  const typed_config = { '@type': `type.googleapis.com/${manager}`, stat_prefix: 'h', route_config };
  return { static_resources: { listeners: [{ filter_chains: [{ filters: [{ name: 'h', typed_config }] }] }] } };
}

/** Returns the errors of `value`, by path; none if it is valid. `part`: the part of the schema to use. */
function schemaErrors(value: unknown, part = '#'): string[] {
  let validate = validators.get(part);
  if (validate === undefined) {
    if (ajv.getSchema('baton') === undefined) ajv.addSchema(schema, 'baton');
    validate = ajv.compile({ $ref: `baton${part}` });
    validators.set(part, validate);
  }
  if (validate(value)) return [];
  return validate.errors!.map(({ instancePath, message }) => `${instancePath}: ${message}`);
}

interface Resource {
  readonly '@type': string;
}

function read(file: string): unknown {
  return parse(readFileSync(file, 'utf8'), YAML);
}

/** Returns the files at any depth, as paths in the package. */
function filesOf(directory: string, pattern: RegExp): string[] {
  const names = readdirSync(packagePath(directory), { recursive: true, encoding: 'utf8' });
  return names.filter((name) => pattern.test(name)).map((name) => packagePath(`${directory}/${name}`));
}
