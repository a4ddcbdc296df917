// Builds the bundle of types that Baton reads (src/config/schema/bundle.ts). It is small, because each process reads it at
// startup.
//
//   { nested: { <package or type>: { nested, fields, oneofs, was, unfinished, values, valuesOptions } },
//     extensions: { <category>: <names> } }
//
// A field is `<shape><type> <number>`, or a list of that and its options. The shape is `[]` for a list, `{<key>}` for a map. A
// type is a scalar, `.` and a full name, or, with a capital letter, the name relative to the message's package. A package is the
// part before the outermost type.
//
// Options of a field: rules (protoc-gen-validate), deprecated, disallowed (deprecated and refused by default), sensitive
// (redacted in dumps), category (of the extension that fits), optional, unfinished (work in progress in the API). Of an enum
// value: deprecated, disallowed. A message has its v2 name (was), for hints. A oneof is the indexes of its first and last member
// among the fields, followed by true if one must be set. The names of extensions are one text, each with `=` and the package of
// its messages if that does not follow from the name.

import { ApiError } from './api-text.mjs';

/**
 * @param {ReadonlyMap<string, object>} types as loadApi() returns them
 * @param {object} extensions as loadExtensions() returns them: the package of messages by category and name
 * @returns {{nested: object, extensions: object}} the bundle
 */
export function bundleOf(types, extensions = {}) {
  const tree = treeOf(types, (type) => (type.values === undefined ? messageJson(type, types) : enumJson(type)));
  const names = Object.entries(extensions).map(([category, packages]) => [category, namesText(packages)]);
  return { ...tree, extensions: Object.fromEntries(names) };
}

/**
 * Returns the types as a tree by the parts of their names.
 * @param {ReadonlyMap<string, object>} types
 * @param {(type: object) => object} make returns the entry of a type
 * @returns {{nested: object}}
 */
export function treeOf(types, make) {
  const root = { nested: {} };
  // A type precedes those nested in it.
  for (const name of [...types.keys()].sort()) {
    let node = root;
    for (const part of name.split('.')) {
      node.nested ??= {};
      node = node.nested[part] ??= {};
    }
    Object.assign(node, make(types.get(name)));
  }
  return root;
}

function messageJson({ name, was, isUnfinished, isFileUnfinished, oneofs, fields }, types) {
  const home = homeOf(name, types);
  const unfinished = isUnfinished || isFileUnfinished;
  return {
    fields: Object.fromEntries(fields.map((field) => [field.name, fieldJson(field, home, types)])),
    ...(was && { was }),
    ...(unfinished && { unfinished }),
    ...(oneofs.length > 0 && {
      oneofs: Object.fromEntries(oneofs.map((oneof) => [oneof.name, oneofJson(oneof, fields)])),
    }),
  };
}

function homeOf(name, types) {
  let home = name;
  while (types.has(home)) home = home.slice(0, Math.max(0, home.lastIndexOf('.')));
  return home;
}

function oneofJson({ name, isRequired }, fields) {
  const first = fields.findIndex(({ oneof }) => oneof === name);
  const last = fields.findLastIndex(({ oneof }) => oneof === name);
  const stranger = fields.slice(first, last).find(({ oneof }) => oneof !== name);
  if (stranger) throw new ApiError(`${stranger.at}: '${stranger.name}' is between members of the oneof '${name}'`);
  return isRequired ? [first, last, true] : [first, last];
}

function fieldJson(field, home, types) {
  const shape = field.keyType ? `{${field.keyType}}` : field.isRepeated ? '[]' : '';
  const text = `${shape}${types.has(field.type) ? shortName(field.type, home) : field.type} ${field.id}`;
  const options = {
    ...(field.rules && { rules: field.rules }),
    ...(field.isDeprecated && { deprecated: true }),
    ...(field.isDisallowed && { disallowed: true }),
    ...(field.isUnfinished && { unfinished: true }),
    ...(field.isSensitive && { sensitive: true }),
    ...(field.isOptional && { optional: true }),
    ...(field.category && { category: field.category }),
  };
  return Object.keys(options).length > 0 ? [text, options] : text;
}

function shortName(type, home) {
  const rest = type.startsWith(`${home}.`) ? type.slice(home.length + 1) : '';
  return /^[A-Z]/.test(rest) ? rest : `.${type}`;
}

function enumJson({ values }) {
  const marked = values.filter(({ isDeprecated, isDisallowed }) => isDeprecated || isDisallowed);
  return {
    values: Object.fromEntries(values.map(({ name, number }) => [name, number])),
    ...(marked.length > 0 && {
      valuesOptions: Object.fromEntries(
        marked.map(({ name, isDisallowed }) => [name, { deprecated: true, ...(isDisallowed && { disallowed: true }) }]),
      ),
    }),
  };
}

function namesText(packages) {
  const texts = Object.entries(packages).map(([name, home]) => (follows(home, name) ? name : `${name}=${home}`));
  return texts.join(' ');
}

/**
 * Returns whether `home` is the package that src/config/catalog/substitutes.ts derives from an extension's name, or there is
 * none.
 */
function follows(home, name) {
  return home === '' || home.replace(/\.v\d+$/, '') === name.replace(/^envoy\.(?!extensions\.)/, 'envoy.extensions.');
}
