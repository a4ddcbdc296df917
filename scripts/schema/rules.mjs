// Refuses unsupported (validate.rules), so that authors do not rely on them. src/config/schema/rules.ts implements those listed
// here.

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
const WELL_KNOWN = /^google\.protobuf\.(Any|Duration|Timestamp|(\w+)Value)$/;
const DURATION = /^\d+(?:\.\d{1,9})?s$/;

/**
 * Returns the errors in the rules of a field.
 * @param {object} field as readApi() gives it
 * @param {(name: string) => object | undefined} typeOf the type of a full name
 * @returns {string[]}
 */
export function mistakesInRules(field, typeOf) {
  return field.rules === undefined ? [] : mistakesIn(field.rules, shapeOf(field, typeOf), field, typeOf);
}

/** `kinds`: the permitted kinds of rules. */
function mistakesIn(rules, kinds, field, typeOf) {
  return Object.entries(rules).flatMap(([kind, own]) => {
    if (!kinds.includes(kind)) return [`rules of '${kind}' do not fit it: it is of '${kinds.join("' or '")}'`];
    return Object.entries(own).flatMap(([rule, value]) => {
      if (!OBEYED.get(kind).has(rule)) return [`the rule '${kind}.${rule}' is not implemented`];
      if (rule === 'items' || rule === 'values') return mistakesIn(value, kindsOf(field, typeOf), field, typeOf);
      if (rule === 'keys') return mistakesIn(value, [field.keyType], field, typeOf);
      return kind === 'duration' && rule !== 'required' && !DURATION.test(value)
        ? [`the rule 'duration.${rule}' needs a duration such as "0.5s"`]
        : [];
    });
  });
}

function shapeOf(field, typeOf) {
  if (field.keyType !== undefined) return ['map'];
  return field.isRepeated ? ['repeated'] : kindsOf(field, typeOf);
}

function kindsOf({ type }, typeOf) {
  const found = typeOf(type);
  if (found === undefined) return [type];
  if (found.values !== undefined) return ['enum'];
  const [, name, wrapped] = WELL_KNOWN.exec(type) ?? [];
  if (name === undefined || wrapped === '') return ['message'];
  return [(wrapped ?? name).toLowerCase(), 'message'];
}
