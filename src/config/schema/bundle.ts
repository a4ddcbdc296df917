// The form of the bundle of types (dist/schema.json), which scripts/schema/bundle.mjs describes and writes.

import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { packagePath } from '../../common/package/package-root.js';

/** (validate.rules) of a field, as protoc-gen-validate names them; durations are texts such as '0.5s'. */
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

/** A field as it is written. */
export type BundleField = string | readonly [string, FieldOptions];

/** A package, a message or an enum. */
export interface BundleNode {
  readonly nested?: { readonly [name: string]: BundleNode };
  readonly fields?: { readonly [name: string]: BundleField };
  /** The places of the first and the last member among the fields; true if one must be set. */
  readonly oneofs?: { readonly [name: string]: readonly [first: number, last: number, isRequired?: true] };
  readonly values?: { readonly [name: string]: number };
  readonly valuesOptions?: { readonly [name: string]: { readonly disallowed?: boolean } };
  /** Its v2 name. */
  readonly was?: string;
  readonly unfinished?: true;
}

/** The whole bundle. */
export interface Bundle extends BundleNode {
  /** Names of Envoy's extensions by category, each with `=` and a package where its messages lie elsewhere than the name says. */
  readonly extensions?: { readonly [category: string]: string };
}

/** Members of the oneofs of a message, by name. */
export function oneofMembers({ fields, oneofs }: BundleNode): readonly (readonly [name: string, members: string[]])[] {
  const names = Object.keys(fields ?? {});
  return Object.entries(oneofs ?? {}).map(([name, [first, last]]) => [name, names.slice(first, last + 1)]);
}

/** What stands in a field. */
export interface FieldText {
  /** Full name of a message or an enum, or undefined for a scalar. */
  readonly typeName: string | undefined;
  /** The scalar; empty for others. */
  readonly scalar: string;
  readonly id: number;
  readonly isList: boolean;
  readonly mapKey: string | undefined;
  readonly options: FieldOptions;
}

/** Where the bundle lies. */
export function schemaPath(): string {
  return packagePath('dist', 'schema.json');
}

/** The bundle of this installation. Throws what reading or parsing the file throws. */
export function readBundle(): Bundle {
  return JSON.parse(readFileSync(schemaPath(), 'utf8')) as Bundle;
}

/** The same, read without holding up the thread. */
export async function readBundleLater(): Promise<Bundle> {
  return JSON.parse(await readFile(schemaPath(), 'utf8')) as Bundle;
}

export function isType(node: BundleNode): boolean {
  return node.fields !== undefined || node.values !== undefined;
}

/** A type, and the package that names in it may leave out. */
export interface FoundNode {
  readonly node: BundleNode;
  readonly home: string;
}

/** The package or type of that full name. */
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

/** The type of that full name, or the one that it is nested in. */
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

/** Reads a field of a message in the package `home`. */
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
