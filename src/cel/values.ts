// The values of expressions in the Common Expression Language (CEL).
//
// A string has one character per byte of its UTF-8 text, as heads of messages have, so that texts of clients need not be decoded.
// `undefined` stands for an error everywhere: of the kinds of errors CEL makes no difference.

import { byteText } from '../common/text/byte-text.js';
import type { Json, Struct } from '../config/generated/api.js';

export type CelValue =
  | null
  | boolean
  | string
  /** double */
  | number
  /** int */
  | bigint
  | CelUint
  | Uint8Array
  | CelDuration
  | CelTimestamp
  | CelType
  | CelMap
  | CelMessage
  | readonly CelValue[];

export class CelUint {
  readonly value: bigint;

  constructor(value: bigint) {
    this.value = value;
  }
}

export class CelDuration {
  readonly nanos: bigint;

  constructor(nanos: bigint) {
    this.nanos = nanos;
  }

  static ofMs(ms: number): CelDuration {
    return new CelDuration(nanosOf(ms));
  }
}

export class CelTimestamp {
  /** Since 1970 in UTC. */
  readonly nanos: bigint;

  constructor(nanos: bigint) {
    this.nanos = nanos;
  }

  /** With a precision of microseconds: a double has no more digits. */
  static ofMs(ms: number): CelTimestamp {
    return new CelTimestamp(BigInt(Math.round(ms * 1000)) * 1000n);
  }
}

/** Milliseconds may have a fraction. */
function nanosOf(ms: number): bigint {
  return BigInt(Math.round(ms * 1e6));
}

/** The type of a value, which is a value itself. */
export class CelType {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

/** A map whose entries may be computed when they are read. */
export abstract class CelMap {
  abstract readonly size: number;
  /** Returns the value of a key; undefined: there is none. */
  abstract get(key: CelValue): CelValue | undefined;
  abstract has(key: CelValue): boolean;
  /** Undefined: the entries cannot be listed. */
  abstract entries(): Iterable<readonly [CelValue, CelValue]> | undefined;
}

/** A protobuf message. */
export abstract class CelMessage {
  /** Returns the value of a field, its default value if it is not set; undefined: the message has no such field. */
  abstract get(field: string): CelValue | undefined;
  /** Returns whether the field is set; undefined: the message has no such field. */
  abstract has(field: string): boolean | undefined;
  /** The message in the JSON form of protobuf. */
  abstract readonly json: Struct;
  /** The message in the text form of protobuf, in one line. */
  abstract readonly text: string;
}

/** google.protobuf.Struct, and maps of messages. */
export class StructMap extends CelMap {
  readonly struct: Struct;
  readonly #read: (value: Json) => CelValue;

  constructor(struct: Struct, read: (value: Json) => CelValue = valueOfJson) {
    super();
    this.struct = struct;
    this.#read = read;
  }

  get size(): number {
    return Object.keys(this.struct).length;
  }

  get(key: CelValue): CelValue | undefined {
    const name = nameOf(key);
    return name !== undefined && Object.hasOwn(this.struct, name) ? this.#read(this.struct[name]!) : undefined;
  }

  has(key: CelValue): boolean {
    const name = nameOf(key);
    return name !== undefined && Object.hasOwn(this.struct, name);
  }

  entries(): [CelValue, CelValue][] {
    return Object.entries(this.struct).map(([name, value]) => [byteText(name), this.#read(value)]);
  }
}

function nameOf(key: CelValue): string | undefined {
  return typeof key === 'string' ? textOf(key) : undefined;
}

/** Returns the value of a google.protobuf.Value. */
export function valueOfJson(value: Json): CelValue {
  if (typeof value === 'string') return byteText(value);
  if (typeof value !== 'object' || value === null) return value;
  return Array.isArray(value) ? value.map(valueOfJson) : new StructMap(value as Struct);
}

/** Returns the characters of a string; bytes that are no UTF-8 are replaced. */
export function textOf(bytes: string): string {
  for (let i = 0; i < bytes.length; i++) if (bytes.charCodeAt(i) > 127) return Buffer.from(bytes, 'latin1').toString();
  return bytes;
}

/** Returns the string that has these bytes. */
export function stringOfBytes(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
}

export const TYPES = {
  bool: new CelType('bool'),
  bytes: new CelType('bytes'),
  double: new CelType('double'),
  int: new CelType('int'),
  list: new CelType('list'),
  map: new CelType('map'),
  null_type: new CelType('null_type'),
  string: new CelType('string'),
  type: new CelType('type'),
  uint: new CelType('uint'),
  duration: new CelType('google.protobuf.Duration'),
  message: new CelType('message'),
  timestamp: new CelType('google.protobuf.Timestamp'),
} as const;

export function typeOf(value: CelValue): CelType {
  switch (typeof value) {
    case 'string':
      return TYPES.string;
    case 'bigint':
      return TYPES.int;
    case 'number':
      return TYPES.double;
    case 'boolean':
      return TYPES.bool;
    default:
      return typeOfObject(value);
  }
}

function typeOfObject(value: Extract<CelValue, object | null>): CelType {
  if (value === null) return TYPES.null_type;
  if (value instanceof CelMap) return TYPES.map;
  if (Array.isArray(value)) return TYPES.list;
  if (value instanceof CelUint) return TYPES.uint;
  if (value instanceof Uint8Array) return TYPES.bytes;
  if (value instanceof CelTimestamp) return TYPES.timestamp;
  if (value instanceof CelDuration) return TYPES.duration;
  return value instanceof CelType ? TYPES.type : TYPES.message;
}
