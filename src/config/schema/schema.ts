// Envoy's API as plain data: the types of the bundle, looked up by full name and made when first asked for.
//
// The bundle (dist/schema.json, made by scripts/build-schema.mjs) is in protobufjs's JSON form. Reading it as data costs
// JSON.parse (9 ms); protobufjs needs twenty times that, so it is loaded only for binary and text protos.

import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { BatonError, messageOf } from '../../common/errors/errors.js';
import { packagePath } from '../../common/package/package-root.js';

export type ScalarKind = 'string' | 'bytes' | 'bool' | 'int32' | 'uint32' | 'int64' | 'uint64' | 'double' | 'float';

/** Well-known types that have a form of their own in JSON. */
export type SpecialKind = 'any' | 'duration' | 'timestamp' | 'struct' | 'value' | 'list' | 'fieldMask';

/** What a field holds, an element of it when it is a list or a map. */
export type ValueType =
  | { readonly kind: 'scalar'; readonly scalar: ScalarKind }
  | { readonly kind: 'enum'; readonly name: string }
  | { readonly kind: 'message'; readonly name: string }
  | { readonly kind: 'special'; readonly special: SpecialKind };

/** (validate.rules) of a field, as protoc-gen-validate names them. */
export type FieldRules = { readonly [kind: string]: { readonly [rule: string]: unknown } };

export interface FieldType {
  readonly name: string;
  /** The lowerCamelCase name that proto JSON also accepts. */
  readonly jsonName: string;
  readonly shape: 'single' | 'list' | 'map';
  readonly mapKey: ScalarKind | undefined;
  readonly value: ValueType;
  /** Whether "set to the default" differs from "not set": messages, wrappers, members of a oneof, optional. */
  readonly hasPresence: boolean;
  readonly oneof: string | undefined;
  readonly rules: FieldRules | undefined;
  readonly isDeprecated: boolean;
  /** Deprecated, and refused unless runtime allows it. */
  readonly isDisallowed: boolean;
  /** Work in progress in the API. */
  readonly isUnfinished: boolean;
  readonly isSensitive: boolean;
  /** Category of the extensions that fit in here, if the API names one. */
  readonly category: string | undefined;
}

export interface OneofType {
  readonly name: string;
  readonly fields: readonly string[];
  readonly isRequired: boolean;
}

export interface MessageType {
  readonly name: string;
  readonly fields: ReadonlyMap<string, FieldType>;
  /** The same fields by their lowerCamelCase names. */
  readonly byJsonName: ReadonlyMap<string, FieldType>;
  readonly oneofs: readonly OneofType[];
  /** Work in progress in the API. */
  readonly isUnfinished: boolean;
}

export interface EnumType {
  readonly name: string;
  readonly values: ReadonlyMap<string, number>;
  readonly names: ReadonlyMap<number, string>;
  readonly deprecated: ReadonlySet<string>;
  /** Those of the deprecated values that are refused unless runtime allows them. */
  readonly disallowed: ReadonlySet<string>;
}

/** The types of Envoy's API. */
export class Schema {
  readonly #root: BundleNode;
  readonly #messages = new Map<string, MessageType | undefined>();
  readonly #enums = new Map<string, EnumType>();
  #previous: Map<string, string> | undefined;

  constructor(bundle: unknown) {
    this.#root = bundle as BundleNode;
  }

  /** The message of that full name, or undefined when the bundle has none. */
  message(name: string): MessageType | undefined {
    if (!this.#messages.has(name)) {
      const node = this.#find(name);
      this.#messages.set(name, node?.fields ? messageType(name, node, (inner) => this.#find(inner)) : undefined);
    }
    return this.#messages.get(name);
  }

  /** Full names of all messages, in alphabetical order. */
  messageNames(): readonly string[] {
    const names: string[] = [];
    walk(this.#root, (name, node) => {
      if (node.fields) names.push(name);
    });
    return names.sort();
  }

  /** An enum that a field of the bundle names. */
  enum(name: string): EnumType {
    let found = this.#enums.get(name);
    if (!found) {
      found = enumType(name, this.#find(name)!);
      this.#enums.set(name, found);
    }
    return found;
  }

  /** The v3 name of a message that a v2 configuration names. */
  successorOf(previous: string): string | undefined {
    this.#previous ??= previousNames(this.#root);
    return this.#previous.get(previous);
  }

  #find(name: string): BundleNode | undefined {
    let node: BundleNode | undefined = this.#root;
    for (const part of name.split('.')) {
      const nested: BundleNode['nested'] = node?.nested;
      node = nested && Object.hasOwn(nested, part) ? nested[part] : undefined;
    }
    return node;
  }
}

let shared: Schema | undefined;

/** Where the bundle lies. */
export function schemaPath(): string {
  return packagePath('dist', 'schema.json');
}

/**
 * The bundle of this installation, read once.
 * @throws BatonError INSTALLATION_BROKEN
 */
export function loadSchema(): Schema {
  if (!shared) {
    try {
      shared = new Schema(JSON.parse(readFileSync(schemaPath(), 'utf8')));
    } catch (cause) {
      throw new BatonError('INSTALLATION_BROKEN', `the schema cannot be read: ${messageOf(cause)}`, {
        where: schemaPath(),
        remedy: 'run `npm run build`',
        cause,
      });
    }
  }
  return shared;
}

/** A schema that lasts as long as it is used: for requests now and then in a thread that is to stay small. */
export async function passingSchema(): Promise<Schema> {
  const known = passing?.deref();
  if (known !== undefined) return known;
  reading ??= readSchema().finally(() => {
    reading = undefined;
  });
  return reading;
}

let passing: WeakRef<Schema> | undefined;
let reading: Promise<Schema> | undefined;

async function readSchema(): Promise<Schema> {
  const schema = new Schema(JSON.parse(await readFile(schemaPath(), 'utf8')));
  passing = new WeakRef(schema);
  return schema;
}

interface BundleField {
  readonly type: string;
  readonly rule?: 'repeated';
  readonly keyType?: string;
  readonly options?: {
    readonly rules?: FieldRules;
    readonly deprecated?: boolean;
    readonly disallowed?: boolean;
    readonly unfinished?: boolean;
    readonly sensitive?: boolean;
    readonly category?: string;
    readonly proto3_optional?: boolean;
  };
}

interface BundleNode {
  readonly nested?: { readonly [name: string]: BundleNode };
  readonly fields?: { readonly [name: string]: BundleField };
  readonly oneofs?: {
    readonly [name: string]: { readonly oneof: readonly string[]; readonly options?: { readonly required?: boolean } };
  };
  readonly values?: { readonly [name: string]: number };
  readonly valuesOptions?: { readonly [name: string]: { readonly disallowed?: boolean } };
  readonly options?: { readonly previous?: string; readonly unfinished?: boolean };
}

const WRAPPERS: { readonly [name: string]: ScalarKind } = {
  DoubleValue: 'double',
  FloatValue: 'float',
  Int64Value: 'int64',
  UInt64Value: 'uint64',
  Int32Value: 'int32',
  UInt32Value: 'uint32',
  BoolValue: 'bool',
  StringValue: 'string',
  BytesValue: 'bytes',
};

const SPECIAL: { readonly [name: string]: SpecialKind } = {
  Any: 'any',
  Duration: 'duration',
  Timestamp: 'timestamp',
  Struct: 'struct',
  Value: 'value',
  ListValue: 'list',
  FieldMask: 'fieldMask',
};

const SCALARS: { readonly [type: string]: ScalarKind } = {
  string: 'string',
  bytes: 'bytes',
  bool: 'bool',
  double: 'double',
  float: 'float',
  int32: 'int32',
  sint32: 'int32',
  sfixed32: 'int32',
  uint32: 'uint32',
  fixed32: 'uint32',
  int64: 'int64',
  sint64: 'int64',
  sfixed64: 'int64',
  uint64: 'uint64',
  fixed64: 'uint64',
};

const WELL_KNOWN = '.google.protobuf.';

function messageType(name: string, node: BundleNode, find: (name: string) => BundleNode | undefined): MessageType {
  const oneofs = Object.entries(node.oneofs ?? {}).map(([oneof, json]) => ({
    name: oneof,
    fields: json.oneof,
    isRequired: json.options?.required === true,
  }));
  const fields = new Map<string, FieldType>();
  const byJsonName = new Map<string, FieldType>();
  for (const [fieldName, json] of Object.entries(node.fields!)) {
    const oneof = oneofs.find((candidate) => candidate.fields.includes(fieldName))?.name;
    const field = fieldType(fieldName, json, oneof, find);
    fields.set(fieldName, field);
    byJsonName.set(field.jsonName, field);
  }
  return { name, fields, byJsonName, oneofs, isUnfinished: node.options?.unfinished === true };
}

function fieldType(
  name: string,
  json: BundleField,
  oneof: string | undefined,
  find: (name: string) => BundleNode | undefined,
): FieldType {
  const shape = json.keyType ? 'map' : json.rule === 'repeated' ? 'list' : 'single';
  const isMessage = json.type.startsWith('.') && find(json.type.slice(1))?.values === undefined;
  return {
    name,
    jsonName: name.replace(/_([a-z0-9])/g, (_all, letter: string) => letter.toUpperCase()),
    shape,
    mapKey: json.keyType ? SCALARS[json.keyType] : undefined,
    value: valueType(json.type, isMessage),
    hasPresence: shape === 'single' && (isMessage || oneof !== undefined || json.options?.proto3_optional === true),
    oneof,
    rules: json.options?.rules,
    isDeprecated: json.options?.deprecated === true,
    isDisallowed: json.options?.disallowed === true,
    isUnfinished: json.options?.unfinished === true,
    isSensitive: json.options?.sensitive === true,
    category: json.options?.category,
  };
}

function valueType(type: string, isMessage: boolean): ValueType {
  if (!type.startsWith('.')) return { kind: 'scalar', scalar: SCALARS[type]! };
  if (type.startsWith(WELL_KNOWN)) {
    const known = type.slice(WELL_KNOWN.length);
    const scalar = WRAPPERS[known];
    if (scalar) return { kind: 'scalar', scalar };
    const special = SPECIAL[known];
    if (special) return { kind: 'special', special };
  }
  return isMessage ? { kind: 'message', name: type.slice(1) } : { kind: 'enum', name: type.slice(1) };
}

function enumType(name: string, node: BundleNode): EnumType {
  const values = new Map(Object.entries(node.values!));
  const names = new Map<number, string>();
  for (const [value, number] of values) if (!names.has(number)) names.set(number, value);
  const options = Object.entries(node.valuesOptions ?? {});
  return {
    name,
    values,
    names,
    deprecated: new Set(options.map(([value]) => value)),
    disallowed: new Set(options.filter(([, { disallowed }]) => disallowed === true).map(([value]) => value)),
  };
}

function previousNames(root: BundleNode): Map<string, string> {
  const found = new Map<string, string>();
  walk(root, (name, node) => {
    if (node.options?.previous) found.set(node.options.previous, name);
  });
  return found;
}

function walk(node: BundleNode, visit: (name: string, node: BundleNode) => void, prefix = ''): void {
  for (const [part, child] of Object.entries(node.nested ?? {})) {
    const name = `${prefix}${part}`;
    visit(name, child);
    walk(child, visit, `${name}.`);
  }
}
