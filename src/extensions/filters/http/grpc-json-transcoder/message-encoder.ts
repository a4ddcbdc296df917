// Encodes JSON as a protobuf message, with the mapping, the leniency and the error texts of Envoy's transcoder. Fields keep the order of the
// JSON. Unknown fields are ignored.

import {
  type EnumDescriptor,
  type FieldDescriptor,
  FieldType,
  type MessageDescriptor,
  TYPE_NAMES,
  WellKnown,
} from '../../../protobuf/types.js';
import type { WireWriter } from '../../../protobuf/wire-writer.js';
import type { BindingTree } from './bindings.js';
import { JsonDouble, JsonObject, type JsonValue, shownValue } from './json-value.js';
import {
  INT32,
  INT64,
  toBool,
  toBytes,
  toEnum,
  toFloat,
  toInteger,
  toReal,
  toSmallInteger,
  UINT32,
  UINT64,
} from './scalars.js';
import { maskPaths, parseDuration, parseTimestamp, type SecondsAndNanos } from './well-known-text.js';

export interface EncodingRules {
  /** Names of enum values in any case. */
  readonly ignoresEnumCase: boolean;
  /** A value in the body must equal the one that the path or the query has for the same field. */
  readonly refusesCollisions: boolean;
  /** The messages that a google.protobuf.Any may contain. */
  readonly messages: ReadonlyMap<string, MessageDescriptor>;
}

const ANY_PREFIX = 'type.googleapis.com/';
const NULL_VALUE = 'google.protobuf.NullValue';

/** google.protobuf.Value: the numbers of its fields. */
const VALUE_NULL = 1;
const VALUE_NUMBER = 2;
const VALUE_STRING = 3;
const VALUE_BOOL = 4;
const VALUE_STRUCT = 5;
const VALUE_LIST = 6;

const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;
const START_GROUP = 3;
const END_GROUP = 4;
const FIXED32 = 5;

export class MessageEncoder {
  readonly #out: WireWriter;
  readonly #rules: EncodingRules;
  /** Names of the fields around the current one. */
  #path: string[] = [];
  /** The name of the message that was passed to encode(). */
  #rootName = '';
  /** The last mistake. */
  error: string | undefined;

  constructor(out: WireWriter, rules: EncodingRules) {
    this.#out = out;
    this.#rules = rules;
  }

  /** `isPartial`: the document is truncated, so that required fields may be missing. */
  encode(type: MessageDescriptor, value: JsonValue, bindings?: BindingTree, isPartial = false): void {
    this.#rootName = type.name;
    if (!(value instanceof JsonObject)) return this.#invalidName('Root element must be a message.');
    this.#object(type, value, bindings, isPartial);
  }

  // ── Errors ───────────────────────────────────────────────────────────────────────────────────────────────────────

  #invalidName(message: string): void {
    this.error = `${this.#path.join('.')}: ${message}`;
  }

  /** Refuses a value; `name`: of the field in the current message. */
  #invalidValue(type: string, shown: string, name?: string): void {
    const place = name === undefined ? this.#path : [...this.#path, name];
    this.error = `${place.join('.')}: invalid value ${shown} for type ${type}`;
  }

  // ── Messages ─────────────────────────────────────────────────────────────────────────────────────────────────────

  #object(type: MessageDescriptor, object: JsonObject, bindings?: BindingTree, isPartial = false): void {
    const seen = new SeenFields(type);
    for (let index = 0; index < object.keys.length; index++) {
      const key = object.keys[index]!;
      const field = type.byName.get(key);
      if (field === undefined) {
        if (key === '') this.#invalidName('Proto fields must have a name.');
        continue;
      }
      const value = object.values[index]!;
      const inner = value instanceof JsonObject ? bindings?.takeWithin(field) : undefined;
      if (bindings !== undefined && isScalar(value)) this.#collide(seen, bindings, field, value);
      this.#member(seen, field, key, value, inner);
    }
    if (bindings !== undefined) this.#bindings(seen, bindings);
    const missing = isPartial ? undefined : seen.missing();
    if (missing !== undefined) this.error = `${this.#path.join('.')}: missing field ${missing}`;
  }

  /** Writes what the body has not. */
  #bindings(seen: SeenFields, bindings: BindingTree): void {
    for (const [field, texts] of bindings.values) for (const text of texts) this.#member(seen, field, field.name, text);
    bindings.values.clear();
    for (const [field, tree] of bindings.messages) this.#member(seen, field, field.name, new JsonObject(), tree);
    bindings.messages.clear();
  }

  /** The body has a scalar for a field that is bound too: the body's value counts, and both of a repeated field. */
  #collide(seen: SeenFields, bindings: BindingTree, field: FieldDescriptor, value: JsonValue): void {
    for (const text of bindings.take(field)) {
      if (field.isRepeated) this.#member(seen, field, field.name, text);
      else if (this.#rules.refusesCollisions && !isSame(value, text)) {
        const bound = `The binding value ${shownValue(text)} of the field ${field.name}`;
        this.error = `${bound} is conflicting with the value ${shownValue(value)} in the body.`;
      }
    }
  }

  /** Writes a field of an object. */
  #member(seen: SeenFields, field: FieldDescriptor, key: string, value: JsonValue, bindings?: BindingTree): void {
    if (value === null && !takesNull(field)) return;
    if (!Array.isArray(value) && !seen.add(field)) {
      const oneof = seen.oneofName(field);
      return this.#invalidValue('oneof', `oneof field '${oneof}' is already set. Cannot set '${key}'`);
    }
    const { message } = field;
    if (message?.isMapEntry === true && field.isRepeated) return this.#map(field, value);
    if (Array.isArray(value)) return this.#list(seen, field, key, value);
    this.#single(field, field.name, key, value, bindings);
  }

  #list(seen: SeenFields, field: FieldDescriptor, key: string, values: readonly JsonValue[]): void {
    if (!field.isRepeated) {
      const kind = field.message?.wellKnown;
      if (kind !== WellKnown.Value && kind !== WellKnown.ListValue)
        return this.#invalidName('Proto field is not repeating, cannot start list.');
      if (!seen.add(field)) {
        const oneof = seen.oneofName(field);
        return this.#invalidValue('oneof', `oneof field '${oneof}' is already set. Cannot set '${key}'`);
      }
      return this.#listValueField(field, values, kind === WellKnown.Value);
    }
    seen.add(field);
    this.#elements(field, values, 0);
  }

  /** Writes the elements of a repeated field. Returns how many messages there are so far. */
  #elements(field: FieldDescriptor, values: readonly JsonValue[], count: number): number {
    for (const value of values) {
      const isValue = field.message?.wellKnown === WellKnown.Value;
      if (value === null && !takesNull(field)) continue;
      const name = `${field.name}[${count}]`;
      if (!Array.isArray(value)) this.#single(field, name, '', value);
      else if (isValue) this.#listValueField(field, value, true);
      // As in Envoy, a list within a list is a part of it.
      else count = this.#elements(field, value, count) - 1;
      if (!isScalar(value)) count++;
    }
    return count;
  }

  /** Writes one value of a field. `name`: how errors name it. */
  #single(field: FieldDescriptor, name: string, key: string, value: JsonValue, bindings?: BindingTree): void {
    const { message, number } = field;
    if (message === undefined) return this.#scalarField(field, name, value);
    if (field.type === FieldType.Group) {
      this.#out.tag(number, START_GROUP);
      this.#message(message, name, key, value, bindings);
      this.#out.tag(number, END_GROUP);
      return;
    }
    this.#out.tag(number, BYTES);
    const mark = this.#out.begin();
    this.#message(message, name, key, value, bindings);
    this.#out.end(mark);
  }

  /** Writes the content of a message field. */
  #message(type: MessageDescriptor, name: string, key: string, value: JsonValue, bindings?: BindingTree): void {
    const { wellKnown } = type;
    if (wellKnown === WellKnown.Value) return this.#value(value as JsonValue);
    if (value instanceof JsonObject) {
      this.#path.push(name);
      if (wellKnown === WellKnown.Any) this.#any(value);
      else if (wellKnown === WellKnown.Struct) this.#struct(value);
      else if (wellKnown !== WellKnown.ListValue) this.#object(type, value, bindings);
      this.#path.pop();
      return;
    }
    switch (wellKnown) {
      case WellKnown.Wrapper:
        this.#path.push(name);
        this.#scalarField(type.byNumber.get(1)!, 'value', value);
        this.#path.pop();
        return;
      case WellKnown.Timestamp:
      case WellKnown.Duration:
        return this.#time(type, name, key, value);
      case WellKnown.FieldMask:
        return this.#mask(type, name, key, value);
      default:
        this.#invalidValue(ANY_PREFIX + type.name, shownValue(value), name);
    }
  }

  // ── Maps ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  #map(field: FieldDescriptor, value: JsonValue): void {
    const entry = field.message!;
    if (Array.isArray(value)) return this.#invalidValue('Map', `Cannot bind a list to map for field '${field.name}'.`);
    if (!(value instanceof JsonObject))
      return this.#invalidValue(ANY_PREFIX + entry.name, shownValue(value ?? null), field.name);
    const keyField = entry.byNumber.get(1)!;
    const valueField = entry.byNumber.get(2)!;
    const keys = new Set<string>();
    for (let index = 0; index < value.keys.length; index++) {
      const key = value.keys[index]!;
      if (!this.#isNewKey(keys, key, `${field.name}[${Math.max(0, index - 1)}]`)) continue;
      this.#path.push(`${field.name}[${index}]`);
      this.#out.tag(field.number, BYTES);
      const mark = this.#out.begin();
      this.#scalarField(keyField, 'key', key);
      const inner = value.values[index]!;
      if (Array.isArray(inner) && valueField.message?.wellKnown === WellKnown.Value)
        this.#listValueField(valueField, inner, true);
      else if (Array.isArray(inner)) this.#invalidName('Proto field is not repeating, cannot start list.');
      else if (inner !== null || takesNull(valueField)) this.#single(valueField, 'value', 'value', inner);
      this.#out.end(mark);
      this.#path.pop();
    }
  }

  #isNewKey(keys: Set<string>, key: string, place: string): boolean {
    if (!keys.has(key)) {
      keys.add(key);
      return true;
    }
    this.#path.push(place);
    this.#invalidName(`Repeated map key: '${key}' is already set.`);
    this.#path.pop();
    return false;
  }

  // ── Well-known messages ──────────────────────────────────────────────────────────────────────────────────────────

  #time(type: MessageDescriptor, name: string, key: string, value: JsonValue): void {
    const isTimestamp = type.wellKnown === WellKnown.Timestamp;
    let parsed: SecondsAndNanos | string;
    if (typeof value !== 'string') {
      const what = isTimestamp ? 'timestamp' : 'duration';
      parsed = `Invalid data type for ${what}, value is ${shownValue(value)}`;
    } else parsed = isTimestamp ? parseTimestamp(value) : parseDuration(value);
    if (typeof parsed === 'string')
      return this.#invalidValue(ANY_PREFIX + type.name, `Field '${key}', ${parsed}`, name);
    this.#out.tag(1, VARINT);
    this.#out.uint64(parsed.seconds);
    this.#out.tag(2, VARINT);
    this.#out.uint64(BigInt(parsed.nanos));
  }

  #mask(type: MessageDescriptor, name: string, key: string, value: JsonValue): void {
    if (typeof value !== 'string') {
      const problem = `Field '${key}', Invalid data type for field mask, value is ${shownValue(value)}`;
      return this.#invalidValue(ANY_PREFIX + type.name, problem, name);
    }
    for (const path of maskPaths(value)) {
      this.#out.tag(1, BYTES);
      this.#out.byteText(path);
    }
  }

  /** Writes an array to a field of google.protobuf.ListValue, or of Value. */
  #listValueField(field: FieldDescriptor, values: readonly JsonValue[], isValue: boolean): void {
    this.#out.tag(field.number, BYTES);
    const mark = this.#out.begin();
    if (isValue) this.#value(values as JsonValue[]);
    else this.#listValue(values);
    this.#out.end(mark);
  }

  #listValue(values: readonly JsonValue[]): void {
    for (const value of values) {
      this.#out.tag(1, BYTES);
      const mark = this.#out.begin();
      this.#value(value);
      this.#out.end(mark);
    }
  }

  #value(value: JsonValue): void {
    const out = this.#out;
    if (value === null || typeof value === 'boolean') {
      out.tag(value === null ? VALUE_NULL : VALUE_BOOL, VARINT);
      out.uint32(value === true ? 1 : 0);
    } else if (typeof value === 'string') {
      out.tag(VALUE_STRING, BYTES);
      out.byteText(value);
    } else if (typeof value === 'object' && !(value instanceof JsonDouble)) {
      const isList = Array.isArray(value);
      out.tag(isList ? VALUE_LIST : VALUE_STRUCT, BYTES);
      const mark = out.begin();
      if (isList) this.#listValue(value);
      else this.#struct(value);
      out.end(mark);
    } else {
      out.tag(VALUE_NUMBER, FIXED64);
      out.double(value instanceof JsonDouble ? value.value : Number(value));
    }
  }

  #struct(object: JsonObject): void {
    const out = this.#out;
    const keys = new Set<string>();
    for (let index = 0; index < object.keys.length; index++) {
      const key = object.keys[index]!;
      if (!this.#isNewKey(keys, key, `fields[${Math.max(0, index - 1)}]`)) continue;
      out.tag(1, BYTES);
      const entry = out.begin();
      out.tag(1, BYTES);
      out.byteText(key);
      out.tag(2, BYTES);
      const mark = out.begin();
      this.#value(object.values[index]!);
      out.end(mark);
      out.end(entry);
    }
  }

  /** Writes google.protobuf.Any, whose type may follow its other fields. */
  #any(object: JsonObject): void {
    if (object.keys.length === 0) return;
    const at = object.keys.indexOf('@type');
    const url = at < 0 ? undefined : object.values[at]!;
    if (url === undefined) return this.#invalidValue('Any', `Missing @type for any field in ${this.#rootName}`);
    if (typeof url !== 'string') return this.#invalidValue('String', shownValue(url as JsonValue));
    const type = this.#typeOf(url);
    if (type === undefined) return;
    this.#out.tag(1, BYTES);
    this.#out.byteText(url);
    const content = new JsonObject();
    for (let index = 0; index < object.keys.length; index++)
      if (index !== at) content.add(object.keys[index]!, object.values[index]!);
    const outer = this.#path;
    this.#path = [];
    const before = this.#out.length;
    this.#out.tag(2, BYTES);
    const mark = this.#out.begin();
    this.#anyContent(type, content);
    if (this.#out.length === mark) this.#out.truncate(before);
    else this.#out.end(mark);
    this.#path = outer;
  }

  #anyContent(type: MessageDescriptor, content: JsonObject): void {
    if (type.wellKnown === WellKnown.None) return this.#object(type, content);
    const at = content.keys.indexOf('value');
    const value = at < 0 ? undefined : content.values[at]!;
    if (value === undefined) return;
    if (type.wellKnown === WellKnown.ListValue && Array.isArray(value)) return this.#listValue(value);
    if (value === null && type.wellKnown !== WellKnown.Value) return;
    if (Array.isArray(value) && type.wellKnown !== WellKnown.Value)
      return this.#invalidName('Proto field is not repeating, cannot start list.');
    this.#message(type, 'value', 'value', value);
  }

  #typeOf(url: string): MessageDescriptor | undefined {
    const name = url.slice(ANY_PREFIX.length);
    const type = url.startsWith(ANY_PREFIX) ? this.#rules.messages.get(name) : undefined;
    if (type !== undefined) return type;
    this.#invalidValue('Any', badTypeUrl(url));
    return undefined;
  }

  // ── Scalars ──────────────────────────────────────────────────────────────────────────────────────────────────────

  #scalarField(field: FieldDescriptor, name: string, value: JsonValue): void {
    if (value instanceof JsonObject) return this.#invalidValue(field.name, 'Starting an object on a scalar field');
    if (Array.isArray(value)) return this.#invalidName('Proto field is not repeating, cannot start list.');
    if (this.#scalar(field, value)) return;
    const type = field.enum === undefined ? TYPE_NAMES[field.type]! : ANY_PREFIX + field.enum.name;
    this.#invalidValue(type, shownValue(value), name);
  }

  /** Writes a tag and a value. Returns false for a value that the type does not have. */
  #scalar(field: FieldDescriptor, value: JsonValue): boolean {
    switch (field.type) {
      case FieldType.Int32:
      case FieldType.Sint32:
      case FieldType.Sfixed32:
        return this.#smallInteger(field, toSmallInteger(value, INT32));
      case FieldType.Uint32:
      case FieldType.Fixed32:
        return this.#smallInteger(field, toSmallInteger(value, UINT32));
      case FieldType.Enum:
        return this.#smallInteger(field, this.#enumNumber(field.enum!, value));
      case FieldType.Int64:
      case FieldType.Sint64:
      case FieldType.Sfixed64:
        return this.#integer(field, toInteger(value, INT64));
      case FieldType.Uint64:
      case FieldType.Fixed64:
        return this.#integer(field, toInteger(value, UINT64));
      case FieldType.Double:
      case FieldType.Float:
        return this.#real(field, field.type === FieldType.Double ? toReal(value) : toFloat(value));
      case FieldType.Bool: {
        const bool = toBool(value);
        return this.#smallInteger(field, bool === undefined ? undefined : Number(bool));
      }
      default:
        return this.#text(field, value);
    }
  }

  #enumNumber(type: EnumDescriptor, value: JsonValue): number | undefined {
    return value === null && type.name === NULL_VALUE ? 0 : toEnum(value, type, this.#rules.ignoresEnumCase);
  }

  #smallInteger({ type, number }: FieldDescriptor, value: number | undefined): boolean {
    if (value === undefined) return false;
    const isFixed = type === FieldType.Fixed32 || type === FieldType.Sfixed32;
    this.#out.tag(number, isFixed ? FIXED32 : VARINT);
    if (isFixed) this.#out.fixed32(value);
    else if (type === FieldType.Sint32) this.#out.uint32(((value << 1) ^ (value >> 31)) >>> 0);
    else if (value >= 0) this.#out.uint32(value);
    else this.#out.uint64(BigInt(value));
    return true;
  }

  #integer({ type, number }: FieldDescriptor, value: bigint | undefined): boolean {
    if (value === undefined) return false;
    const isFixed = type === FieldType.Fixed64 || type === FieldType.Sfixed64;
    this.#out.tag(number, isFixed ? FIXED64 : VARINT);
    if (isFixed) this.#out.fixed64(value);
    else if (type === FieldType.Sint64) this.#out.uint64(value < 0n ? -2n * value - 1n : 2n * value);
    else this.#out.uint64(value);
    return true;
  }

  #real({ type, number }: FieldDescriptor, value: number | undefined): boolean {
    if (value === undefined) return false;
    const isDouble = type === FieldType.Double;
    this.#out.tag(number, isDouble ? FIXED64 : FIXED32);
    if (isDouble) this.#out.double(value);
    else this.#out.float(value);
    return true;
  }

  /** Writes a string or bytes. */
  #text({ type, number }: FieldDescriptor, value: JsonValue): boolean {
    const bytes = type === FieldType.Bytes ? toBytes(value) : undefined;
    if (type === FieldType.Bytes ? bytes === undefined : typeof value !== 'string') return false;
    this.#out.tag(number, BYTES);
    if (bytes === undefined) this.#out.byteText(value as string);
    else this.#out.bytes(bytes);
    return true;
  }
}

/** Returns the error of a type URL that names no known type. */
export function badTypeUrl(url: string): string {
  if (!url.startsWith(ANY_PREFIX))
    return `Invalid type URL, type URLs must be of the form '${ANY_PREFIX}<typename>', got: ${url}`;
  return `Invalid type URL, unknown type: ${url.slice(ANY_PREFIX.length)}`;
}

/** The fields of a message that have been written, as far as it matters. */
class SeenFields {
  readonly #type: MessageDescriptor;
  #oneofs: Set<number> | undefined;
  #required: Set<FieldDescriptor> | undefined;

  constructor(type: MessageDescriptor) {
    this.#type = type;
  }

  /** Returns false if its oneof has been written. */
  add(field: FieldDescriptor): boolean {
    if (field.isRequired) (this.#required ??= new Set()).add(field);
    if (field.oneof < 0) return true;
    this.#oneofs ??= new Set();
    if (this.#oneofs.has(field.oneof)) return false;
    this.#oneofs.add(field.oneof);
    return true;
  }

  oneofName(field: FieldDescriptor): string {
    return this.#type.oneofs[field.oneof] ?? '';
  }

  /** Returns the name of a required field that has not been written. */
  missing(): string | undefined {
    return this.#type.fields.find((field) => field.isRequired && this.#required?.has(field) !== true)?.name;
  }
}

function takesNull({ message, enum: enumType }: FieldDescriptor): boolean {
  return message?.wellKnown === WellKnown.Value || enumType?.name === NULL_VALUE;
}

function isScalar(value: JsonValue): boolean {
  return value !== null && (typeof value !== 'object' || value instanceof JsonDouble);
}

/** Returns whether a value of the body is the same as one of the path or the query. */
function isSame(inBody: JsonValue, bound: string): boolean {
  if (typeof inBody === 'string') return inBody === bound;
  if (typeof inBody === 'boolean') return toBool(bound) === inBody;
  return toReal(inBody) === toReal(bound);
}
