// Converts plain values into messages in canonical form. Checks types, enums and oneofs, and finds unknown fields.
//
// The canonical form has proto field names, unwrapped wrappers, durations and 64-bit integers as strings, Anys unpacked in
// place, and no fields with default values (unless their presence has a meaning).

import { isRecord, setKey } from '../../common/records.js';
import { didYouMean, nearest, suggestion } from '../../common/text/suggest.js';
import { oldFieldHint, oldValueHint } from '../text/hints.js';
import type { Path, PathPart } from '../text/path.js';
import type { LazyMessage, Problems } from '../text/problems.js';
import { withoutValue } from '../text/secrets.js';
import { MAX_DEPTH, type UnknownField } from '../text/source.js';
import { isTypedStruct, typeUrlMember } from '../text/typed-struct.js';
import { booleanOfWord, textOfNumber } from '../text/yaml/yaml-number.js';
import { CREDENTIALS, isForProvider } from './certificates.js';
import { ANY, FILTER_CONFIG, messageNameOf } from './message-name.js';
import {
  choices,
  defaultOf,
  describe,
  readDuration,
  readEnum,
  readScalar,
  readTimestamp,
  type ScalarResult,
} from './scalar.js';
import type { FieldType, MessageType, Schema, SpecialKind, ValueType } from './schema.js';

/** A message in canonical form. */
export type Message = { [field: string]: unknown };

/** How fields that the API does not have are treated. */
export type UnknownFields = 'refuse' | 'warn' | 'ignore';

/** An invalid scalar that is not secret. */
export interface RejectedValue {
  readonly path: Path;
  readonly value: string | number | boolean;
}

export class Decoder {
  readonly #schema: Schema;
  readonly #problems: Problems;
  readonly #unknownFields: UnknownFields;
  readonly #isDelivered: boolean;
  readonly #path: PathPart[] = [];
  /** Unknown fields that have caused a warning. */
  readonly #warned = new Set<string>();
  #valuesLeft: number;
  /** Number of unknown fields that have been accepted. */
  unknownCount = 0;
  /** The invalid values that were dropped, for handlers that show the original message. */
  readonly rejected: RejectedValue[] = [];
  #onto: Message | undefined;
  /** Whether the current value must not be shown. */
  #isSecret = false;

  /** @param maxValues maximum number of values, which bounds the expansion of aliases */
  /** `isDelivered`: the message is a secret from a source, whose files are checked by the provider, which watches them. */
  constructor(
    schema: Schema,
    problems: Problems,
    unknownFields: UnknownFields,
    maxValues: number,
    isDelivered = false,
  ) {
    this.#schema = schema;
    this.#problems = problems;
    this.#unknownFields = unknownFields;
    this.#valuesLeft = maxValues;
    this.#isDelivered = isDelivered;
  }

  /**
   * Decodes `raw` as that message. Invalid parts are reported and dropped.
   * @param onto the message that the result will be merged onto; it determines the positions of list elements
   */
  decode(name: string, raw: unknown, onto?: Message): Message {
    const type = this.#schema.message(name);
    if (!type) throw new Error(`no message ${name} in the schema`);
    this.#onto = onto;
    return this.#message(type, raw) ?? {};
  }

  /** Handles unknown fields that the source has found like those found during decoding. */
  noteUnknown(fields: readonly UnknownField[]): void {
    for (const { path, message, field } of fields) this.#noteUnknown(path, message, field, '');
  }

  #message(type: MessageType, raw: unknown): Message | undefined {
    if (!isRecord(raw)) {
      const list = Array.isArray(raw) && raw.length === 1 ? "; remove the '-'" : '';
      return this.#refuse(
        `expected the fields of ${type.name}, found ${describe(raw)}${list}${oldValueHint(type.name, raw)}`,
      );
    }
    const message: Message = {};
    this.#fields(type, raw, message);
    return message;
  }

  #fields(type: MessageType, raw: Record<string, unknown>, message: Message): void {
    const spelled = new Map<string, string>();
    for (const key of Object.keys(raw)) {
      if (key === '@type' && '@type' in message) continue;
      const field = type.fields.get(key) ?? type.byJsonName.get(key);
      if (!field) {
        this.#unknown(type, key, raw);
        continue;
      }
      const held = raw[key];
      if (held === null && !isNullable(field)) continue;
      this.#path.push(field.name);
      const other = this.#conflict(type, field, key, spelled);
      spelled.set(field.name, key);
      const isOuterSecret = this.#isSecret;
      this.#isSecret ||= field.isSensitive;
      const value = other === undefined ? this.#field(field, held, raw, key) : this.#refuse(other, 'key');
      this.#isSecret = isOuterSecret;
      if (value !== undefined) message[field.name] = value;
      this.#path.pop();
    }
    if (!Object.hasOwn(CREDENTIALS, type.name) || (this.#isDelivered && isForProvider(message))) return;
    CREDENTIALS[type.name]!(message as never, this.#path, this.#problems);
  }

  /** Returns why a field conflicts with those already read. */
  #conflict(
    type: MessageType,
    field: FieldType,
    key: string,
    spelled: ReadonlyMap<string, string>,
  ): string | undefined {
    const earlier = spelled.get(field.name);
    if (earlier !== undefined) return `'${key}' is set twice, the first time as '${earlier}'`;
    if (field.oneof === undefined) return undefined;
    const members = type.oneofs.find((oneof) => oneof.name === field.oneof)!.fields;
    const other = members.find((member) => spelled.has(member));
    if (other === undefined) return undefined;
    return `only one of ${members.join(', ')} can be set, and '${other}' is set as well`;
  }

  #unknown(type: MessageType, key: string, raw: Record<string, unknown>): void {
    if (!this.#needsHint) {
      this.#path.push(key);
      this.#noteUnknown(this.#path, type.name, key, '');
      this.#path.pop();
      return;
    }
    const old = oldFieldHint(type.name, key);
    const near = old === undefined ? nearest(key, type.fields.keys()) : /; use (\w+)/.exec(old)?.[1];
    const holder = old === undefined && near === undefined ? this.#holderOf(type, key, raw) : undefined;
    const hint = old === undefined ? (near === undefined ? '' : suggestion(near)) : `: ${old}`;
    const suggested = near ?? holder;
    this.#path.push(key);
    this.#noteUnknown(this.#path, type.name, key, holder === undefined ? hint : `; it belongs in '${holder}'`);
    this.#path.pop();
    // The hint about the name explains a missing typed_config better.
    if (suggested === undefined || suggested === 'typed_config' || this.#unknownFields !== 'refuse') return;
    if ((raw[suggested] ?? null) === null) this.#problems.markMisnamed([...this.#path, suggested]);
  }

  /** Whether the hint for an unknown field is shown, or suppresses other errors. */
  get #needsHint(): boolean {
    if (this.#unknownFields === 'refuse') return this.#problems.notesPaths;
    return this.#unknownFields === 'warn' && this.#problems.keepsWarnings;
  }

  /** Returns the sibling that a field belongs in if it is indented too little: one that is set, or the only possible one. */
  #holderOf(type: MessageType, key: string, raw: Record<string, unknown>): string | undefined {
    const holders = [...type.fields.values()].filter(
      ({ shape, value }) =>
        shape !== 'map' && value.kind === 'message' && this.#schema.message(value.name)?.fields.has(key),
    );
    const present = holders.filter(({ name, jsonName }) => (raw[name] ?? raw[jsonName] ?? null) !== null);
    const suggested = present.length > 0 ? present : holders.filter(({ shape }) => shape === 'single');
    return suggested.length === 1 ? suggested[0]!.name : undefined;
  }

  #noteUnknown(path: Path, type: string, field: string, hint: string): void {
    const message = () => `unknown field '${field.slice(0, 100)}' of ${type}${hint}`;
    if (this.#unknownFields === 'refuse') this.#problems.error(path, message, 'key');
    else this.unknownCount++;
    if (this.#unknownFields === 'warn' && this.#problems.keepsWarnings && !this.#warned.has(message())) {
      this.#warned.add(message());
      this.#problems.warn(path, message());
    }
  }

  /** `holder` and `key`: the place of the value in the text. */
  #field(field: FieldType, raw: unknown, holder: object, key: string): unknown {
    if (field.shape === 'list') return this.#list(field, raw, holder, key);
    if (field.shape === 'map') return this.#map(field, raw);
    const value = this.#value(field.value, raw, holder, key);
    return !field.hasPresence && value === this.#default(field.value) ? undefined : value;
  }

  #default(type: ValueType): unknown {
    if (type.kind === 'scalar') return defaultOf(type.scalar);
    return type.kind === 'enum' ? this.#schema.enum(type.name).names.get(0) : undefined;
  }

  /** A single value counts as a list of one element, as in protobuf's own parser. */
  #list(field: FieldType, raw: unknown, holder: object, key: string): unknown[] | undefined {
    const list: unknown[] = [];
    const isList = Array.isArray(raw);
    const earlier = this.#earlierElements();
    (isList ? raw : [raw]).forEach((element, index) => {
      this.#path.push(earlier + index);
      const value = this.#value(field.value, element, isList ? raw : holder, isList ? index : key);
      // Invalid elements keep their position, so that later errors have correct paths.
      list.push(value === undefined ? null : value);
      this.#path.pop();
    });
    return list.length === 0 ? undefined : list;
  }

  /** Returns how many elements the list already has. */
  #earlierElements(): number {
    let held: unknown = this.#onto;
    for (const part of this.#path) held = (held as Message | undefined)?.[part];
    return Array.isArray(held) ? held.length : 0;
  }

  #map(field: FieldType, raw: unknown): Message | undefined {
    if (!isRecord(raw)) return this.#refuse(`expected a map, found ${describe(raw)}`);
    const map: Message = {};
    let isEmpty = true;
    for (const [key, element] of Object.entries(raw)) {
      this.#path.push(key);
      const name = field.mapKey === 'string' ? { value: key } : readScalar(field.mapKey!, key);
      if (name.problem !== undefined) this.#refuse(name.problem, 'key');
      const value = this.#value(field.value, element, raw, key);
      if (value !== undefined) setKey(map, key, value);
      isEmpty = false;
      this.#path.pop();
    }
    return isEmpty ? undefined : map;
  }

  #value(type: ValueType, raw: unknown, holder: object, key: PathPart): unknown {
    if (--this.#valuesLeft <= 0) return this.#tooMany();
    if (this.#path.length > MAX_DEPTH) return this.#refuse(`nested deeper than ${MAX_DEPTH} levels`);
    switch (type.kind) {
      case 'scalar':
        if (type.isWrapper === true && isMessageForm(raw)) return this.#wrapped(type, raw);
        return this.#take(readScalar(type.scalar, type.scalar === 'string' ? asText(raw, holder, key) : raw), raw);
      case 'enum':
        return this.#enum(type.name, raw);
      case 'message':
        return this.#message(this.#schema.message(type.name)!, raw);
      case 'special':
        return this.#special(type.special, raw, holder, key);
    }
  }

  /** Decodes a wrapper that is written as a message: `{ value: 5 }`. */
  #wrapped(type: Extract<ValueType, { kind: 'scalar' }>, raw: { readonly value?: unknown }): unknown {
    if (raw.value === undefined || raw.value === null) return defaultOf(type.scalar);
    this.#path.push('value');
    const value = this.#value({ kind: 'scalar', scalar: type.scalar }, raw.value, raw, 'value');
    this.#path.pop();
    return value;
  }

  #enum(name: string, raw: unknown): unknown {
    const type = this.#schema.enum(name);
    const result = readEnum(type, raw);
    if (result.problem !== '') return this.#take(result, raw);
    this.#reject(raw);
    return this.#refuse(() => {
      const near = didYouMean(String(raw), type.values.keys());
      return `unknown value ${describe(raw)}${near === '' ? `; it is one of ${choices(type)}` : near}`;
    });
  }

  #special(kind: SpecialKind, raw: unknown, holder: object, key: PathPart): unknown {
    switch (kind) {
      case 'any':
        return this.#any(raw);
      case 'duration':
        return this.#take(readDuration(raw), raw);
      case 'timestamp':
        return this.#take(readTimestamp(raw), raw);
      case 'fieldMask':
        return this.#take(readScalar('string', raw), raw);
      case 'struct':
        return isRecord(raw) ? this.#json(raw, holder, key) : this.#refuse(`expected a map, found ${describe(raw)}`);
      case 'list':
        return Array.isArray(raw)
          ? this.#json(raw, holder, key)
          : this.#refuse(`expected a list, found ${describe(raw)}`);
      case 'value':
        return this.#json(raw, holder, key);
    }
  }

  #any(raw: unknown): Message | undefined {
    if (!isRecord(raw)) return this.#refuse(`expected fields with an '@type', found ${describe(raw)}`);
    const url = raw['@type'];
    if (url === undefined && Object.keys(raw).length === 0) return undefined;
    if (typeof url !== 'string' || url === '') {
      return this.#refuse(`'@type' is missing: a type URL such as type.googleapis.com/package.Message`);
    }
    return this.#content(url, raw);
  }

  /** Decodes the message of that type with these fields. */
  #content(url: string, held: Record<string, unknown>): Message | undefined {
    if (isTypedStruct(url)) return this.#typedStruct(url, held);
    const name = messageNameOf(url);
    if (name === ANY) return this.#packedAny(url, held);
    const type = name.startsWith('google.protobuf.') ? undefined : this.#schema.message(name);
    if (!type) {
      // Undefined if it exceeds the limit of values.
      const copy = this.#json(held, held, '') as Message | undefined;
      return copy && Object.assign(copy, { '@type': url });
    }
    const message: Message = { '@type': url };
    this.#fields(type, held, message);
    // An empty `config` differs from an absent one: it enables the filter.
    if (name === FILTER_CONFIG && isEmptyMap(held['config'])) message['config'] = {};
    return message;
  }

  /** Decodes an Any within an Any, whose content may be secret like any other. */
  #packedAny(url: string, held: Record<string, unknown>): Message {
    for (const key of Object.keys(held)) {
      if (key !== '@type' && key !== 'value') this.#noteUnknown([...this.#path, key], ANY, key, '');
    }
    const message: Message = { '@type': url };
    this.#path.push('value');
    const value = this.#value({ kind: 'special', special: 'any' }, held['value'] ?? {}, held, 'value');
    this.#path.pop();
    if (value !== undefined) message['value'] = value;
    return message;
  }

  /** Decodes a TypedStruct as the message that it stands for. */
  #typedStruct(own: string, held: Record<string, unknown>): Message | undefined {
    const member = typeUrlMember(held);
    const url = held[member];
    const value = held['value'] ?? {};
    for (const key of Object.keys(held)) {
      if (key !== '@type' && key !== member && key !== 'value')
        this.#noteUnknown([...this.#path, key], messageNameOf(own), key, didYouMean(key, [member, 'value']));
    }
    if (typeof url !== 'string') return this.#refuse("'type_url' is missing in a TypedStruct");
    if (!isRecord(value)) return this.#refuse("'value' of a TypedStruct must be a map");
    return this.#content(url.includes('/') ? url : `type.googleapis.com/${url}`, value);
  }

  /**
   * Copies a JSON value. Where no message defines the type, integers of 32 bits become numbers and other numbers keep their
   * text, as in Envoy: a version `1.10` or an ID of 19 digits would change otherwise. Unquoted words such as `yes` are booleans.
   */
  #json(raw: unknown, holder: object, key: PathPart): unknown {
    if (--this.#valuesLeft <= 0) return this.#tooMany();
    if (this.#path.length > MAX_DEPTH) return this.#refuse(`nested deeper than ${MAX_DEPTH} levels`);
    if (typeof raw === 'bigint' || typeof raw === 'number') return textOfNumber(holder, key) ?? Number(raw);
    if (typeof raw === 'string') return booleanOfWord(holder, key) ?? raw;
    if (typeof raw !== 'object' || raw === null) return raw;
    const copy: unknown[] | Message = Array.isArray(raw) ? [] : {};
    for (const [name, held] of Object.entries(raw)) {
      const part = Array.isArray(raw) ? Number(name) : name;
      this.#path.push(part);
      const value = this.#json(held, raw, part);
      if (Array.isArray(copy)) copy.push(value);
      else setKey(copy, name, value);
      this.#path.pop();
    }
    return copy;
  }

  #take(result: ScalarResult, raw: unknown): unknown {
    if (result.problem === undefined) return result.value;
    this.#reject(raw);
    return this.#refuse(result.problem);
  }

  #reject(raw: unknown): void {
    if (this.#isSecret || typeof raw === 'object' || raw === undefined) return;
    const value = typeof raw === 'string' || typeof raw === 'number' || typeof raw === 'boolean' ? raw : String(raw);
    this.rejected.push({ path: [...this.#path], value });
  }

  #tooMany(): undefined {
    if (this.#valuesLeft === 0) this.#refuse('aliases expand to too many values');
    return undefined;
  }

  #refuse(message: LazyMessage, aspect: 'key' | 'value' = 'value'): undefined {
    const text = () => (typeof message === 'string' ? message : message());
    if (this.#isSecret && aspect === 'value') this.#problems.error(this.#path, () => withoutValue(text()), 'secret');
    else this.#problems.error(this.#path, message, aspect);
    return undefined;
  }
}

/** Returns whether a value has the form of a wrapper's message. */
function isMessageForm(raw: unknown): raw is { readonly value?: unknown } {
  return isRecord(raw) && Object.keys(raw).every((key) => key === 'value');
}

function isEmptyMap(raw: unknown): boolean {
  return isRecord(raw) && Object.keys(raw).length === 0;
}

/** Returns the text of a number, if it has one. */
function asText(raw: unknown, holder: object, key: PathPart): unknown {
  return typeof raw === 'number' || typeof raw === 'bigint' ? (textOfNumber(holder, key) ?? raw) : raw;
}

/** In a google.protobuf.Value, null is a value; everywhere else it means "not set". */
function isNullable(field: FieldType): boolean {
  return field.shape === 'single' && field.value.kind === 'special' && field.value.special === 'value';
}
