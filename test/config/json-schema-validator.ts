// As much of JSON Schema (draft-07) as Baton's own schema uses; a keyword beyond it is an error of the test.

import { isDeepStrictEqual } from 'node:util';

type Node = { readonly [keyword: string]: unknown };

/** What is wrong with `value`, by its path; nothing when it is valid. */
export function schemaErrors(schema: Node, value: unknown): string[] {
  return errorsOf(schema, schema, value, '');
}

const NOTES = new Set(['$schema', 'title', 'description', 'definitions']);

type Keyword = (rule: never, value: unknown, at: string, node: Node, root: Node) => string[];

const KEYWORDS: { readonly [keyword: string]: Keyword } = {
  $ref: (ref: string, value, at, _node, root) => {
    const name = ref.slice('#/definitions/'.length);
    const target = (root['definitions'] as Record<string, Node>)[name];
    if (!target) throw new Error(`no definition ${name}`);
    return errorsOf(root, target, value, at);
  },
  allOf: (parts: readonly Node[], value, at, _node, root) => parts.flatMap((part) => errorsOf(root, part, value, at)),
  if: (condition: Node, value, at, node, root) =>
    errorsOf(root, condition, value, at).length > 0 ? [] : errorsOf(root, node['then'] as Node, value, at),
  // biome-ignore lint/suspicious/noThenProperty: that is the keyword
  then: () => [],
  anyOf: (parts: readonly Node[], value, at, _node, root) => {
    const found = parts.map((part) => errorsOf(root, part, value, at));
    return found.some((errors) => errors.length === 0) ? [] : [`${at}: none of ${parts.length}`, ...found.flat()];
  },
  type: (type: string | readonly string[], value, at) =>
    [type].flat().some((name) => isOfType(value, name)) ? [] : [`${at}: no ${[type].flat().join(' or ')}`],
  enum: (values: readonly unknown[], value, at) => (values.includes(value) ? [] : [`${at}: no value of the enum`]),
  const: (wanted: unknown, value, at) => (isDeepStrictEqual(value, wanted) ? [] : [`${at}: not ${String(wanted)}`]),
  pattern: (pattern: string, value, at) => text(value, (held) => new RegExp(pattern, 'u').test(held), at, pattern),
  minLength: (limit: number, value, at) => text(value, (held) => [...held].length >= limit, at, 'minLength'),
  maxLength: (limit: number, value, at) => text(value, (held) => [...held].length <= limit, at, 'maxLength'),
  minimum: (limit: number, value, at) => number(value, (held) => held >= limit, at, 'minimum'),
  maximum: (limit: number, value, at) => number(value, (held) => held <= limit, at, 'maximum'),
  exclusiveMinimum: (limit: number, value, at) => number(value, (held) => held > limit, at, 'exclusiveMinimum'),
  exclusiveMaximum: (limit: number, value, at) => number(value, (held) => held < limit, at, 'exclusiveMaximum'),
  items: (items: Node, value, at, _node, root) =>
    Array.isArray(value) ? value.flatMap((item, index) => errorsOf(root, items, item, `${at}[${index}]`)) : [],
  minItems: (limit: number, value, at) => (Array.isArray(value) && value.length < limit ? [`${at}: minItems`] : []),
  maxItems: (limit: number, value, at) => (Array.isArray(value) && value.length > limit ? [`${at}: maxItems`] : []),
  maxProperties: (limit: number, value, at) => (members(value).length > limit ? [`${at}: maxProperties`] : []),
  required: (names: readonly string[], value, at) =>
    isRecord(value) ? names.filter((name) => !Object.hasOwn(value, name)).map((name) => `${at}: needs ${name}`) : [],
  properties: (properties: Record<string, Node>, value, at, _node, root) =>
    members(value).flatMap(([name, held]) =>
      Object.hasOwn(properties, name) ? errorsOf(root, properties[name]!, held, `${at}.${name}`) : [],
    ),
  additionalProperties: (rest: boolean | Node, value, at, node, root) => {
    const known = (node['properties'] ?? {}) as object;
    const others = members(value).filter(([name]) => !Object.hasOwn(known, name));
    if (rest === false) return others.map(([name]) => `${at}: no property ${name}`);
    return rest === true ? [] : others.flatMap(([name, held]) => errorsOf(root, rest, held, `${at}.${name}`));
  },
};

function errorsOf(root: Node, node: Node, value: unknown, at: string): string[] {
  return Object.entries(node).flatMap(([keyword, rule]) => {
    if (NOTES.has(keyword)) return [];
    const check = KEYWORDS[keyword];
    if (!check) throw new Error(`keyword ${keyword} is unknown`);
    return check(rule as never, value, at, node, root);
  });
}

function isOfType(value: unknown, type: string): boolean {
  switch (type) {
    case 'null':
      return value === null;
    case 'array':
      return Array.isArray(value);
    case 'object':
      return isRecord(value);
    case 'integer':
      return Number.isInteger(value);
    case 'number':
      return typeof value === 'number';
    case 'string':
      return typeof value === 'string';
    case 'boolean':
      return typeof value === 'boolean';
    default:
      throw new Error(`type ${type} is unknown`);
  }
}

function text(value: unknown, isRight: (text: string) => boolean, at: string, rule: string): string[] {
  return typeof value !== 'string' || isRight(value) ? [] : [`${at}: ${rule}`];
}

function number(value: unknown, isRight: (number: number) => boolean, at: string, rule: string): string[] {
  return typeof value !== 'number' || isRight(value) ? [] : [`${at}: ${rule}`];
}

function members(value: unknown): [string, unknown][] {
  return isRecord(value) ? Object.entries(value) : [];
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
