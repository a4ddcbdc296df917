// Converts messages from protobuf's binary form to proto JSON. Adds what protobufjs drops: unknown fields, and the type URL of
// an Any whose message is unknown.

import type { Message, ReflectionObject, Root, Type } from 'protobufjs';
import type protobufjs from 'protobufjs/light.js';
import { messageOf } from '../../common/errors/errors.js';
import { messageNameOf } from '../schema/message-name.js';
import type { Path, PathPart } from '../text/path.js';
import { MAX_DEPTH, type UnknownField } from '../text/source.js';

/** The parts of protobufjs that the reader uses. */
export interface ProtoLibrary {
  readonly Reader: typeof protobufjs.Reader;
  /** From protobufjs/ext/protojson.js. */
  readonly toJson: (type: Type, message: Message) => unknown;
}

export interface BinaryMessage {
  readonly value: unknown;
  readonly unknownFields: readonly UnknownField[];
}

/** Thrown for a message that cannot be read; `path` locates it. */
export class ProtoMistake extends Error {
  readonly path: Path;

  constructor(path: Path, cause: unknown) {
    super(messageOf(cause), { cause });
    this.path = path;
  }
}

/** Reads a message. Throws ProtoMistake for invalid bytes, and for values that JSON cannot represent. */
export function readBinary(library: ProtoLibrary, root: Root, name: string, bytes: Uint8Array): BinaryMessage {
  const reader = new BinaryReader(library, root);
  const value = reader.read(root.lookupType(name), bytes);
  return { value, unknownFields: reader.unknownFields };
}

/** Returns the proto JSON of the message at `path`. Throws ProtoMistake. */
export function jsonOf(
  { toJson }: Pick<ProtoLibrary, 'toJson'>,
  type: Type,
  message: Message,
  path: Path = [],
): unknown {
  try {
    return toJson(type, message);
  } catch (error) {
    throw new ProtoMistake([...path, ...pathWithin(toJson, type, message)], error);
  }
}

/**
 * Returns the path to the value that has no JSON form. The library does not report it, so nested messages are converted one by
 * one.
 */
function pathWithin(toJson: ProtoLibrary['toJson'], type: Type, message: Message): PathPart[] {
  for (const field of type.fieldsArray) {
    const inner = field.resolve().resolvedType;
    const held: unknown = (message as unknown as Record<string, unknown>)[field.name];
    if (!isType(inner) || typeof held !== 'object' || held === null) continue;
    const isSingle = !field.repeated && !field.map;
    for (const [key, element] of isSingle ? [['', held] as const] : Object.entries(held)) {
      try {
        toJson(inner, element as Message);
      } catch {
        const part = field.repeated ? [Number(key)] : field.map ? [key] : [];
        return [field.name, ...part, ...pathWithin(toJson, inner, element as Message)];
      }
    }
  }
  return [];
}

/** An Any, and the place of its content in the JSON of its holder. */
interface HeldAny {
  readonly place: readonly PathPart[];
  readonly json: unknown;
}

class BinaryReader {
  readonly unknownFields: UnknownField[] = [];
  readonly #library: ProtoLibrary;
  readonly #root: Root;
  /** Uses the field names of the API, as problems do. */
  readonly #path: PathPart[] = [];

  constructor(library: ProtoLibrary, root: Root) {
    this.#library = library;
    this.#root = root;
  }

  read(type: Type, bytes: Uint8Array): unknown {
    const reader = this.#library.Reader.create(bytes);
    reader.discardUnknown = false;
    let message: Message;
    try {
      message = type.decode(reader) as Message;
    } catch (error) {
      throw new ProtoMistake([...this.#path], error);
    }
    const held: HeldAny[] = [];
    this.#message(type, message, [], held);
    const json = jsonOf(this.#library, type, message, this.#path);
    for (const any of held) put(json, any);
    return json;
  }

  /** Records unknown fields and extracts all Anys. `place`: the path of the message in the JSON. */
  #message(type: Type, message: Message, place: readonly PathPart[], held: HeldAny[]): void {
    if (this.#path.length > MAX_DEPTH) throw new ProtoMistake([], 'max depth exceeded');
    for (const raw of message.$unknowns ?? []) this.#addUnknown(type, raw);
    for (const field of type.fieldsArray) {
      const inner = field.resolve().resolvedType;
      const value: unknown = (message as unknown as Record<string, unknown>)[field.name];
      if (!isType(inner) || typeof value !== 'object' || value === null) continue;
      this.#path.push(field.name);
      const here = [...place, field.jsonName ?? field.name];
      if (!field.repeated && !field.map) this.#value(inner, value as Message, here, held);
      else {
        for (const [key, element] of Object.entries(value)) {
          const part = field.repeated ? Number(key) : key;
          this.#path.push(part);
          this.#value(inner, element as Message, [...here, part], held);
          this.#path.pop();
        }
      }
      this.#path.pop();
    }
  }

  #value(type: Type, message: Message, place: readonly PathPart[], held: HeldAny[]): void {
    if (type.fullName !== '.google.protobuf.Any') this.#message(type, message, place, held);
    else held.push({ place, json: this.#any(message as unknown as Any) });
  }

  /** Returns the JSON of an Any, and empties the Any itself. */
  #any(any: Any): unknown {
    const { type_url: url = '', value = new Uint8Array() } = any;
    any.type_url = '';
    if (url === '') return {};
    const name = messageNameOf(url);
    const type = this.#root.lookup(name);
    if (!isType(type)) return { '@type': url };
    const json = this.read(type, value);
    return name.startsWith('google.protobuf.') ? { '@type': url, value: json } : { '@type': url, ...(json as object) };
  }

  #addUnknown(type: Type, raw: Uint8Array): void {
    const number = this.#library.Reader.create(raw).uint32() >>> 3;
    this.unknownFields.push({ path: [...this.#path], message: type.fullName.slice(1), field: String(number) });
  }
}

/** The members of a google.protobuf.Any that the reader uses. */
interface Any {
  type_url?: string;
  readonly value?: Uint8Array;
}

function isType(found: ReflectionObject | null): found is Type {
  return found !== null && 'fieldsArray' in found;
}

function put(json: unknown, { place, json: held }: HeldAny): void {
  let holder = json as Record<PathPart, unknown>;
  for (const part of place.slice(0, -1)) holder = holder[part] as Record<PathPart, unknown>;
  holder[place.at(-1)!] = held;
}
