// Messages in protobuf's text form, in one line as Envoy's logs show them.

import type { Json, Struct } from '../../config/generated/api.js';

/** Fields that are maps. Their values are of type google.protobuf.Struct, or are structures in their JSON form. */
const MAPS = new Set(['filter_metadata', 'typed_filter_metadata', 'dynamic_parameters']);
/** Fields of type google.protobuf.Struct. */
const STRUCTS = new Set(['metadata']);
/** Nested structures; deeper ones are left out. */
const MAX_DEPTH = 100;

/** Returns the fields of a message. Structures are written as google.protobuf.Struct. */
export function protoText(json: Struct): string {
  return Object.entries(json)
    .map(([name, value]) => fieldText(name, value))
    .join('');
}

function fieldText(name: string, value: Json): string {
  if (Array.isArray(value)) return value.map((each) => fieldText(name, each)).join('');
  if (typeof value === 'string') return `${name}: ${quoted(value)} `;
  if (typeof value !== 'object' || value === null) return `${name}: ${value} `;
  const inner = value as Struct;
  if (MAPS.has(name)) {
    return Object.entries(inner)
      .map(([key, each]) => `${name} { key: ${quoted(key)} value { ${structText(each as Struct, 0)}} } `)
      .join('');
  }
  return `${name} { ${STRUCTS.has(name) ? structText(inner, 0) : protoText(inner)}} `;
}

function structText(struct: Struct, depth: number): string {
  return Object.entries(struct)
    .map(([key, value]) => `fields { key: ${quoted(key)} value { ${valueText(value, depth + 1)}} } `)
    .join('');
}

function valueText(value: Json, depth: number): string {
  if (depth > MAX_DEPTH) return '';
  if (value === null) return 'null_value: NULL_VALUE ';
  if (typeof value === 'string') return `string_value: ${quoted(value)} `;
  if (typeof value === 'number') return `number_value: ${value} `;
  if (typeof value === 'boolean') return `bool_value: ${value} `;
  if (!Array.isArray(value)) return `struct_value { ${structText(value as Struct, depth)}} `;
  return `list_value { ${value.map((each) => `values { ${valueText(each, depth + 1)}} `).join('')}} `;
}

/** Bytes that are no printable ASCII are escaped in octal digits. */
function quoted(text: string): string {
  const escaped = Buffer.from(text)
    .toString('latin1')
    .replace(/["'\\\n\r\t]|[^\x20-\x7e]/g, escapeOf);
  return `"${escaped}"`;
}

const ESCAPES: { readonly [character: string]: string } = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

function escapeOf(character: string): string {
  if (Object.hasOwn(ESCAPES, character)) return ESCAPES[character]!;
  if (/["'\\]/.test(character)) return `\\${character}`;
  return `\\${character.charCodeAt(0).toString(8).padStart(3, '0')}`;
}
