// Messages of Envoy's API in protobuf's binary form, for services that Baton calls. Only the requested types and those that
// they contain are created.

import { createRequire } from 'node:module';
import type { Namespace, ReflectionObject, Root, Type } from 'protobufjs';
import type * as ProtoJson from 'protobufjs/ext/protojson.js';
import type protobufjs from 'protobufjs/light.js';
import { type BundleNode, findNode, isType, oneofMembers, outermostType, readBundle, readField } from './bundle.js';

/** A node in the format of protobufjs. */
interface ProtoNode {
  nested?: { [name: string]: ProtoNode };
  fields?: { [name: string]: object };
  oneofs?: { [name: string]: object };
  values?: { readonly [name: string]: number };
}

/** Returns the messages with these full names. The first call loads protobufjs. */
export function loadMessages<N extends string>(...names: readonly N[]): { readonly [name in N]: Type } {
  const require = createRequire(import.meta.url);
  const protobuf = require('protobufjs/light.js') as typeof protobufjs;
  const root = protobuf.Root.fromJSON(subset(readBundle(), names) as Parameters<typeof Root.fromJSON>[0]);
  return Object.fromEntries(names.map((name) => [name, root.lookupType(name)])) as { [name in N]: Type };
}

/** Returns all messages of the API. Each is created when it is first looked up, since most never are. */
export function loadAllMessages(): Root {
  const require = createRequire(import.meta.url);
  const protobuf = require('protobufjs/light.js') as typeof protobufjs;
  const bundle = readBundle();
  const made = new Set<string>();
  class AllMessages extends protobuf.Root {
    override lookup(path: string | readonly string[], ...rest: readonly unknown[]): ReflectionObject | null {
      this.#make(typeof path === 'string' ? path.replace(/^\./, '') : path.join('.'));
      return (super.lookup as Lookup).call(this, path, ...rest);
    }

    #make(name: string): void {
      const before = made.size;
      const open = [name];
      for (let next = open.pop(); next !== undefined; next = open.pop()) {
        const type = outermostType(bundle, next);
        if (type === undefined || made.has(type.name)) continue;
        made.add(type.name);
        const { home, node } = type;
        const space = this.define(home.split('.'), {
          [type.name.slice(home.length + 1)]: complete(node, type.name, home),
        });
        rememberNames(space.get(type.name.slice(home.length + 1)), `.${type.name}`);
        open.push(...heldTypes(node, home));
      }
      // The types of the fields exist by now.
      if (made.size > before) this.resolveAll();
    }
  }
  return new AllMessages();
}

/** The library joins the full name of a type each time that it converts a message, which is a tenth of the time for large configurations. */
function rememberNames(object: ReflectionObject | null, fullName: string): void {
  if (object === null) return;
  Object.defineProperty(object, 'fullName', { value: fullName });
  const { nestedArray = [] } = object as Partial<Namespace>;
  for (const inner of nestedArray) rememberNames(inner, `${fullName}.${inner.name}`);
}

type Lookup = (this: Root, path: string | readonly string[], ...rest: readonly unknown[]) => ReflectionObject | null;

/** Returns the binary form of a message. `json`: the message in the API's JSON form. */
export function encodeJson(type: Type, json: object): Uint8Array {
  const { fromJson } = createRequire(import.meta.url)('protobufjs/ext/protojson.js') as typeof ProtoJson;
  return type.encode(fromJson(type, json)).finish();
}

function subset(bundle: BundleNode, names: readonly string[]): ProtoNode {
  const subsetRoot: ProtoNode = {};
  const open = [...names];
  const seen = new Set<string>();
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    if (seen.has(name)) continue;
    seen.add(name);
    const found = findNode(bundle, name);
    if (found === undefined) continue;
    place(subsetRoot, name, protoNode(found.node, found.home));
    open.push(...fieldTypes(found.node, found.home));
  }
  return subsetRoot;
}

/** Returns the full names of the types of a message's fields. */
function fieldTypes({ fields }: BundleNode, home: string): string[] {
  return Object.values(fields ?? {}).flatMap((field) => readField(field, home).typeName ?? []);
}

/** Like fieldTypes(), including nested types. */
function heldTypes(node: BundleNode, home: string): string[] {
  const nested = Object.values(node.nested ?? {}).flatMap((inner) => heldTypes(inner, home));
  return [...fieldTypes(node, home), ...nested];
}

/** Inserts a type at the place that its name implies. */
function place(root: ProtoNode, name: string, type: ProtoNode): void {
  let at = root;
  for (const part of name.split('.')) {
    at.nested ??= {};
    at.nested[part] ??= {};
    at = at.nested[part]!;
  }
  Object.assign(at, type);
}

/** `home`: the package of `node` if it is a type. */
function complete(node: BundleNode, name: string, home: string): ProtoNode {
  const type = isType(node) ? protoNode(node, home) : {};
  if (node.nested === undefined) return type;
  const nested = Object.entries(node.nested).map(([part, inner]) => {
    return [part, complete(inner, name === '' ? part : `${name}.${part}`, isType(node) ? home : name)];
  });
  return { ...type, nested: Object.fromEntries(nested) };
}

/** Returns a type without its nested types. */
function protoNode(node: BundleNode, home: string): ProtoNode {
  const { fields, values } = node;
  if (values !== undefined) return { values };
  const oneofs = oneofMembers(node).map(([name, members]) => [name, { oneof: members }]);
  const type: Required<Pick<ProtoNode, 'fields' | 'oneofs'>> = { fields: {}, oneofs: Object.fromEntries(oneofs) };
  for (const [name, written] of Object.entries(fields!)) {
    const { typeName, scalar, id, isList, mapKey, options } = readField(written, home);
    type.fields[name] = {
      type: typeName === undefined ? scalar : `.${typeName}`,
      id,
      ...(isList && { rule: 'repeated' }),
      ...(mapKey !== undefined && { keyType: mapKey }),
      ...(options.optional === true && { options: { proto3_optional: true } }),
    };
    // protobufjs recognizes optional fields of proto3 by the oneof that protoc creates for each. Without it, zeros are dropped.
    if (options.optional === true) type.oneofs[`_${name}`] = { oneof: [name] };
  }
  return type;
}
