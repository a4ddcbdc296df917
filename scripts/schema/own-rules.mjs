// Refuses (validate.rules) that Baton would not obey, in Baton's own .proto files: an author must not rely on them.
// src/config/schema/rules.ts obeys those that stand here; Envoy's files have a few others, which Envoy's own code sees to.

import { relative } from 'node:path';
import protobuf from 'protobufjs';

const NUMBER = 'const lt lte gt gte in not_in ignore_empty';
const NUMBERS = 'float double int32 int64 uint32 uint64 sint32 sint64 fixed32 fixed64 sfixed32 sfixed64'.split(' ');
const TEXT =
  'const in not_in len min_len max_len min_bytes max_bytes pattern prefix suffix contains not_contains ignore_empty ' +
  'email hostname ip ipv4 ipv6 address uri uri_ref uuid well_known_regex strict';
const OBEYED = new Map(
  Object.entries({
    ...Object.fromEntries(NUMBERS.map((type) => [type, NUMBER])),
    bool: 'const',
    string: TEXT,
    bytes: 'min_len max_len',
    enum: 'const defined_only in not_in',
    message: 'required',
    any: 'required in not_in',
    duration: 'required lt lte gt gte',
    timestamp: 'required',
    repeated: 'min_items max_items unique items ignore_empty',
    map: 'min_pairs max_pairs keys values ignore_empty',
  }).map(([kind, names]) => [kind, new Set(names.split(' '))]),
);
/** Options of fields that mean something to Baton or to protobuf. */
const OPTIONS = new Set([
  '(validate.rules)',
  '(udpa.annotations.sensitive)',
  'deprecated',
  'json_name',
  'packed',
  'proto3_optional',
]);
const WELL_KNOWN = /^\.?google\.protobuf\.(Any|Duration|Timestamp|(\w+)Value)$/;

/**
 * What is wrong with the options of fields in own files, a line each.
 * @param {protobuf.Root} protos
 * @param {(file: string) => boolean} isOwn
 * @param {string} root the checkout
 * @returns {string[]}
 */
export function mistakesInRules(protos, isOwn, root) {
  const mistakes = [];
  const walk = (object) => {
    if (object instanceof protobuf.Type && isOwn(object.filename ?? '')) {
      for (const field of object.fieldsArray) {
        const place = `${relative(root, object.filename)}: ${object.fullName.slice(1)}.${field.name}`;
        mistakes.push(...mistakesOf(field).map((mistake) => `${place}: ${mistake}`));
      }
    }
    for (const child of object.nestedArray ?? []) walk(child);
  };
  walk(protos);
  return mistakes;
}

function mistakesOf(field) {
  return (field.parsedOptions ?? []).flatMap((parsed) =>
    Object.entries(parsed).flatMap(([name, value]) => {
      if (!OPTIONS.has(name)) return [`Baton does not know the option '${name}'`];
      return name === '(validate.rules)' ? mistakesIn(value, shapeOf(field), field) : [];
    }),
  );
}

/** `kinds`: of rules that fit. */
function mistakesIn(rules, kinds, field) {
  return Object.entries(rules).flatMap(([kind, own]) => {
    if (!kinds.includes(kind)) return [`rules of '${kind}' do not fit it: it is of '${kinds.join("' or '")}'`];
    return Object.entries(own).flatMap(([rule, value]) => {
      if (!OBEYED.get(kind).has(rule)) return [`the rule '${kind}.${rule}' is not implemented`];
      if (rule === 'items' || rule === 'values') return mistakesIn(value, kindsOf(field), field);
      return rule === 'keys' ? mistakesIn(value, [field.keyType], field) : [];
    });
  });
}

function shapeOf(field) {
  if (field.map) return ['map'];
  return field.repeated ? ['repeated'] : kindsOf(field);
}

function kindsOf({ type, resolvedType }) {
  if (resolvedType === null) return [type];
  if (resolvedType instanceof protobuf.Enum) return ['enum'];
  const [, name, wrapped] = WELL_KNOWN.exec(resolvedType.fullName) ?? [];
  if (name === undefined || wrapped === '') return ['message'];
  return [(wrapped ?? name).toLowerCase(), 'message'];
}
