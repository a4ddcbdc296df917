// Envoy's API as plain data: the types of the bundle, by full name, created on first use.
//
// Reading the bundle (bundle.ts) costs a JSON.parse (3 ms). protobufjs would take more than twenty times as long, so it is
// loaded only for binary and text protos.

import { BatonError, messageOf } from '../../common/errors/errors.js';
import {
  type Bundle,
  type BundleField,
  type BundleNode,
  type FieldRules,
  findNode,
  oneofMembers,
  readBundle,
  readBundleAsync,
  readField,
  schemaPath,
} from './bundle.js';

export type { FieldRules } from './bundle.js';

export type ScalarKind = 'string' | 'bytes' | 'bool' | 'int32' | 'uint32' | 'int64' | 'uint64' | 'double' | 'float';

/** Well-known types with their own JSON form. */
export type SpecialKind = 'any' | 'duration' | 'timestamp' | 'struct' | 'value' | 'list' | 'fieldMask';

/** The type of a field's value, or of its elements if it is a list or a map. */
export type ValueType =
  | { readonly kind: 'scalar'; readonly scalar: ScalarKind; readonly isWrapper?: boolean }
  | { readonly kind: 'enum'; readonly name: string }
  | { readonly kind: 'message'; readonly name: string }
  | { readonly kind: 'special'; readonly special: SpecialKind };

export interface FieldType {
  readonly name: string;
  /** The lowerCamelCase name that proto JSON also accepts. */
  readonly jsonName: string;
  readonly shape: 'single' | 'list' | 'map';
  readonly mapKey: ScalarKind | undefined;
  readonly value: ValueType;
  /** Whether "set to the default" differs from "not set": messages, wrappers, members of a oneof, optional fields. */
  readonly hasPresence: boolean;
  readonly oneof: string | undefined;
  readonly rules: FieldRules | undefined;
  readonly isDeprecated: boolean;
  /** Deprecated, and refused unless runtime allows it. */
  readonly isDisallowed: boolean;
  /** Work in progress in the API. */
  readonly isUnfinished: boolean;
  readonly isSensitive: boolean;
  /** Category of the extensions that the field accepts, if the API defines one. */
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
  /** The same fields, by lowerCamelCase name. */
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
  /** Deprecated values that are refused unless runtime allows them. */
  readonly disallowed: ReadonlySet<string>;
}

/** The types of Envoy's API. */
export class Schema {
  readonly #root: Bundle;
  readonly #messages = new Map<string, MessageType | undefined>();
  readonly #enums = new Map<string, EnumType>();
  #previous: Map<string, string> | undefined;

  constructor(bundle: unknown) {
    this.#root = bundle as Bundle;
  }

  /** Returns the message with that full name, or undefined if the bundle has none. */
  message(name: string): MessageType | undefined {
    if (!this.#messages.has(name)) {
      const found = findNode(this.#root, name);
      const isMessage = found?.node.fields !== undefined;
      this.#messages.set(name, isMessage ? messageType(name, found.node, found.home, this.#root) : undefined);
    }
    return this.#messages.get(name);
  }

  /** Returns the full names of all messages, in alphabetical order. */
  messageNames(): readonly string[] {
    const names: string[] = [];
    walk(this.#root, (name, node) => {
      if (node.fields) names.push(name);
    });
    return names.sort();
  }

  /** Returns an enum that a field of the bundle refers to. */
  enum(name: string): EnumType {
    let found = this.#enums.get(name);
    if (!found) {
      found = enumType(name, findNode(this.#root, name)!.node);
      this.#enums.set(name, found);
    }
    return found;
  }

  /**
   * Returns Envoy's extensions in a category: their names, with the package of their messages if it is not the one that the
   * name implies.
   */
  extensionsOf(category: string): ReadonlyMap<string, string | undefined> {
    const names = this.#root.extensions?.[category]?.split(' ') ?? [];
    return new Map(names.map((text) => text.split('=', 2) as [string, string | undefined]));
  }

  /** Returns the categories of Envoy's extensions. */
  extensionCategories(): readonly string[] {
    return Object.keys(this.#root.extensions ?? {});
  }

  /** Returns the v3 name of a v2 message. */
  successorOf(previous: string): string | undefined {
    this.#previous ??= previousNames(this.#root);
    return this.#previous.get(previous);
  }
}

let shared: Schema | undefined;

/**
 * Returns the bundle of this installation, which is read once.
 * @throws BatonError INSTALLATION_BROKEN
 */
export function loadSchema(): Schema {
  if (!shared) {
    try {
      shared = new Schema(readBundle());
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

/** Returns a schema that can be garbage collected after use: for occasional requests in a thread that must stay small. */
export async function temporarySchema(): Promise<Schema> {
  const known = temporary?.deref();
  if (known !== undefined) return known;
  reading ??= readSchema().finally(() => {
    reading = undefined;
  });
  return reading;
}

let temporary: WeakRef<Schema> | undefined;
let reading: Promise<Schema> | undefined;

async function readSchema(): Promise<Schema> {
  const schema = new Schema(await readBundleAsync());
  temporary = new WeakRef(schema);
  return schema;
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

const WELL_KNOWN = 'google.protobuf.';

function messageType(name: string, node: BundleNode, home: string, root: BundleNode): MessageType {
  const oneofs = oneofMembers(node).map(([oneof, members]) => ({
    name: oneof,
    fields: members,
    isRequired: node.oneofs![oneof]![2] === true,
  }));
  const fields = new Map<string, FieldType>();
  const byJsonName = new Map<string, FieldType>();
  for (const [fieldName, written] of Object.entries(node.fields!)) {
    const oneof = oneofs.find((candidate) => candidate.fields.includes(fieldName))?.name;
    const field = fieldType(fieldName, written, home, oneof, root);
    fields.set(fieldName, field);
    byJsonName.set(field.jsonName, field);
  }
  return { name, fields, byJsonName, oneofs, isUnfinished: node.unfinished === true };
}

function fieldType(
  name: string,
  written: BundleField,
  home: string,
  oneof: string | undefined,
  root: BundleNode,
): FieldType {
  const { typeName, scalar, isList, mapKey, options } = readField(written, home);
  const shape = mapKey ? 'map' : isList ? 'list' : 'single';
  const isMessage = typeName !== undefined && findNode(root, typeName)?.node.values === undefined;
  return {
    name,
    jsonName: name.replace(/_([a-z0-9])/g, (_all, letter: string) => letter.toUpperCase()),
    shape,
    mapKey: mapKey ? SCALARS[mapKey] : undefined,
    value: typeName === undefined ? { kind: 'scalar', scalar: SCALARS[scalar]! } : typeOfName(typeName, isMessage),
    hasPresence: shape === 'single' && (isMessage || oneof !== undefined || options.optional === true),
    oneof,
    rules: options.rules,
    isDeprecated: options.deprecated === true,
    isDisallowed: options.disallowed === true,
    isUnfinished: options.unfinished === true,
    isSensitive: options.sensitive === true,
    category: options.category,
  };
}

function typeOfName(name: string, isMessage: boolean): ValueType {
  if (name.startsWith(WELL_KNOWN)) {
    const known = name.slice(WELL_KNOWN.length);
    const scalar = WRAPPERS[known];
    if (scalar) return { kind: 'scalar', scalar, isWrapper: true };
    const special = SPECIAL[known];
    if (special) return { kind: 'special', special };
  }
  return isMessage ? { kind: 'message', name } : { kind: 'enum', name };
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
    if (node.was) found.set(node.was, name);
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
