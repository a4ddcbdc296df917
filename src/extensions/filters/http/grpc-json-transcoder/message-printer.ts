// Prints an encoded protobuf message as JSON: fields in the order of their numbers, with the mapping of Envoy's transcoder.

import { isUtf8 } from 'node:buffer';
import { type FieldDescriptor, FieldType, type MessageDescriptor, WellKnown } from '../../../protobuf/types.js';
import { WireError, WireReader, WireType } from '../../../protobuf/wire-reader.js';
import { JsonPrinter } from './json-printer.js';
import { doubleText, floatText } from './json-value.js';
import { badTypeUrl } from './message-encoder.js';
import { durationText, maskText, timestampText } from './well-known-text.js';

/** GrpcJsonTranscoder.PrintOptions, as far as they concern one message. */
export interface PrintOptions {
  readonly addsSpace: boolean;
  /** Fields without presence are printed even if they are not set. */
  readonly printsDefaults: boolean;
  readonly printsEnumNumbers: boolean;
  readonly keepsNames: boolean;
}

/** Messages within each other. */
const MAX_DEPTH = 100;
const ANY_PREFIX = 'type.googleapis.com/';
const NULL_VALUE = 'google.protobuf.NullValue';

/** @throws WireError if it has no JSON form */
export function printMessage(
  type: MessageDescriptor,
  message: Buffer,
  options: PrintOptions,
  messages: ReadonlyMap<string, MessageDescriptor>,
): string {
  const printer = new MessagePrinter(options, messages);
  printer.message(type, new WireReader(message), 0);
  return printer.out.finish();
}

/** A field of a message as it has been received. */
interface Occurrence {
  readonly field: FieldDescriptor;
  readonly wireType: WireType;
  /** Offset of the value. */
  readonly at: number;
}

class MessagePrinter {
  readonly out: JsonPrinter;
  readonly #options: PrintOptions;
  readonly #messages: ReadonlyMap<string, MessageDescriptor>;

  constructor(options: PrintOptions, messages: ReadonlyMap<string, MessageDescriptor>) {
    this.#options = options;
    this.#messages = messages;
    this.out = new JsonPrinter(options.addsSpace);
  }

  /** Prints a message whose fields `reader` reads. */
  message(type: MessageDescriptor, reader: WireReader, depth: number): void {
    if (depth > MAX_DEPTH) throw new WireError('allowed depth exceeded');
    switch (type.wellKnown) {
      case WellKnown.Any:
        return this.#any(reader, depth);
      case WellKnown.Timestamp:
      case WellKnown.Duration:
        return this.#time(type, reader);
      case WellKnown.FieldMask:
        return this.out.string(maskText(textsOf(reader)));
      case WellKnown.Struct:
        return this.#map(type.byNumber.get(1)!, occurrences(type, reader), reader, depth);
      case WellKnown.Value:
        if (!this.#value(type, reader, depth)) this.out.raw('null');
        return;
      case WellKnown.ListValue:
        return this.#list(type.byNumber.get(1)!, occurrences(type, reader), reader, depth);
      case WellKnown.Wrapper:
        return this.#wrapper(type, reader);
      default:
        this.out.begin('{');
        this.#fields(type, reader, depth);
        this.out.end('}');
    }
  }

  // ── Fields ───────────────────────────────────────────────────────────────────────────────────────────────────────

  #fields(type: MessageDescriptor, reader: WireReader, depth: number): void {
    const found = occurrences(type, reader);
    if (this.#options.printsDefaults) return this.#allFields(type, found, reader, depth);
    for (let first = 0; first < found.length; ) {
      const { field } = found[first]!;
      let end = first + 1;
      while (end < found.length && found[end]!.field === field) end++;
      this.#field(field, found.slice(first, end), reader, depth);
      first = end;
    }
  }

  #allFields(type: MessageDescriptor, found: readonly Occurrence[], reader: WireReader, depth: number): void {
    const fields = [...type.fields].sort((a, b) => a.number - b.number);
    for (const field of fields) {
      const own = found.filter((each) => each.field === field);
      if (own.length > 0) this.#field(field, own, reader, depth);
      else if (!field.hasPresence) this.#default(field);
    }
  }

  #field(field: FieldDescriptor, found: readonly Occurrence[], reader: WireReader, depth: number): void {
    if (!field.isRepeated && found.length > 1)
      throw new WireError(`repeated entries for singular field number ${field.number}`);
    if (!field.isRepeated && field.message?.wellKnown === WellKnown.Value)
      return this.#valueField(field, found[0]!, reader, depth);
    if (field.isRepeated && found.every((each) => isEmptyPack(each, reader))) {
      if (this.#options.printsDefaults) this.#default(field);
      return;
    }
    this.out.key(this.#nameOf(field));
    if (field.message?.isMapEntry === true) this.#map(field, found, reader, depth);
    else if (field.isRepeated) this.#list(field, found, reader, depth);
    else this.#occurrence(found[0]!, reader, depth);
  }

  /** An empty google.protobuf.Value is not printed. */
  #valueField(field: FieldDescriptor, found: Occurrence, reader: WireReader, depth: number): void {
    const inner = innerOf(found, reader);
    if (inner.at === inner.end) return;
    this.out.key(this.#nameOf(field));
    this.message(field.message!, inner, depth + 1);
  }

  #nameOf(field: FieldDescriptor): string {
    return this.#options.keepsNames ? field.name : field.jsonName;
  }

  #default(field: FieldDescriptor): void {
    this.out.key(this.#nameOf(field));
    if (field.isRepeated) this.out.raw(field.message?.isMapEntry === true ? '{}' : '[]');
    else this.#defaultScalar(field);
  }

  #defaultScalar(field: FieldDescriptor): void {
    if (field.enum !== undefined) this.#enum(field, 0);
    else if (field.type === FieldType.Bool) this.out.raw('false');
    else if (field.type === FieldType.String || field.type === FieldType.Bytes) this.out.raw('""');
    else if (field.message !== undefined) this.message(field.message, new WireReader(NOTHING), MAX_DEPTH);
    else this.out.raw(isLong(field.type) ? '"0"' : '0');
  }

  #list(field: FieldDescriptor, found: readonly Occurrence[], reader: WireReader, depth: number): void {
    this.out.begin('[');
    for (const each of found) {
      if (each.wireType !== WireType.Bytes || !isPackable(field.type)) {
        this.out.element();
        this.#occurrence(each, reader, depth);
        continue;
      }
      reader.at = each.at;
      const packed = reader.inner();
      while (packed.at < packed.end) {
        this.out.element();
        this.#scalar(field, packed);
      }
    }
    this.out.end(']');
  }

  #occurrence({ field, wireType, at }: Occurrence, reader: WireReader, depth: number): void {
    if (field.message !== undefined) {
      const inner = innerOf({ field, wireType, at }, reader);
      return this.message(field.message, inner, depth + 1);
    }
    reader.at = at;
    this.#scalar(field, reader);
  }

  #map(field: FieldDescriptor, found: readonly Occurrence[], reader: WireReader, depth: number): void {
    const entry = field.message!;
    const keyField = entry.byNumber.get(1)!;
    const valueField = entry.byNumber.get(2)!;
    // The last entry of a key counts.
    const entries = new Map<string, [value: Occurrence | undefined, reader: WireReader]>();
    for (const each of found) {
      const inner = innerOf(each, reader);
      const parts = occurrences(entry, inner);
      const key = parts.findLast((part) => part.field === keyField);
      const value = parts.findLast((part) => part.field === valueField);
      entries.set(this.#keyText(keyField, key, inner), [value, inner]);
    }
    this.out.begin('{');
    for (const [key, [value, inner]] of entries) {
      this.out.key(key);
      if (value === undefined) this.#defaultScalar(valueField);
      else this.#occurrence(value, inner, depth + 1);
    }
    this.out.end('}');
  }

  #keyText(field: FieldDescriptor, key: Occurrence | undefined, reader: WireReader): string {
    if (field.type === FieldType.String) {
      if (key === undefined) return '';
      reader.at = key.at;
      return textOf(field, reader.range());
    }
    const printer = new MessagePrinter(this.#options, this.#messages);
    if (key === undefined) printer.#defaultScalar(field);
    else printer.#occurrence(key, reader, 0);
    return printer.out.text.replaceAll('"', '');
  }

  // ── Well-known messages ──────────────────────────────────────────────────────────────────────────────────────────

  #time(type: MessageDescriptor, reader: WireReader): void {
    let seconds = 0n;
    let nanos = 0;
    while (reader.next()) {
      if (reader.wireType !== WireType.Varint) reader.skip();
      else if (reader.field === 1) seconds = BigInt.asIntN(64, reader.uint64());
      else if (reader.field === 2) nanos = reader.uint32() | 0;
      else reader.skip();
    }
    const printed =
      type.wellKnown === WellKnown.Timestamp ? timestampText(seconds, nanos) : durationText(seconds, nanos);
    if ('error' in printed) throw new WireError(printed.error);
    this.out.string(printed.text);
  }

  /** Returns false for a value without a kind, which is not printed. */
  #value(type: MessageDescriptor, reader: WireReader, depth: number): boolean {
    const last = occurrences(type, reader).at(-1);
    if (last === undefined) return false;
    if (last.field.type === FieldType.Double) {
      reader.at = last.at;
      const number = reader.double();
      if (!Number.isFinite(number)) {
        const shown = Number.isNaN(number) ? 'nan' : number > 0 ? 'infinity' : '-infinity';
        const why = 'because it would be parsed as a string';
        throw new WireError(`google.protobuf.Value cannot encode double values for ${shown}, ${why}`);
      }
    }
    this.#occurrence(last, reader, depth);
    return true;
  }

  #wrapper(type: MessageDescriptor, reader: WireReader): void {
    const last = occurrences(type, reader).at(-1);
    if (last === undefined) this.#defaultScalar(type.byNumber.get(1)!);
    else this.#occurrence(last, reader, 0);
  }

  #any(reader: WireReader, depth: number): void {
    let url = '';
    let content: Buffer = NOTHING;
    let isEmpty = true;
    while (reader.next()) {
      isEmpty = false;
      if (reader.wireType !== WireType.Bytes) reader.skip();
      else if (reader.field === 1) url = reader.text();
      else if (reader.field === 2) content = reader.range();
      else reader.skip();
    }
    this.out.begin('{');
    if (!isEmpty) this.#anyContent(url, content, depth);
    this.out.end('}');
  }

  #anyContent(url: string, content: Buffer, depth: number): void {
    const type = url.startsWith(ANY_PREFIX) ? this.#messages.get(url.slice(ANY_PREFIX.length)) : undefined;
    if (type === undefined) throw new WireError(badTypeUrl(url));
    this.out.key('@type');
    this.out.string(url);
    const inner = new WireReader(content);
    if (type.wellKnown === WellKnown.None) {
      if (depth >= MAX_DEPTH) throw new WireError('allowed depth exceeded');
      return this.#fields(type, inner, depth + 1);
    }
    this.out.key('value');
    this.message(type, inner, depth + 1);
  }

  // ── Scalars ──────────────────────────────────────────────────────────────────────────────────────────────────────

  #scalar(field: FieldDescriptor, reader: WireReader): void {
    const { out } = this;
    switch (field.type) {
      case FieldType.Double:
        return this.#real(reader.double(), doubleText);
      case FieldType.Float:
        return this.#real(reader.float(), floatText);
      case FieldType.Int64:
        return out.raw(`"${BigInt.asIntN(64, reader.uint64())}"`);
      case FieldType.Uint64:
        return out.raw(`"${reader.uint64()}"`);
      case FieldType.Sint64: {
        const zigzag = reader.uint64();
        return out.raw(`"${(zigzag >> 1n) ^ -(zigzag & 1n)}"`);
      }
      case FieldType.Fixed64:
        return out.raw(`"${reader.fixed64()}"`);
      case FieldType.Sfixed64:
        return out.raw(`"${BigInt.asIntN(64, reader.fixed64())}"`);
      case FieldType.Int32:
        return out.raw(String(reader.uint32() | 0));
      case FieldType.Uint32:
        return out.raw(String(reader.uint32()));
      case FieldType.Sint32: {
        const zigzag = reader.uint32();
        return out.raw(String((zigzag >>> 1) ^ -(zigzag & 1)));
      }
      case FieldType.Fixed32:
        return out.raw(String(reader.fixed32()));
      case FieldType.Sfixed32:
        return out.raw(String(reader.fixed32() | 0));
      case FieldType.Bool:
        return out.raw(String(reader.uint64() !== 0n));
      case FieldType.Enum:
        return this.#enum(field, reader.uint32() | 0);
      case FieldType.Bytes:
        return out.raw(`"${reader.range().toString('base64')}"`);
      default:
        return out.string(textOf(field, reader.range()));
    }
  }

  #real(value: number, text: (value: number) => string): void {
    this.out.raw(Number.isFinite(value) ? text(value) : `"${value}"`);
  }

  #enum({ enum: type }: FieldDescriptor, number: number): void {
    if (type!.name === NULL_VALUE) return this.out.raw('null');
    const name = this.#options.printsEnumNumbers ? undefined : type!.byNumber.get(number);
    if (name === undefined) this.out.raw(String(number));
    else this.out.string(name);
  }
}

/** Returns the known fields of a message, in the order of their numbers. */
function occurrences(type: MessageDescriptor, reader: WireReader): Occurrence[] {
  const found: Occurrence[] = [];
  let last = 0;
  let isSorted = true;
  while (reader.next()) {
    const { field: number, wireType, at } = reader;
    const field = type.byNumber.get(number);
    if (field !== undefined) {
      checkWireType(field, wireType);
      found.push({ field, wireType, at });
      isSorted &&= number >= last;
      last = number;
    }
    reader.skip();
  }
  return isSorted ? found : found.sort((a, b) => a.field.number - b.field.number);
}

function checkWireType(field: FieldDescriptor, wireType: WireType): void {
  if (
    wireType === wireTypeOf(field.type) ||
    (wireType === WireType.Bytes && field.isRepeated && isPackable(field.type))
  )
    return;
  throw new WireError(
    `field type ${field.type} (number ${field.number}) does not support ${WIRE_NAMES[wireType]} fields`,
  );
}

const WIRE_NAMES = ['varint', '64-bit', 'length-delimited', 'group', 'group', '32-bit'];

function wireTypeOf(type: FieldType): WireType {
  switch (type) {
    case FieldType.Double:
    case FieldType.Fixed64:
    case FieldType.Sfixed64:
      return WireType.Fixed64;
    case FieldType.Float:
    case FieldType.Fixed32:
    case FieldType.Sfixed32:
      return WireType.Fixed32;
    case FieldType.String:
    case FieldType.Bytes:
    case FieldType.Message:
      return WireType.Bytes;
    case FieldType.Group:
      return WireType.StartGroup;
    default:
      return WireType.Varint;
  }
}

function isPackable(type: FieldType): boolean {
  const wireType = wireTypeOf(type);
  return wireType !== WireType.Bytes && wireType !== WireType.StartGroup;
}

/** Returns whether an occurrence has packed numbers, but none. */
function isEmptyPack({ field, wireType, at }: Occurrence, reader: WireReader): boolean {
  if (wireType !== WireType.Bytes || !isPackable(field.type)) return false;
  return reader.bytes[at] === 0;
}

function isLong(type: FieldType): boolean {
  switch (type) {
    case FieldType.Int64:
    case FieldType.Uint64:
    case FieldType.Sint64:
    case FieldType.Fixed64:
    case FieldType.Sfixed64:
      return true;
    default:
      return false;
  }
}

/** Returns a reader of the content of a message or a group. */
function innerOf({ field, wireType, at }: Occurrence, reader: WireReader): WireReader {
  reader.at = at;
  if (wireType !== WireType.StartGroup) return reader.inner();
  reader.field = field.number;
  reader.wireType = wireType;
  return new WireReader(reader.bytes, at, reader.skipGroup());
}

/** Returns the texts of field 1. */
function textsOf(reader: WireReader): string[] {
  const texts: string[] = [];
  while (reader.next()) {
    if (reader.field === 1 && reader.wireType === WireType.Bytes) texts.push(reader.text());
    else reader.skip();
  }
  return texts;
}

function textOf(field: FieldDescriptor, bytes: Buffer): string {
  if (field.checksUtf8 && !isUtf8(bytes)) throw new WireError('proto3 strings must be UTF-8');
  return bytes.toString('utf8');
}

const NOTHING = Buffer.alloc(0);
