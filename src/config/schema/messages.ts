// Messages of Envoy's API in protobuf's binary form, for services that Baton calls: only the types that are wanted, and
// what they hold, are made of the bundle.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Root, Type } from 'protobufjs';
import type * as ProtoJson from 'protobufjs/ext/protojson.js';
import type protobufjs from 'protobufjs/light.js';
import { schemaPath } from './schema.js';

/** A node of the bundle (schema.ts). */
interface Node {
  nested?: { [name: string]: Node };
  readonly fields?: {
    readonly [name: string]: { readonly type: string; readonly options?: { readonly proto3_optional?: boolean } };
  };
  readonly oneofs?: { readonly [name: string]: object };
}

/** The messages of these full names. protobufjs is loaded by the first call. */
export function loadMessages<N extends string>(...names: readonly N[]): { readonly [name in N]: Type } {
  const require = createRequire(import.meta.url);
  const protobuf = require('protobufjs/light.js') as typeof protobufjs;
  const bundle = JSON.parse(readFileSync(schemaPath(), 'utf8')) as Node;
  const root = protobuf.Root.fromJSON(subset(bundle, names) as Parameters<typeof Root.fromJSON>[0]);
  return Object.fromEntries(names.map((name) => [name, root.lookupType(name)])) as { [name in N]: Type };
}

/** Every message of the API, for whoever does not know which ones are to come. Takes 0.2 s and some 40 MB. */
export function loadAllMessages(): Root {
  const require = createRequire(import.meta.url);
  const protobuf = require('protobufjs/light.js') as typeof protobufjs;
  const bundle = JSON.parse(readFileSync(schemaPath(), 'utf8')) as Node;
  return protobuf.Root.fromJSON(complete(bundle) as Parameters<typeof Root.fromJSON>[0]);
}

/** The binary form of a message that a configuration holds. `json` is in the API's JSON form. */
export function encodeJson(type: Type, json: object): Uint8Array {
  const { fromJson } = createRequire(import.meta.url)('protobufjs/ext/protojson.js') as typeof ProtoJson;
  return type.encode(fromJson(type, json)).finish();
}

function subset(bundle: Node, names: readonly string[]): Node {
  const wanted: Node = {};
  const open = [...names];
  const seen = new Set<string>();
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    if (seen.has(name)) continue;
    seen.add(name);
    const node = find(bundle, name);
    if (node === undefined) continue;
    place(wanted, name, node);
    for (const { type } of Object.values(node.fields ?? {})) if (type.startsWith('.')) open.push(type.slice(1));
  }
  return wanted;
}

function find(bundle: Node, name: string): Node | undefined {
  return name.split('.').reduce<Node | undefined>((node, part) => node?.nested?.[part], bundle);
}

/** Puts a type where its name says, without the types that are nested in it. */
function place(root: Node, name: string, { nested: _, ...type }: Node): void {
  let at = root;
  for (const part of name.split('.')) {
    at.nested ??= {};
    at.nested[part] ??= {};
    at = at.nested[part]!;
  }
  Object.assign(at, withOptional(type));
}

/** protobufjs knows optional fields of proto3 by the oneof that protoc makes of each: without it zeros are left out. */
function withOptional(type: Node): Node {
  const optional = Object.keys(type.fields ?? {}).filter((field) => type.fields![field]!.options?.proto3_optional);
  if (optional.length === 0) return type;
  const oneofs = optional.map((field) => [`_${field}`, { oneof: [field] }]);
  return { ...type, oneofs: { ...type.oneofs, ...Object.fromEntries(oneofs) } };
}

function complete(node: Node): Node {
  const type = withOptional(node);
  const { nested } = type;
  if (nested === undefined) return type;
  return { ...type, nested: Object.fromEntries(Object.entries(nested).map(([name, held]) => [name, complete(held)])) };
}
