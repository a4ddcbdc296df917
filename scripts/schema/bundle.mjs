// Makes the bundle: protobufjs's own JSON form of the types, with every type name absolute and the options that Baton
// obeys in a compact form. protobufjs can load it whole; the configuration loader reads it as plain data.
//
// Options of a field: rules (protoc-gen-validate), deprecated, disallowed (deprecated and refused by default), sensitive
// (redacted in dumps), category (of the extension that fits), proto3_optional, unfinished (work in progress in the API). Of a
// oneof: required. Of a message: previous (its v2 name, for hints), unfinished. Of an enum value: deprecated, disallowed.

import { readFileSync } from 'node:fs';
import protobuf from 'protobufjs';

/** Packages whose messages are kept even when nothing refers to them: resources, extensions and admin answers. */
const KEPT = /^(envoy\.|xds\.(core|type)\.|udpa\.type\.)/;
/** So are those of Baton's own files: messages of extensions that Envoy does not have, too. */
const OWN_FILES = /\/src\/config\/protos\//;

/** Categories of fields whose comments do not name one. */
const CATEGORIES = {
  'envoy.config.accesslog.v3.AccessLog.typed_config': 'envoy.access_loggers',
  'envoy.config.accesslog.v3.ExtensionFilter.typed_config': 'envoy.access_loggers.extension_filters',
  'envoy.config.cluster.v3.Cluster.transport_socket': 'envoy.transport_sockets.upstream',
  'envoy.config.cluster.v3.Cluster.typed_extension_protocol_options': 'envoy.upstream_options',
  'envoy.config.cluster.v3.Filter.typed_config': 'envoy.filters.upstream_network',
  'envoy.config.metrics.v3.StatsSink.typed_config': 'envoy.stats_sinks',
  'envoy.config.route.v3.Route.typed_per_filter_config': 'envoy.filters.http',
  'envoy.config.route.v3.RouteConfiguration.typed_per_filter_config': 'envoy.filters.http',
  'envoy.config.route.v3.VirtualHost.typed_per_filter_config': 'envoy.filters.http',
  'envoy.config.route.v3.WeightedCluster.ClusterWeight.typed_per_filter_config': 'envoy.filters.http',
  'envoy.config.trace.v3.Tracing.Http.typed_config': 'envoy.tracers',
};

/**
 * @param {protobuf.Root} protos
 * @returns {{nested: object}} the bundle
 */
export function bundleOf(protos) {
  const wanted = reachable(protos);
  return { nested: namespaceJson(protos, wanted) };
}

function reachable(protos) {
  const wanted = new Set();
  const walk = (object) => {
    if (object instanceof protobuf.Type || object instanceof protobuf.Enum) {
      if (KEPT.test(nameOf(object)) || OWN_FILES.test(object.filename ?? '')) want(object, wanted);
    }
    for (const child of object.nestedArray ?? []) walk(child);
  };
  walk(protos);
  return wanted;
}

function want(object, wanted) {
  if (wanted.has(object)) return;
  wanted.add(object);
  if (!(object instanceof protobuf.Type)) return;
  for (const field of object.fieldsArray) if (field.resolvedType) want(field.resolvedType, wanted);
}

function namespaceJson(namespace, wanted) {
  const nested = {};
  for (const child of [...(namespace.nestedArray ?? [])].sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (child instanceof protobuf.Enum) {
      if (wanted.has(child)) nested[child.name] = enumJson(child);
      continue;
    }
    const inner = namespaceJson(child, wanted);
    if (child instanceof protobuf.Type) {
      if (wanted.has(child) || inner) nested[child.name] = { ...messageJson(child), ...(inner && { nested: inner }) };
    } else if (inner && !(child instanceof protobuf.Service)) {
      nested[child.name] = { nested: inner };
    }
  }
  return Object.keys(nested).length > 0 ? nested : undefined;
}

function messageJson(type) {
  const json = { fields: {} };
  const previous = type.options?.['(udpa.annotations.versioning).previous_message_type'];
  const unfinished =
    type.options?.[`(xds.annotations.v3.message_status)${UNFINISHED}`] || isUnfinishedFile(type.filename);
  if (previous || unfinished) json.options = { ...(previous && { previous }), ...(unfinished && { unfinished: true }) };
  for (const oneof of type.oneofsArray) {
    if (oneof.fieldsArray.some((field) => field.options?.proto3_optional)) continue;
    json.oneofs ??= {};
    json.oneofs[oneof.name] = {
      oneof: oneof.fieldsArray.map((field) => field.name),
      ...(oneof.options?.['(validate.required)'] && { options: { required: true } }),
    };
  }
  for (const field of type.fieldsArray) json.fields[field.name] = fieldJson(field);
  return json;
}

function fieldJson(field) {
  const options = fieldOptions(field);
  return {
    ...(field.repeated && { rule: 'repeated' }),
    ...(field.map && { keyType: field.keyType }),
    type: field.resolvedType ? `.${nameOf(field.resolvedType)}` : field.type,
    id: field.id,
    ...(options && { options }),
  };
}

function fieldOptions(field) {
  const options = {};
  for (const parsed of field.parsedOptions ?? []) {
    if (parsed['(validate.rules)']) options.rules = { ...options.rules, ...parsed['(validate.rules)'] };
    if (parsed['deprecated'] === true) options.deprecated = true;
    if (parsed['(udpa.annotations.sensitive)'] === true) options.sensitive = true;
    if ('(envoy.annotations.disallowed_by_default)' in parsed) options.disallowed = true;
    if (parsed['(xds.annotations.v3.field_status)']?.work_in_progress === true) options.unfinished = true;
  }
  if (field.options?.proto3_optional) options.proto3_optional = true;
  const category = /\[#extension-category:\s*([\w.]*\w)/.exec(field.comment ?? '');
  const name = `${nameOf(field.parent)}.${field.name}`;
  if (category || CATEGORIES[name]) options.category = category?.[1] ?? CATEGORIES[name];
  return Object.keys(options).length > 0 ? options : undefined;
}

function enumJson(type) {
  const deprecated = {};
  for (const [name, options] of Object.entries(type.valuesOptions ?? {})) {
    const disallowed = options?.['(envoy.annotations.disallowed_by_default_enum)'] === true;
    if (options?.deprecated) deprecated[name] = { deprecated: true, ...(disallowed && { disallowed }) };
  }
  return { values: { ...type.values }, ...(Object.keys(deprecated).length > 0 && { valuesOptions: deprecated }) };
}

const UNFINISHED = '.work_in_progress';
const unfinishedFiles = new Map();

/** The files' own options: protobufjs gives them to the package, which others share. */
function isUnfinishedFile(file) {
  if (!file) return false;
  let found = unfinishedFiles.get(file);
  if (found === undefined) {
    const text = readFileSync(file, 'utf8');
    found = /^option \(xds\.annotations\.v3\.file_status\)\.work_in_progress = true;/m.test(text);
    unfinishedFiles.set(file, found);
  }
  return found;
}

function nameOf(object) {
  return object.fullName.replace(/^\./, '');
}
