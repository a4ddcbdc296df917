// Plain values of a text become a message in canonical form: types, enums and oneofs checked, unknown fields found.
//
// The form: proto field names, wrappers unwrapped, durations and 64-bit integers as strings, Any unpacked in place, and
// nothing that has its default (unless its being set means something).

import { isRecord, setKey } from '../../common/records.js';
import { didYouMean, nearest, suggestion } from '../../common/text/suggest.js';
import { oldFieldHint, oldValueHint } from '../text/hints.js';
import type { Path, PathPart } from '../text/path.js';
import type { Problems, Saying } from '../text/problems.js';
import { withoutValue } from '../text/secrets.js';
import { MAX_DEPTH, type UnknownField } from '../text/source.js';
import { isTypedStruct, typeUrlMember } from '../text/typed-struct.js';
import { textOfNumber } from '../text/yaml/yaml-number.js';
import { CREDENTIALS } from './certificates.js';
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

/** What happens to fields that the API does not have. */
export type UnknownFields = 'refuse' | 'warn' | 'ignore';

/** A scalar that is not as it has to be, and no secret. */
export interface RejectedValue {
  readonly path: Path;
  readonly value: string | number | boolean;
}

export class Decoder {
  readonly #schema: Schema;
  readonly #problems: Problems;
  readonly #unknownFields: UnknownFields;
  readonly #path: PathPart[] = [];
  /** Unknown fields that have been warned of. */
  readonly #told = new Set<string>();
  #valuesLeft: number;
  /** Fields that the API does not have, accepted so far. */
  unknownCount = 0;
  /** What was left out: only who shows what has been sent needs it. */
  readonly rejected: RejectedValue[] = [];
  #onto: Message | undefined;
  /** What is read now is not to be shown. */
  #isSecret = false;

  /** @param maxValues how many values may be read: what aliases expand to is bounded by it */
  constructor(schema: Schema, problems: Problems, unknownFields: UnknownFields, maxValues: number) {
    this.#schema = schema;
    this.#problems = problems;
    this.#unknownFields = unknownFields;
    this.#valuesLeft = maxValues;
  }

  /**
   * Reads `raw` as that message; what is wrong is reported and left out.
   * @param onto what it is merged onto afterwards: elements of lists have the positions that they get there
   */
  decode(name: string, raw: unknown, onto?: Message): Message {
    const type = this.#schema.message(name);
    if (!type) throw new Error(`no message ${name} in the schema`);
    this.#onto = onto;
    return this.#message(type, raw) ?? {};
  }

  /** Treats fields that the source has found to be unknown as those that are met while reading. */
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
    if (Object.hasOwn(CREDENTIALS, type.name)) CREDENTIALS[type.name]!(message as never, this.#path, this.#problems);
  }

  /** Why a field may not stand beside those already read. */
  #conflict(
    type: MessageType,
    field: FieldType,
    key: string,
    spelled: ReadonlyMap<string, string>,
  ): string | undefined {
    const twice = spelled.get(field.name);
    if (twice !== undefined) return `'${key}' is set twice, the other time as '${twice}'`;
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
    const meant = near ?? holder;
    this.#path.push(key);
    this.#noteUnknown(this.#path, type.name, key, holder === undefined ? hint : `; it belongs in '${holder}'`);
    this.#path.pop();
    // What an extension lacks beside its name, the name tells better.
    if (meant === undefined || meant === 'typed_config' || this.#unknownFields !== 'refuse') return;
    if ((raw[meant] ?? null) === null) this.#problems.expect([...this.#path, meant]);
  }

  /** Whether what is meant by an unknown field is shown, or keeps other errors from being reported. */
  get #needsHint(): boolean {
    if (this.#unknownFields === 'refuse') return this.#problems.notesPaths;
    return this.#unknownFields === 'warn' && this.#problems.keepsWarnings;
  }

  /** Which field beside it a field belongs in, when it was indented too little: one that is there, or the only one that there can be. */
  #holderOf(type: MessageType, key: string, raw: Record<string, unknown>): string | undefined {
    const holders = [...type.fields.values()].filter(
      ({ shape, value }) =>
        shape !== 'map' && value.kind === 'message' && this.#schema.message(value.name)?.fields.has(key),
    );
    const present = holders.filter(({ name, jsonName }) => (raw[name] ?? raw[jsonName] ?? null) !== null);
    const meant = present.length > 0 ? present : holders.filter(({ shape }) => shape === 'single');
    return meant.length === 1 ? meant[0]!.name : undefined;
  }

  #noteUnknown(path: Path, type: string, field: string, hint: string): void {
    const message = () => `unknown field '${field.slice(0, 100)}' of ${type}${hint}`;
    if (this.#unknownFields === 'refuse') this.#problems.error(path, message, 'key');
    else this.unknownCount++;
    if (this.#unknownFields === 'warn' && this.#problems.keepsWarnings && !this.#told.has(message())) {
      this.#told.add(message());
      this.#problems.warn(path, message());
    }
  }

  /** `holder` and `key`: where in the text's value it stands. */
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

  /** A single value stands for a list of it, as it does for protobuf's own parser. */
  #list(field: FieldType, raw: unknown, holder: object, key: string): unknown[] | undefined {
    const list: unknown[] = [];
    const isList = Array.isArray(raw);
    const earlier = this.#earlierElements();
    (isList ? raw : [raw]).forEach((element, index) => {
      this.#path.push(earlier + index);
      const value = this.#value(field.value, element, isList ? raw : holder, isList ? index : key);
      // What is wrong keeps its position, so that later findings name the right one.
      list.push(value === undefined ? null : value);
      this.#path.pop();
    });
    return list.length === 0 ? undefined : list;
  }

  /** How many elements the list here has already. */
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
        return this.#take(readScalar(type.scalar, type.scalar === 'string' ? asText(raw, holder, key) : raw), raw);
      case 'enum':
        return this.#enum(type.name, raw);
      case 'message':
        return this.#message(this.#schema.message(type.name)!, raw);
      case 'special':
        return this.#special(type.special, raw, holder, key);
    }
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
    return this.#held(url, raw);
  }

  /** The message of that type with these fields. */
  #held(url: string, held: Record<string, unknown>): Message | undefined {
    if (isTypedStruct(url)) return this.#typedStruct(url, held);
    const name = messageNameOf(url);
    if (name === ANY) return this.#packedAny(url, held);
    const type = name.startsWith('google.protobuf.') ? undefined : this.#schema.message(name);
    if (!type) {
      // Undefined where it has more values than may be read.
      const copy = this.#json(held, held, '') as Message | undefined;
      return copy && Object.assign(copy, { '@type': url });
    }
    const message: Message = { '@type': url };
    this.#fields(type, held, message);
    // There an empty one is more than none: it switches the filter on.
    if (name === FILTER_CONFIG && isEmptyMap(held['config'])) message['config'] = {};
    return message;
  }

  /** What stands in it may be a secret like any other. */
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

  /** A Struct that says which message it stands for is read as that message. */
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
    return this.#held(url.includes('/') ? url : `type.googleapis.com/${url}`, value);
  }

  /**
   * A copy as a JSON value. What no message gives a type is a number when it is an integer of 32 bits, and else the text that is written,
   * as Envoy reads YAML: a version `1.10` or an id of 19 digits would come out as another one.
   */
  #json(raw: unknown, holder: object, key: PathPart): unknown {
    if (--this.#valuesLeft <= 0) return this.#tooMany();
    if (this.#path.length > MAX_DEPTH) return this.#refuse(`nested deeper than ${MAX_DEPTH} levels`);
    if (typeof raw === 'bigint' || typeof raw === 'number') return textOfNumber(holder, key) ?? Number(raw);
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

  #refuse(message: Saying, aspect: 'key' | 'value' = 'value'): undefined {
    const said = () => (typeof message === 'string' ? message : message());
    if (this.#isSecret && aspect === 'value') this.#problems.error(this.#path, () => withoutValue(said()), 'secret');
    else this.#problems.error(this.#path, message, aspect);
    return undefined;
  }
}

function isEmptyMap(raw: unknown): boolean {
  return isRecord(raw) && Object.keys(raw).length === 0;
}

/** A number as the text that it stands for, if any. */
function asText(raw: unknown, holder: object, key: PathPart): unknown {
  return typeof raw === 'number' || typeof raw === 'bigint' ? (textOfNumber(holder, key) ?? raw) : raw;
}

/** In a google.protobuf.Value null is a value; everywhere else it means "not set". */
function isNullable(field: FieldType): boolean {
  return field.shape === 'single' && field.value.kind === 'special' && field.value.special === 'value';
}
