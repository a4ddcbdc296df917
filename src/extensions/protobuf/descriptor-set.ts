// Reads a google.protobuf.FileDescriptorSet, the output of `protoc --include_imports --descriptor_set_out`.

import {
  type EnumDescriptor,
  type FieldDescriptor,
  FieldType,
  type MessageDescriptor,
  type MethodDescriptor,
  type ServiceDescriptor,
  type TypeRegistry,
  WellKnown,
} from './types.js';
import { WireError, WireReader, WireType } from './wire-reader.js';

/** Thrown for a descriptor set that cannot be used. */
export class DescriptorError extends Error {}

/** Messages within messages. */
const MAX_NESTED = 32;
/** MethodOptions: the extension google.api.http. */
const HTTP_OPTION = 72_295_728;

const LABEL_REQUIRED = 2;
const LABEL_REPEATED = 3;
/** Edition.EDITION_2023 */
const EDITION_2023 = 1000;

/** @throws DescriptorError */
export function readDescriptorSet(bytes: Buffer): TypeRegistry {
  const set = new SetReader();
  try {
    const reader = new WireReader(bytes);
    while (reader.next()) {
      if (reader.field === 1) set.file(reader.inner());
      else reader.skip();
    }
  } catch (error) {
    if (error instanceof WireError) throw new DescriptorError(`it is not a FileDescriptorSet: ${error.message}`);
    throw error;
  }
  return set.finish();
}

const WELL_KNOWN: { readonly [name: string]: WellKnown } = {
  'google.protobuf.Any': WellKnown.Any,
  'google.protobuf.Timestamp': WellKnown.Timestamp,
  'google.protobuf.Duration': WellKnown.Duration,
  'google.protobuf.FieldMask': WellKnown.FieldMask,
  'google.protobuf.Struct': WellKnown.Struct,
  'google.protobuf.Value': WellKnown.Value,
  'google.protobuf.ListValue': WellKnown.ListValue,
  'google.protobuf.DoubleValue': WellKnown.Wrapper,
  'google.protobuf.FloatValue': WellKnown.Wrapper,
  'google.protobuf.Int64Value': WellKnown.Wrapper,
  'google.protobuf.UInt64Value': WellKnown.Wrapper,
  'google.protobuf.Int32Value': WellKnown.Wrapper,
  'google.protobuf.UInt32Value': WellKnown.Wrapper,
  'google.protobuf.BoolValue': WellKnown.Wrapper,
  'google.protobuf.StringValue': WellKnown.Wrapper,
  'google.protobuf.BytesValue': WellKnown.Wrapper,
};

/** A field whose type has not been looked up. */
interface RawField {
  name: string;
  jsonName: string;
  number: number;
  label: number;
  type: number;
  typeName: string;
  oneof: number;
  isOptional3: boolean;
  presence: number;
  utf8: number;
  encoding: number;
}

interface RawMethod {
  name: string;
  input: string;
  output: string;
  clientStreaming: boolean;
  serverStreaming: boolean;
  httpRule: Buffer | undefined;
}

/** Features of an edition, as far as they are used. 0: not set. */
interface Features {
  /** FeatureSet.FieldPresence: 1 explicit, 2 implicit, 3 required. */
  presence: number;
  /** FeatureSet.Utf8Validation: 2 verify, 3 none. */
  utf8: number;
  /** FeatureSet.MessageEncoding: 2 delimited. */
  encoding: number;
}

class SetReader {
  readonly #files = new Set<string>();
  readonly #dependencies: string[] = [];
  readonly #messages = new Map<string, OpenMessage>();
  readonly #enums = new Map<string, EnumDescriptor>();
  readonly #services = new Map<string, RawMethod[]>();
  readonly #names = new Set<string>();

  file(reader: WireReader): void {
    let name = '';
    let home = '';
    let syntax = 'proto2';
    const features: Features = { presence: 0, utf8: 0, encoding: 0 };
    const later: [kind: number, reader: WireReader][] = [];
    while (reader.next()) {
      if (reader.wireType !== WireType.Bytes) {
        if (reader.field === 14 && reader.uint32() >= EDITION_2023) syntax = 'editions';
        else if (reader.field !== 14) reader.skip();
      } else if (reader.field === 1) name = reader.text();
      else if (reader.field === 2) home = reader.text();
      else if (reader.field === 3) this.#dependencies.push(reader.text());
      else if (reader.field === 8) readOptions(reader.inner(), 50, features);
      else if (reader.field === 12) syntax = reader.text();
      else if (reader.field >= 4 && reader.field <= 6) later.push([reader.field, reader.inner()]);
      else reader.skip();
    }
    if (this.#files.has(name)) throw new DescriptorError(`the file '${name}' occurs twice`);
    this.#files.add(name);
    const defaults = withDefaults(features, syntax);
    for (const [kind, inner] of later) {
      if (kind === 4) this.#message(inner, home, defaults, 0);
      else if (kind === 5) this.#enum(inner, home);
      else this.#service(inner, home);
    }
  }

  finish(): TypeRegistry {
    const missing = this.#dependencies.find((name) => !this.#files.has(name));
    if (missing !== undefined)
      throw new DescriptorError(`the imported file '${missing}' is missing: use protoc's --include_imports`);
    for (const message of this.#messages.values()) message.resolve(this.#messages, this.#enums);
    const services = new Map<string, ServiceDescriptor>();
    for (const [name, methods] of this.#services)
      services.set(name, { name, methods: methods.map((method) => this.#method(name, method)) });
    return { messages: this.#messages, services };
  }

  #claim(home: string, name: string): string {
    const full = home === '' ? name : `${home}.${name}`;
    if (name === '' || this.#names.has(full)) throw new DescriptorError(`'${full}' is defined twice`);
    this.#names.add(full);
    return full;
  }

  #message(reader: WireReader, home: string, inherited: Features, depth: number): void {
    if (depth > MAX_NESTED) throw new DescriptorError('messages are nested too deep');
    let name = '';
    let isMapEntry = false;
    const features = { ...inherited };
    const oneofs: string[] = [];
    const fields: WireReader[] = [];
    const nested: WireReader[] = [];
    const enums: WireReader[] = [];
    while (reader.next()) {
      if (reader.wireType !== WireType.Bytes) reader.skip();
      else if (reader.field === 1) name = reader.text();
      else if (reader.field === 2) fields.push(reader.inner());
      else if (reader.field === 3) nested.push(reader.inner());
      else if (reader.field === 4) enums.push(reader.inner());
      else if (reader.field === 7) isMapEntry = readOptions(reader.inner(), 12, features, 7);
      else if (reader.field === 8) oneofs.push(nameIn(reader.inner()));
      else reader.skip();
    }
    const full = this.#claim(home, name);
    const raw = fields.map((field) => readField(field, features));
    this.#messages.set(full, new OpenMessage(full, raw, oneofs, isMapEntry));
    for (const inner of nested) this.#message(inner, full, features, depth + 1);
    for (const inner of enums) this.#enum(inner, full);
  }

  #enum(reader: WireReader, home: string): void {
    let name = '';
    const byName = new Map<string, number>();
    const byNumber = new Map<number, string>();
    while (reader.next()) {
      if (reader.wireType !== WireType.Bytes) reader.skip();
      else if (reader.field === 1) name = reader.text();
      else if (reader.field === 2) {
        const [value, number] = enumValue(reader.inner());
        byName.set(value, number);
        if (!byNumber.has(number)) byNumber.set(number, value);
      } else reader.skip();
    }
    const full = this.#claim(home, name);
    this.#enums.set(full, { name: full, byName, byNumber });
  }

  #service(reader: WireReader, home: string): void {
    let name = '';
    const methods: RawMethod[] = [];
    while (reader.next()) {
      if (reader.wireType !== WireType.Bytes) reader.skip();
      else if (reader.field === 1) name = reader.text();
      else if (reader.field === 2) methods.push(readMethod(reader.inner()));
      else reader.skip();
    }
    this.#services.set(this.#claim(home, name), methods);
  }

  #method(service: string, raw: RawMethod): MethodDescriptor {
    const { input, output, ...rest } = raw;
    const find = (name: string) => {
      const message = this.#messages.get(name.replace(/^\./, ''));
      if (message === undefined) throw new DescriptorError(`${service}.${raw.name}: there is no message '${name}'`);
      return message;
    };
    return { ...rest, input: find(input), output: find(output) };
  }
}

/** A message whose fields are completed when all types are known. */
class OpenMessage implements MessageDescriptor {
  readonly name: string;
  readonly fields: FieldDescriptor[] = [];
  readonly byNumber = new Map<number, FieldDescriptor>();
  readonly byName = new Map<string, FieldDescriptor>();
  readonly oneofs: readonly string[];
  readonly isMapEntry: boolean;
  wellKnown: WellKnown;
  #raw: readonly RawField[];

  constructor(name: string, raw: readonly RawField[], oneofs: readonly string[], isMapEntry: boolean) {
    this.name = name;
    this.#raw = raw;
    this.oneofs = oneofs;
    this.isMapEntry = isMapEntry;
    this.wellKnown = WELL_KNOWN[name] ?? WellKnown.None;
  }

  resolve(messages: ReadonlyMap<string, MessageDescriptor>, enums: ReadonlyMap<string, EnumDescriptor>): void {
    for (const raw of this.#raw) this.#add(completeField(this.name, raw, messages, enums));
    this.#raw = [];
    if (this.isMapEntry && (this.byNumber.size !== 2 || !this.byNumber.has(1) || !this.byNumber.has(2)))
      throw new DescriptorError(`${this.name} is not an entry of a map`);
    if (!hasExpectedFields(this)) this.wellKnown = WellKnown.None;
  }

  #add(field: FieldDescriptor): void {
    if (this.byNumber.has(field.number)) throw new DescriptorError(`${this.name} has two fields ${field.number}`);
    if (field.oneof >= this.oneofs.length) throw new DescriptorError(`${this.name}.${field.name}: no such oneof`);
    this.fields.push(field);
    this.byNumber.set(field.number, field);
    if (!this.byName.has(field.jsonName)) this.byName.set(field.jsonName, field);
    this.byName.set(field.name, field);
  }
}

const MAX_FIELD_NUMBER = 2 ** 29 - 1;

function completeField(
  home: string,
  raw: RawField,
  messages: ReadonlyMap<string, MessageDescriptor>,
  enums: ReadonlyMap<string, EnumDescriptor>,
): FieldDescriptor {
  const { name, number, label, typeName } = raw;
  const target = typeName.replace(/^\./, '');
  const message = messages.get(target);
  const enumType = enums.get(target);
  let type = raw.type;
  if (type === 0) type = message === undefined ? FieldType.Enum : FieldType.Message;
  if (type === FieldType.Message && raw.encoding === 2 && message?.isMapEntry === false) type = FieldType.Group;
  const isMessage = type === FieldType.Message || type === FieldType.Group;
  const isEnum = type === FieldType.Enum;
  if (type > FieldType.Sint64 || (isMessage && message === undefined) || (isEnum && enumType === undefined))
    throw new DescriptorError(`${home}.${name}: there is no type '${typeName}'`);
  if (name === '' || number < 1 || number > MAX_FIELD_NUMBER)
    throw new DescriptorError(`${home}.${name} has an invalid name or number`);
  const isRepeated = label === LABEL_REPEATED;
  return {
    name,
    jsonName: raw.jsonName === '' ? camelCase(name) : raw.jsonName,
    number,
    type,
    isRepeated,
    isRequired: label === LABEL_REQUIRED || raw.presence === 3,
    hasPresence: !isRepeated && (isMessage || raw.oneof >= 0 || raw.presence !== 2),
    checksUtf8: raw.utf8 === 2,
    oneof: raw.isOptional3 ? -1 : raw.oneof,
    message: isMessage ? message : undefined,
    enum: isEnum ? enumType : undefined,
  };
}

/** Returns whether a well-known message has the fields that its JSON form relies on. */
function hasExpectedFields({ wellKnown, byNumber }: MessageDescriptor): boolean {
  const is = (number: number, type: FieldType) => byNumber.get(number)?.type === type;
  switch (wellKnown) {
    case WellKnown.Any:
      return is(1, FieldType.String) && is(2, FieldType.Bytes);
    case WellKnown.Timestamp:
    case WellKnown.Duration:
      return is(1, FieldType.Int64) && is(2, FieldType.Int32);
    case WellKnown.FieldMask:
      return is(1, FieldType.String);
    case WellKnown.Struct:
      return byNumber.get(1)?.message?.isMapEntry === true;
    case WellKnown.Value:
      return is(2, FieldType.Double) && is(5, FieldType.Message) && is(6, FieldType.Message);
    case WellKnown.ListValue:
      return is(1, FieldType.Message);
    case WellKnown.Wrapper:
      return byNumber.has(1);
    default:
      return true;
  }
}

function withDefaults({ presence, utf8, encoding }: Features, syntax: string): Features {
  const isOld = syntax === 'proto2' || syntax === '';
  return {
    presence: presence || (syntax === 'proto3' ? 2 : 1),
    utf8: utf8 || (isOld ? 3 : 2),
    encoding: encoding || 1,
  };
}

/** Reads options into `features`. Returns the boolean option `flag`. */
function readOptions(reader: WireReader, featuresField: number, features: Features, flag = 0): boolean {
  let isSet = false;
  while (reader.next()) {
    if (reader.field === featuresField && reader.wireType === WireType.Bytes) readFeatures(reader.inner(), features);
    else if (reader.field === flag && reader.wireType === WireType.Varint) isSet = reader.uint32() !== 0;
    else reader.skip();
  }
  return isSet;
}

function readFeatures(reader: WireReader, features: Features): void {
  while (reader.next()) {
    if (reader.wireType !== WireType.Varint) reader.skip();
    else if (reader.field === 1) features.presence = reader.uint32();
    else if (reader.field === 4) features.utf8 = reader.uint32();
    else if (reader.field === 5) features.encoding = reader.uint32();
    else reader.skip();
  }
}

function readField(reader: WireReader, inherited: Features): RawField {
  const features = { ...inherited };
  const field = {
    name: '',
    jsonName: '',
    number: 0,
    label: 0,
    type: 0,
    typeName: '',
    oneof: -1,
    isOptional3: false,
  };
  while (reader.next()) {
    if (reader.wireType === WireType.Bytes) {
      if (reader.field === 1) field.name = reader.text();
      else if (reader.field === 6) field.typeName = reader.text();
      else if (reader.field === 10) field.jsonName = reader.text();
      else if (reader.field === 8) readOptions(reader.inner(), 21, features);
      else reader.skip();
    } else if (reader.wireType === WireType.Varint) {
      const number = reader.uint32();
      if (reader.field === 3) field.number = number;
      else if (reader.field === 4) field.label = number;
      else if (reader.field === 5) field.type = number;
      else if (reader.field === 9) field.oneof = number;
      else if (reader.field === 17) field.isOptional3 = number !== 0;
    } else reader.skip();
  }
  return { ...field, ...features };
}

function readMethod(reader: WireReader): RawMethod {
  const method: RawMethod = {
    name: '',
    input: '',
    output: '',
    clientStreaming: false,
    serverStreaming: false,
    httpRule: undefined,
  };
  while (reader.next()) {
    if (reader.wireType === WireType.Varint) {
      const isSet = reader.uint32() !== 0;
      if (reader.field === 5) method.clientStreaming = isSet;
      else if (reader.field === 6) method.serverStreaming = isSet;
    } else if (reader.wireType !== WireType.Bytes) reader.skip();
    else if (reader.field === 1) method.name = reader.text();
    else if (reader.field === 2) method.input = reader.text();
    else if (reader.field === 3) method.output = reader.text();
    else if (reader.field === 4) method.httpRule = httpRuleIn(reader.inner()) ?? method.httpRule;
    else reader.skip();
  }
  return method;
}

function httpRuleIn(options: WireReader): Buffer | undefined {
  const parts: Buffer[] = [];
  while (options.next()) {
    if (options.field === HTTP_OPTION && options.wireType === WireType.Bytes) parts.push(options.range());
    else options.skip();
  }
  // Parts of a message are merged when they are read one after another.
  return parts.length === 0 ? undefined : Buffer.concat(parts);
}

function enumValue(reader: WireReader): [name: string, number: number] {
  let name = '';
  let number = 0;
  while (reader.next()) {
    if (reader.field === 1 && reader.wireType === WireType.Bytes) name = reader.text();
    else if (reader.field === 2 && reader.wireType === WireType.Varint) number = reader.uint32() | 0;
    else reader.skip();
  }
  return [name, number];
}

function nameIn(reader: WireReader): string {
  let name = '';
  while (reader.next()) {
    if (reader.field === 1 && reader.wireType === WireType.Bytes) name = reader.text();
    else reader.skip();
  }
  return name;
}

function camelCase(name: string): string {
  return name.replace(/_+([a-zA-Z0-9]?)/g, (_, next: string) => next.toUpperCase());
}
