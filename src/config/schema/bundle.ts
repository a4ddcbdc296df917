// The format of the type bundle (dist/schema.json), which scripts/schema/bundle.mjs describes and writes.

import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { packagePath } from '../../common/package/package-root.js';

/** (validate.rules) of a field, with the names of protoc-gen-validate. Durations are strings such as '0.5s'. */
export type FieldRules = { readonly [kind: string]: { readonly [rule: string]: unknown } };

export interface FieldOptions {
  readonly rules?: FieldRules;
  readonly deprecated?: boolean;
  readonly disallowed?: boolean;
  readonly unfinished?: boolean;
  readonly sensitive?: boolean;
  readonly category?: string;
  readonly optional?: boolean;
}

/** A field in the encoding of the bundle. */
export type BundleField = string | readonly [string, FieldOptions];

/** A package, a message or an enum. */
export interface BundleNode {
  readonly nested?: { readonly [name: string]: BundleNode };
  readonly fields?: { readonly [name: string]: BundleField };
  /** Indexes of the first and last member among the fields; true if one must be set. */
  readonly oneofs?: { readonly [name: string]: readonly [first: number, last: number, isRequired?: true] };
  readonly values?: { readonly [name: string]: number };
  readonly valuesOptions?: { readonly [name: string]: { readonly disallowed?: boolean } };
  /** Name of the type in the v2 API. */
  readonly was?: string;
  readonly unfinished?: true;
}

/** The whole bundle. */
export interface Bundle extends BundleNode {
  /**
   * Names of Envoy's extensions by category. `=` and a package follow a name if its messages are in another package than the
   * name implies.
   */
  readonly extensions?: { readonly [category: string]: string };
}

/** Returns the members of a message's oneofs, by name. */
export function oneofMembers({ fields, oneofs }: BundleNode): readonly (readonly [name: string, members: string[]])[] {
  const names = Object.keys(fields ?? {});
  return Object.entries(oneofs ?? {}).map(([name, [first, last]]) => [name, names.slice(first, last + 1)]);
}

/** A decoded field. */
export interface FieldText {
  /** Full name of a message or an enum; undefined for a scalar. */
  readonly typeName: string | undefined;
  /** The scalar type; empty for other types. */
  readonly scalar: string;
  readonly id: number;
  readonly isList: boolean;
  readonly mapKey: string | undefined;
  readonly options: FieldOptions;
}

/** Returns the path of the bundle. */
export function schemaPath(): string {
  return packagePath('dist', 'schema.json');
}

/** Returns the bundle of this installation. Throws the errors of reading and parsing the file. */
export function readBundle(): Bundle {
  return JSON.parse(readFileSync(schemaPath(), 'utf8')) as Bundle;
}

/** Like readBundle(), without blocking the thread. */
export async function readBundleAsync(): Promise<Bundle> {
  return JSON.parse(await readFile(schemaPath(), 'utf8')) as Bundle;
}

export function isType(node: BundleNode): boolean {
  return node.fields !== undefined || node.values !== undefined;
}

/** A type, and the package that names within it may omit. */
export interface FoundNode {
  readonly node: BundleNode;
  readonly home: string;
}

/** Returns the package or type with that full name. */
export function findNode(root: BundleNode, name: string): FoundNode | undefined {
  let node = root;
  let home = '';
  let isInType = false;
  for (const part of name.split('.')) {
    const inner = nestedNode(node, part);
    if (inner === undefined) return undefined;
    node = inner;
    isInType ||= isType(node);
    if (!isInType) home = inPackage(home, part);
  }
  return { node, home };
}

/** Returns the type with that full name, or the outermost type that contains it. */
export function outermostType(root: BundleNode, name: string): (FoundNode & { readonly name: string }) | undefined {
  let node = root;
  let home = '';
  for (const part of name.split('.')) {
    const inner = nestedNode(node, part);
    if (inner === undefined) return undefined;
    if (isType(inner)) return { node: inner, home, name: inPackage(home, part) };
    node = inner;
    home = inPackage(home, part);
  }
  return undefined;
}

function nestedNode({ nested }: BundleNode, name: string): BundleNode | undefined {
  return nested !== undefined && Object.hasOwn(nested, name) ? nested[name] : undefined;
}

const FIELD = /^(?:(\[\])|\{(\w+)\})?(\S+) (\d+)$/;
const NO_OPTIONS: FieldOptions = {};

/** Decodes a field of a message in the package `home`. */
export function readField(field: BundleField, home: string): FieldText {
  const [text, options] = typeof field === 'string' ? [field, NO_OPTIONS] : field;
  const [, list, mapKey, type, id] = FIELD.exec(text)!;
  const typeName = type!.startsWith('.') ? type!.slice(1) : /^[A-Z]/.test(type!) ? inPackage(home, type!) : undefined;
  return {
    typeName,
    scalar: typeName === undefined ? type! : '',
    id: Number(id),
    isList: list !== undefined,
    mapKey,
    options,
  };
}

function inPackage(home: string, name: string): string {
  return home === '' ? name : `${home}.${name}`;
}
