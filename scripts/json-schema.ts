// Writes dist/baton.schema.json: a JSON Schema (draft-07) of the configurations that Baton accepts, for editors and validators.
//
// It is generated from the API's bundle, the table of implemented fields and the registered extensions, so it has no properties
// for fields that are not implemented. It accepts everything that the loader accepts; the loader checks more.

import { writeFileSync } from 'node:fs';
import { argv } from 'node:process';
import { pathToFileURL } from 'node:url';
import { alternativeCategories } from '../src/config/catalog/alternative-categories.js';
import { type Extension, ExtensionCatalog } from '../src/config/catalog/extension.js';
import { type AnyRow, implementedBy, isOpen, rowOf } from '../src/config/implemented/index.js';
import { obeyedValues } from '../src/config/implemented/refusal.js';
import type { ImplementedTable } from '../src/config/implemented/table.js';
import { jsonSchemaPath } from '../src/config/schema/json-schema-path.js';
import { FILTER_CONFIG, messageNameOf, typeUrlOf } from '../src/config/schema/message-name.js';
import {
  type EnumType,
  type FieldRules,
  type FieldType,
  loadSchema,
  type MessageType,
  type ScalarKind,
  type ValueType,
} from '../src/config/schema/schema.js';
import { EXTENSIONS } from '../src/extensions/index.js';

/** A schema or a part of one. */
export type SchemaNode = { readonly [keyword: string]: unknown };

const BOOTSTRAP = 'envoy.config.bootstrap.v3.Bootstrap';
const TYPED_EXTENSION = 'envoy.config.core.v3.TypedExtensionConfig';

/** Messages whose extensions depend on the field that they are in, and those of matchers, which contain such messages. */
const OF_CATEGORIES = new RegExp(`^(${TYPED_EXTENSION}|envoy.config.core.v3.TransportSocket|xds\\..*)$`);

/** Returns the schema of this build. */
export function jsonSchema(extensions: readonly Extension[] = EXTENSIONS): SchemaNode {
  return new Writer(extensions).schema();
}

class Writer {
  readonly #schema = loadSchema();
  readonly #extensions: readonly Extension[];
  readonly #table: ImplementedTable;
  readonly #definitions: Record<string, SchemaNode> = {};

  constructor(extensions: readonly Extension[]) {
    this.#extensions = new ExtensionCatalog(extensions).list();
    this.#table = implementedBy(this.#extensions);
  }

  schema(): SchemaNode {
    const root = this.#message(BOOTSTRAP, undefined);
    return {
      $schema: 'http://json-schema.org/draft-07/schema#',
      title: 'Configuration of Baton',
      description: 'An Envoy v3 bootstrap, as far as this build of Baton implements it.',
      allOf: [root],
      definitions: this.#definitions,
    };
  }

  /** Returns a reference to a message's definition; `category`: the category of extensions in its Any fields. */
  #message(name: string, category: string | undefined): SchemaNode {
    const key = OF_CATEGORIES.test(name) && category !== undefined ? `${name}:${category}` : name;
    this.#define(key, () => this.#object(this.#schema.message(name)!, category));
    return { $ref: `#/definitions/${key}` };
  }

  #define(key: string, make: () => SchemaNode): void {
    if (Object.hasOwn(this.#definitions, key)) return;
    // Messages can contain themselves, so the entry is reserved first.
    this.#definitions[key] = {};
    this.#definitions[key] = make();
  }

  #object(type: MessageType, category: string | undefined): SchemaNode {
    const properties: Record<string, SchemaNode> = {};
    for (const field of type.fields.values()) {
      const row = rowOf(this.#table, type.name, field.name);
      if (!isOpen(row)) continue;
      // Policies that Baton does not have are for other proxies, and may have any content.
      const node = type.name === LB_POLICY ? ANY_MAP : this.#field(field, row, category);
      const described = describe(node, noteOf(field, row));
      properties[field.name] = described;
      properties[field.jsonName] = described;
    }
    return { title: type.name, type: ['object', 'null'], properties, additionalProperties: false };
  }

  #field(field: FieldType, row: AnyRow, inherited: string | undefined): SchemaNode {
    const category = field.category ?? inherited;
    const rules = field.rules ?? {};
    if (field.shape === 'list') {
      const items = this.#value(field.value, (rules['repeated']?.['items'] ?? {}) as FieldRules, row, category);
      return orNull({ anyOf: [{ type: 'array', items, ...bounds(rules['repeated'], 'items', 'Items') }, items] });
    }
    if (field.name === 'typed_per_filter_config') {
      return orNull({ type: 'object', additionalProperties: this.#routeConfig(category) });
    }
    if (field.shape === 'map') {
      const values = this.#value(field.value, (rules['map']?.['values'] ?? {}) as FieldRules, row, category);
      return orNull({ type: 'object', additionalProperties: values });
    }
    return orNull(this.#value(field.value, rules, row, category));
  }

  #value(type: ValueType, rules: FieldRules, row: AnyRow, category: string | undefined): SchemaNode {
    switch (type.kind) {
      case 'scalar':
        return scalar(type.scalar, rules);
      case 'enum':
        return enumeration(this.#schema.enum(type.name), valuesIn(row));
      case 'message':
        return this.#message(type.name, category);
      case 'special':
        if (type.special !== 'any') return SPECIAL[type.special]!;
        return typeof row === 'object' && 'data' in row ? this.#data(row.data) : this.#any(category);
    }
  }

  /** Returns a choice by '@type' among messages that are data. */
  #data(names: readonly string[]): SchemaNode {
    const key = `Any:${names.join(',')}`;
    this.#define(key, () => this.#choiceOf(names, []));
    return { $ref: `#/definitions/${key}` };
  }

  /** Returns a choice by '@type' among the extensions of a category, or all of them. An empty map counts as not set. */
  #any(category: string | undefined): SchemaNode {
    const key = `Any:${category ?? 'all'}`;
    this.#define(key, () => this.#choice(category, []));
    return { $ref: `#/definitions/${key}` };
  }

  /** Returns the same with additional messages. */
  #choice(category: string | undefined, more: readonly Choice[]): SchemaNode {
    const categories = category === undefined ? undefined : alternativeCategories(category);
    const fitting = this.#extensions.filter((each) => categories?.includes(each.category) !== false);
    // Some extensions have several categories and the same message.
    return this.#choiceOf([...new Set(fitting.flatMap((extension) => extension.typeUrls.map(messageNameOf)))], more);
  }

  #choiceOf(names: readonly string[], more: readonly Choice[]): SchemaNode {
    const choices = [...names.map((name) => ({ name, node: this.#extension(name) })), ...more, ...TYPED_STRUCTS];
    return {
      type: ['object', 'null'],
      anyOf: [{ required: ['@type'] }, { maxProperties: 0 }],
      properties: { '@type': { anyOf: [{ enum: names.map(typeUrlOf) }, ...choices.map(({ name }) => urlOf(name))] } },
      // Conditions instead of alternatives, so that errors refer to the selected message.
      allOf: choices.map(({ name, node }) => ({
        if: { properties: { '@type': urlOf(name) }, required: ['@type'] },
        // biome-ignore lint/suspicious/noThenProperty: that is the keyword
        then: node,
      })),
    };
  }

  /**
   * Returns the schema of a route's filter configuration, direct or in the wrapper. An optional one may be that of an unknown
   * extension.
   */
  #routeConfig(category: string | undefined): SchemaNode {
    const key = 'Any of routes';
    this.#define(key, () => {
      const object = this.#object(this.#schema.message(FILTER_CONFIG)!, undefined);
      const properties = { ...(object['properties'] as object), '@type': { type: 'string' }, config: ANY_MAP };
      const checked = { properties: { config: this.#any(category) } };
      const anyOf = [{ required: ['is_optional'] }, { required: ['isOptional'] }, checked];
      return this.#choice(category, [{ name: FILTER_CONFIG, node: { ...object, properties, anyOf } }]);
    });
    return { $ref: `#/definitions/${key}` };
  }

  /** Returns the definition of a message that also has an '@type'. */
  #extension(name: string): SchemaNode {
    const key = `Any of ${name}`;
    this.#define(key, () => {
      const object = this.#object(this.#schema.message(name)!, undefined);
      const properties = { '@type': { type: 'string' }, ...(object['properties'] as object) };
      return { ...object, properties };
    });
    return { $ref: `#/definitions/${key}` };
  }
}

/** A message that an Any can contain, and its definition. */
interface Choice {
  readonly name: string;
  readonly node: SchemaNode;
}

const LB_POLICY = 'envoy.config.cluster.v3.LoadBalancingPolicy.Policy';

const ANY_MAP: SchemaNode = { type: ['object', 'null'] };

/** The part of a type URL before the last slash is not compared. */
function urlOf(name: string): SchemaNode {
  return { type: 'string', pattern: `^(.*/)?${name.replaceAll('.', '\\.')}$` };
}

const TYPED_STRUCT: SchemaNode = {
  title: 'TypedStruct',
  description: 'The fields of the message that type_url names, as a map.',
  type: 'object',
  properties: {
    '@type': { type: 'string' },
    type_url: { type: 'string' },
    typeUrl: { type: 'string' },
    value: { type: ['object', 'null'] },
  },
  additionalProperties: false,
};

const TYPED_STRUCTS = ['xds.type.v3.TypedStruct', 'udpa.type.v1.TypedStruct'].map((name) => ({
  name,
  node: TYPED_STRUCT,
}));

const SPECIAL: { readonly [kind: string]: SchemaNode } = {
  duration: {
    type: 'string',
    pattern: '^(-0+(\\.0*)?|\\d{1,12}(\\.\\d{0,9})?)s$',
    description: "A duration in seconds, such as '0.25s'.",
  },
  timestamp: { type: 'string', description: "A time such as '2024-01-31T12:00:00Z'." },
  struct: { type: 'object' },
  list: { type: 'array' },
  value: {},
  fieldMask: { type: 'string' },
};

function scalar(kind: ScalarKind, rules: FieldRules): SchemaNode {
  switch (kind) {
    case 'string':
      // YAML's 1.0 is a string there, and cannot be distinguished from 1 here.
      return { type: ['string', 'number'], ...textRules(rules['string'] ?? {}) };
    case 'bytes':
      return { type: 'string', pattern: '^[A-Za-z0-9+/_-]*={0,2}$' };
    case 'bool':
      return { anyOf: [{ type: 'boolean' }, { type: 'string', pattern: `^(${BOOLEANS.map(anyCase).join('|')})$` }] };
    case 'double':
    case 'float':
      return {
        anyOf: [
          { type: 'number', ...numberRules(rules[kind] ?? {}) },
          { type: 'string', pattern: FLOAT },
        ],
      };
    default: {
      const number = { type: 'integer', ...RANGES[kind], ...numberRules(rules[kind] ?? {}) };
      return { anyOf: [number, { type: 'string', pattern: WHOLE }] };
    }
  }
}

const BOOLEANS = ['y', 'yes', 'true', 'on', 'n', 'no', 'false', 'off'];
const WHOLE = '^[+-]?\\d+(\\.0*)?([eE][+-]?\\d+)?$';
const FLOAT = '^\\s*([+-]?(\\d+\\.?\\d*|\\.\\d+)([eE][+-]?\\d+)?|0[xX][0-9a-fA-F]+|NaN|-?Infinity)\\s*$';

const RANGES: { readonly [kind: string]: SchemaNode } = {
  int32: { minimum: -(2 ** 31), maximum: 2 ** 31 - 1 },
  uint32: { minimum: 0, maximum: 2 ** 32 - 1 },
  uint64: { minimum: 0 },
};

function textRules(rules: { readonly [rule: string]: unknown }): SchemaNode {
  if (rules['ignore_empty'] === true) return {};
  return bounds(rules, 'len', 'Length');
}

function numberRules(rules: { readonly [rule: string]: unknown }): SchemaNode {
  if (rules['ignore_empty'] === true) return {};
  return {
    ...('gte' in rules && { minimum: Number(rules['gte']) }),
    ...('gt' in rules && { exclusiveMinimum: Number(rules['gt']) }),
    ...('lte' in rules && { maximum: Number(rules['lte']) }),
    ...('lt' in rules && { exclusiveMaximum: Number(rules['lt']) }),
  };
}

/** Converts rules such as `min_items` to `minItems` and `max_len` to `maxLength`. */
function bounds(rules: { readonly [rule: string]: unknown } | undefined, from: string, to: string): SchemaNode {
  if (rules === undefined || rules['ignore_empty'] === true) return {};
  const [min, max] = [rules[`min_${from}`], rules[`max_${from}`]];
  return {
    ...(min !== undefined && { [`min${to}`]: Number(min) }),
    ...(max !== undefined && { [`max${to}`]: Number(max) }),
  };
}

/** Returns the enum values that a row allows; undefined: all. */
function valuesIn(row: AnyRow): readonly string[] | undefined {
  return typeof row === 'object' && 'byValue' in row ? obeyedValues(row) : undefined;
}

/** Accepts a name in any case, so that editors suggest the original one, or a number. */
function enumeration(type: EnumType, implemented: readonly string[] | undefined): SchemaNode {
  const names = implemented ?? [...type.values.keys()];
  const numbers = [...new Set(names.map((name) => type.values.get(name)!))];
  return {
    anyOf: [
      { enum: names },
      { type: 'string', pattern: `^(${names.map(anyCase).join('|')})$` },
      { type: 'integer', enum: numbers },
    ],
  };
}

function anyCase(name: string): string {
  return name.replace(/[a-z]/gi, (letter) => `[${letter.toUpperCase()}${letter.toLowerCase()}]`);
}

/** Also accepts null: a key without a value counts as not set. */
function orNull(node: SchemaNode): SchemaNode {
  // Definitions accept null themselves.
  if ('$ref' in node) return node;
  if (node['type'] !== undefined) return { ...node, type: [node['type'], 'null'].flat() };
  if (Array.isArray(node['anyOf'])) return { ...node, anyOf: [...(node['anyOf'] as SchemaNode[]), { type: 'null' }] };
  return Object.keys(node).length === 0 ? node : { anyOf: [node, { type: 'null' }] };
}

function describe(node: SchemaNode, note: string): SchemaNode {
  if (note === '') return node;
  // Keywords beside a $ref are ignored.
  return '$ref' in node ? { allOf: [node], description: note } : { ...node, description: note };
}

function noteOf(field: FieldType, row: AnyRow): string {
  const notes: string[] = [];
  if (typeof row === 'object' && 'accepted' in row) notes.push(`Has no effect: ${row.accepted}.`);
  if (field.isDeprecated) notes.push('Deprecated.');
  return notes.join(' ');
}

if (import.meta.url === pathToFileURL(argv[1] ?? '').href) {
  writeFileSync(jsonSchemaPath(), `${JSON.stringify(jsonSchema(), undefined, 1)}\n`);
}
