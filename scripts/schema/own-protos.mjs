// Reads the .proto files of extensions, src/config/protos: messages that Envoy does not have. They can contain messages of the
// API.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import protobuf from 'protobufjs';
import { ApiError } from './api-text.mjs';
import { treeOf } from './bundle.mjs';

const FOLDER = 'src/config/protos';

/** Files that define options. They are not read; the supported options are below. */
const OF_OPTIONS = new Set(['validate/validate.proto', 'udpa/annotations/sensitive.proto']);
/** Their contents are described by one file. */
const OF_GOOGLE = /^google\/protobuf\/(any|duration|empty|field_mask|struct|timestamp|wrappers)\.proto$/;
/** Field options that Baton or protobuf supports. */
const OPTIONS = new Set([
  '(validate.rules)',
  '(udpa.annotations.sensitive)',
  'deprecated',
  'json_name',
  'packed',
  'proto3_optional',
]);

/**
 * Adds the types of all files below src/config/protos, if there is such a folder.
 * @param {string} root the checkout
 * @param {Map<string, object>} types of the API
 * @throws {ApiError} for a file that cannot be read, and for unsupported options
 */
export function addOwnProtos(root, types) {
  const folder = join(root, FOLDER);
  if (!existsSync(folder)) return;
  const files = readdirSync(folder, { recursive: true }).filter((file) => file.endsWith('.proto'));
  if (files.length === 0) return;
  const protos = load(root, folder, files.sort(), types);
  const mistakes = [];
  const walk = (object) => {
    const isOwn = object.filename?.startsWith(folder);
    if (isOwn && (object instanceof protobuf.Type || object instanceof protobuf.Enum)) {
      const at = relative(root, object.filename);
      types.set(nameOf(object), object instanceof protobuf.Type ? messageOf(object, at, mistakes) : enumOf(object, at));
    }
    for (const child of object.nestedArray ?? []) walk(child);
  };
  walk(protos);
  if (mistakes.length > 0) throw new ApiError(mistakes.join('\n'));
}

function load(root, folder, files, types) {
  const known = new Set([...types.values()].map(({ file }) => file));
  const protos = protobuf.Root.fromJSON(treeOf(types, protobufJson));
  const options = { keepCase: true, alternateCommentMode: true, preferTrailingComment: false };
  try {
    for (const file of files) {
      protobuf.parse.filename = join(folder, file);
      const { imports = [] } = protobuf.parse(readFileSync(join(folder, file), 'utf8'), protos, options);
      for (const target of imports) {
        if (known.has(target) || OF_OPTIONS.has(target) || OF_GOOGLE.test(target) || files.includes(target)) continue;
        throw new ApiError(`${FOLDER}/${file}: there is no '${target}' to import`);
      }
    }
    protos.resolveAll();
    return protos;
  } catch (error) {
    throw error instanceof ApiError ? error : new ApiError(`${placeOf(error, root)}${error.message}`);
  } finally {
    protobuf.parse.filename = null;
  }
}

/** Returns the part of a type that files which refer to it need. */
function protobufJson({ values, fields }) {
  if (values !== undefined) return { values: Object.fromEntries(values.map(({ name, number }) => [name, number])) };
  return { fields: Object.fromEntries(fields.map(({ name, id, type }) => [name, { type, id }])) };
}

/**
 * Adds the file to an error. protobufjs names the message of an unknown type, and otherwise only the line, in the file that
 * was read last.
 */
function placeOf({ message }, root) {
  return message.startsWith('no such ') ? '' : `${relative(root, protobuf.parse.filename)}: `;
}

function messageOf(type, at, mistakes) {
  const oneofs = type.oneofsArray.filter((oneof) => !oneof.fieldsArray.some((field) => field.options?.proto3_optional));
  return {
    name: nameOf(type),
    file: at,
    at,
    fields: type.fieldsArray.map((field) => fieldOf(field, oneofs, at, mistakes)),
    oneofs: oneofs.map(({ name, options }) => ({ name, isRequired: options?.['(validate.required)'] === true })),
  };
}

function fieldOf(field, oneofs, at, mistakes) {
  const options = optionsOf(field, (what) => mistakes.push(`${at}: ${nameOf(field.parent)}.${field.name}: ${what}`));
  const category = /\[#extension-category:\s*([\w.]*\w)/.exec(field.comment ?? '')?.[1];
  return {
    name: field.name,
    id: field.id,
    type: field.resolvedType ? nameOf(field.resolvedType) : field.type,
    keyType: field.map ? field.keyType : undefined,
    isRepeated: field.repeated,
    isOptional: field.options?.proto3_optional === true,
    oneof: oneofs.includes(field.partOf) ? field.partOf.name : undefined,
    ...options,
    category,
    at,
  };
}

function optionsOf(field, say) {
  const found = {};
  for (const parsed of field.parsedOptions ?? []) {
    for (const [name, value] of Object.entries(parsed)) {
      if (!OPTIONS.has(name)) say(`Baton does not know the option '${name}'`);
      if (name === '(validate.rules)') found.rules = { ...found.rules, ...withTexts(value) };
      if (name === '(udpa.annotations.sensitive)' && value === true) found.isSensitive = true;
      if (name === 'deprecated' && value === true) found.isDeprecated = true;
    }
  }
  return found;
}

/** Returns the rules with durations as strings. */
function withTexts(rules) {
  return Object.fromEntries(
    Object.entries(rules).map(([kind, own]) => [
      kind,
      Object.fromEntries(Object.entries(own).map(([rule, value]) => [rule, ruleValue(kind, rule, value)])),
    ]),
  );
}

function ruleValue(kind, rule, value) {
  if (rule === 'items' || rule === 'keys' || rule === 'values') return withTexts(value);
  if (kind !== 'duration' || typeof value !== 'object') return value;
  const nanos = String(Number(value.nanos ?? 0))
    .padStart(9, '0')
    .replace(/0+$/, '');
  return `${Number(value.seconds ?? 0)}${nanos === '' ? '' : `.${nanos}`}s`;
}

function enumOf(type, at) {
  const values = Object.entries(type.values).map(([name, number]) => ({
    name,
    number,
    isDeprecated: type.valuesOptions?.[name]?.deprecated === true,
    at,
  }));
  return { name: nameOf(type), file: at, at, values };
}

function nameOf(object) {
  return object.fullName.replace(/^\./, '');
}
