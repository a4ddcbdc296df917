// Walks a message in canonical form: implemented fields, constraints of the API, required oneofs, expressions, extensions.

import { BatonError } from '../common/errors.js';
import { compileRegex } from '../common/regex.js';
import { nearest, suggestion } from '../common/suggest.js';
import type { Extension, ExtensionCatalog, Report } from './extension.js';
import type { FeatureUse } from './feature-use.js';
import type { Any } from './generated/api.js';
import { type AnyRow, rowOf } from './implemented/index.js';
import type { ImplementedTable } from './implemented/table.js';
import type { Message } from './schema/decode.js';
import { messageNameOf } from './schema/message-name.js';
import { brokenRule, brokenValueRule, elementRules } from './schema/rules.js';
import type { EnumType, FieldRules, FieldType, MessageType, Schema, ValueType } from './schema/schema.js';
import { newName } from './text/hints.js';
import { type Path, type PathPart, parsePath } from './text/path.js';
import type { Problems } from './text/problems.js';

const TYPE_URL_PREFIX = 'type.googleapis.com/';

export class Checker {
  readonly #schema: Schema;
  readonly #catalog: ExtensionCatalog;
  readonly #table: ImplementedTable;
  readonly #problems: Problems;
  readonly #features: FeatureUse;
  readonly #path: PathPart[] = [];

  constructor(
    schema: Schema,
    catalog: ExtensionCatalog,
    table: ImplementedTable,
    problems: Problems,
    features: FeatureUse,
  ) {
    this.#features = features;
    this.#schema = schema;
    this.#catalog = catalog;
    this.#table = table;
    this.#problems = problems;
  }

  /**
   * Checks `message` as that type. An extension given by its name alone gets the typed_config that the name stands for.
   */
  check(name: string, message: Message): void {
    this.#message(this.#schema.message(name)!, message);
  }

  #message(type: MessageType, message: Message): void {
    if (type.isUnfinished) this.#features.noteUnfinished(this.#path, type.name, type.name);
    for (const field of type.fields.values()) {
      const value = message[field.name];
      if (value === undefined && !field.rules && field.value.kind !== 'enum') continue;
      this.#path.push(field.name);
      if (!this.#problems.has(this.#path)) this.#field(type, field, value, message);
      this.#path.pop();
    }
    for (const oneof of type.oneofs) if (oneof.isRequired) this.#requiredOneof(oneof.fields, message);
    if (type.fields.has('typed_config') && message['typed_config'] === undefined) this.#namedOnly(type, message);
    if (type.name === REGEX_MATCHER) this.#regex(message);
  }

  #requiredOneof(members: readonly string[], message: Message): void {
    const isSet = members.some(
      (member) => message[member] !== undefined || this.#problems.has([...this.#path, member]),
    );
    if (!isSet) this.#problems.error(this.#path, `one of ${members.join(', ')} must be set`);
  }

  #regex(message: Message): void {
    try {
      compileRegex(String(message['regex'] ?? ''));
    } catch (error) {
      if (!(error instanceof BatonError)) throw error;
      this.#problems.error([...this.#path, 'regex'], error.message);
    }
  }

  #field(type: MessageType, field: FieldType, value: unknown, owner: Message): void {
    // What is not implemented is refused for that, unless the API refuses it first.
    if (value !== undefined && !field.isDisallowed && !this.#isImplemented(type, field, value)) return;
    if (value !== undefined && !this.#mayUse(type, field)) return;
    if (value !== undefined && field.isDisallowed && !this.#isImplemented(type, field, value)) return;
    const enumType = field.value.kind === 'enum' ? this.#schema.enum(field.value.name) : undefined;
    if (value === undefined && enumType && !this.#mayLeaveOut(field, enumType)) return;
    const rule = brokenRule(field, value, enumType);
    if (rule !== undefined) {
      this.#problems.error(this.#path, rule);
      return;
    }
    if (value === undefined) return;
    if (field.shape === 'single') this.#value(field, value, undefined, enumType, owner);
    else this.#elements(field, value as unknown[] | Message, enumType, owner);
  }

  #elements(field: FieldType, values: unknown[] | Message, enumType: EnumType | undefined, owner: Message): void {
    const isList = field.shape === 'list';
    const rules = elementRules(field, isList ? 'items' : 'values');
    const keyRules = elementRules(field, 'keys');
    for (const [key, value] of Object.entries(values)) {
      if (value === null && field.value.kind !== 'special') continue;
      this.#path.push(isList ? Number(key) : key);
      const rule = keyRules && !isList ? brokenValueRule(keyRules, key) : undefined;
      if (rule !== undefined) this.#problems.error(this.#path, rule, 'key');
      if (!this.#problems.has(this.#path)) this.#value(field, value, rules, enumType, isList ? owner : { name: key });
      this.#path.pop();
    }
  }

  #value(
    field: FieldType,
    value: unknown,
    rules: FieldRules | undefined,
    enumType: EnumType | undefined,
    owner: Message,
  ): void {
    const rule = rules && brokenValueRule(rules, value, enumType);
    if (rule !== undefined) this.#problems.error(this.#path, rule);
    if (enumType?.deprecated.has(value as string)) this.#mayUseValue(enumType, value as string, `'${value}'`);
    const type: ValueType = field.value;
    if (type.kind === 'message') {
      const messageType = this.#schema.message(type.name)!;
      this.#categories.push(field.category ?? this.#categories.at(-1));
      this.#message(messageType, value as Message);
      this.#categories.pop();
    } else if (type.kind === 'special' && type.special === 'any') {
      this.#extension(value as Message, owner, field.category ?? this.#categories.at(-1));
    }
  }

  #mayUse(type: MessageType, field: FieldType): boolean {
    if (!field.isDeprecated && !field.isUnfinished) return true;
    const title = `field '${field.name}' of ${type.name}`;
    const name = `${type.name}.${field.name}`;
    if (field.isUnfinished) this.#features.noteUnfinished(this.#path, name, title);
    if (!field.isDeprecated) return true;
    return this.#features.allows({
      path: this.#path,
      aspect: 'key',
      name,
      title,
      isDisallowed: field.isDisallowed,
    });
  }

  /** Leaving a field out means its default, and the API may have deprecated that one. */
  #mayLeaveOut(field: FieldType, enumType: EnumType): boolean {
    const value = enumType.names.get(0);
    if (field.shape !== 'single' || field.hasPresence || !enumType.deprecated.has(value!)) return true;
    return this.#mayUseValue(enumType, value!, `'${value}', which holds where ${field.name} is not set,`);
  }

  #mayUseValue(enumType: EnumType, value: string, title: string): boolean {
    return this.#features.allows({
      path: this.#path,
      aspect: 'value',
      name: enumType.name.replace(/[^.]*$/, value),
      title,
      isDisallowed: enumType.disallowed.has(value),
    });
  }

  /** Categories that the fields on the way down name: a TypedExtensionConfig gets its holder's. */
  readonly #categories: (string | undefined)[] = [];

  #isImplemented(type: MessageType, field: FieldType, value: unknown): boolean {
    const row = rowOf(this.#table, type.name, field.name);
    const refusal = refusalOf(row, value);
    if (refusal === undefined) return true;
    if (refusal.what === 'field') {
      const text = `field '${field.name}' of ${type.name} is not implemented in Baton`;
      this.#problems.error(this.#path, refusal.reason === '' ? text : `${text}: ${refusal.reason}`, 'key');
    } else {
      this.#problems.error(this.#path, `${refusal.reason} of ${type.name}.${field.name} is not implemented in Baton`);
    }
    return false;
  }

  /** A known name without a typed_config stands for the extension's defaults, as in older files. */
  #namedOnly(type: MessageType, message: Message): void {
    const field = type.fields.get('typed_config')!;
    const oneof = type.oneofs.find((candidate) => candidate.name === field.oneof);
    const path = [...this.#path, 'typed_config'];
    if (this.#problems.has(path) || this.#problems.has([...this.#path, 'name'])) return;
    if (oneof?.fields.some((member) => message[member] !== undefined)) return;
    const name = String(message['name'] ?? '');
    const category = field.category ?? this.#categories.at(-1);
    const found = category === undefined ? undefined : this.#catalog.byName(category, name);
    // An old config in its place has been reported, with what to write instead.
    const isReported = this.#problems.has([...this.#path, 'config']);
    if (!found) {
      if (!isReported || newName(name) !== undefined) {
        this.#problems.error(this.#path, `${notRegistered(name, '')}${this.#nameHint(name, category)}`);
      }
      return;
    }
    if (isReported) return;
    message['typed_config'] = { '@type': typeUrlOf(found.typeUrls[0]!) };
    this.#path.push('typed_config');
    this.#extension(message['typed_config'] as Message, message, category);
    this.#path.pop();
  }

  #nameHint(name: string, category: string | undefined): string {
    const successor = newName(name);
    if (successor !== undefined) return `: the name is of an older API; it is '${successor}' now`;
    const known = this.#catalog.list();
    if (this.#isOfApi(name) && !known.some((extension) => extension.name === name)) return NOT_HERE;
    return meantBy(
      name,
      known.flatMap((extension) => (extension.category === category ? extension.name : [])),
    );
  }

  /** Whether the API has a package for an extension of that name: `envoy.extensions.a.b.v3` for `envoy.a.b`. */
  #isOfApi(name: string): boolean {
    const start = `${name.replace(/^envoy\./, 'envoy.extensions.')}.v`;
    return this.#schema.messageNames().some((message) => message.startsWith(start));
  }

  #extension(config: Message, owner: Message, category: string | undefined): void {
    const url = String(config['@type'] ?? '');
    const found = this.#catalog.byTypeUrl(url);
    const refusal = this.#refusalOf(found, url, category);
    if (refusal !== undefined || !found) {
      this.#problems.error([...this.#path, '@type'], `${notRegistered(String(owner['name'] ?? ''), url)}${refusal}`);
      return;
    }
    const type = this.#schema.message(messageNameOf(url));
    this.#categories.push(undefined);
    if (type) this.#message(type, config);
    this.#categories.pop();
    this.#ask(found, config as Any);
  }

  /** Why the extension cannot be used here; undefined when it can. */
  #refusalOf(found: Extension | undefined, url: string, category: string | undefined): string | undefined {
    if (!found) return this.#unknownExtension(url);
    if (this.#catalog.isDisabled(found))
      return `: '${found.category}/${found.name}' is disabled by --disable-extensions`;
    if (category !== undefined && found.category !== category) {
      return `: here one of ${category} is needed, and '${found.name}' is one of ${found.category}`;
    }
    return undefined;
  }

  #unknownExtension(url: string): string {
    const name = messageNameOf(url);
    const successor = this.#schema.successorOf(name);
    if (successor !== undefined) return `: it is of an older API; use '${typeUrlOf(successor)}'`;
    if (this.#schema.message(name)) return NOT_HERE;
    return meantBy(
      url,
      this.#catalog.list().flatMap((extension) => extension.typeUrls.map(typeUrlOf)),
    );
  }

  /** An extension is asked about a message with mistakes too, and what it says of the parts that have them does not count. */
  #ask(extension: Extension, config: Any): void {
    if (extension.validate === undefined) return;
    ask(this.#problems, this.#path, (report) => extension.validate!(config, report));
  }
}

/**
 * Lets a check from another room look at the message at `path`. It relies on messages that obey the schema: of a part that is known not
 * to do so, what it reports or throws may only follow from that.
 */
export function ask(problems: Problems, path: Path, check: (report: Report) => void): void {
  const known = problems.errorCount;
  try {
    check((inner, message) => {
      const place = [...path, ...parsePath(inner)];
      if (!problems.isDamaged(place, known)) problems.error(place, message);
    });
  } catch (error) {
    if (!problems.isDamaged(path, known)) throw error;
  }
}

const NOT_HERE = ': Baton does not implement this extension';

/** Of dotted names the last part tells them apart; what stands before it many have in common. */
function meantBy(name: string, known: readonly string[]): string {
  const byLast = new Map(known.map((candidate) => [lastPart(candidate), candidate]));
  const found = nearest(lastPart(name), byLast.keys());
  return found === undefined ? '' : suggestion(byLast.get(found)!);
}

function lastPart(name: string): string {
  return name.slice(name.lastIndexOf('.') + 1);
}

const REGEX_MATCHER = 'envoy.type.matcher.v3.RegexMatcher';

/** The type URL of a message given by its name or its URL. */
export function typeUrlOf(name: string): string {
  return name.includes('/') ? name : `${TYPE_URL_PREFIX}${name}`;
}

function notRegistered(name: string, url: string): string {
  return `Didn't find a registered implementation for '${name}' with type URL: '${url}'`;
}

interface Refusal {
  readonly what: 'field' | 'value';
  readonly reason: string;
}

function refusalOf(row: AnyRow | undefined, value: unknown): Refusal | undefined {
  if (row === undefined) return { what: 'field', reason: '' };
  if (row === true || 'accepted' in row) return undefined;
  if ('refused' in row) return { what: 'field', reason: row.refused };
  const wrong = (Array.isArray(value) ? value : [value]).find((element) => !row.includes(element));
  return wrong === undefined ? undefined : { what: 'value', reason: `'${wrong}'` };
}
