// Reads a google.protobuf.Value in binary form, as a client sends it.

import { createRequire } from 'node:module';
import type protobuf from 'protobufjs/minimal.js';
import type { Json } from '../../../sdk.js';

/** As protobuf limits the depth of messages. */
const MAX_DEPTH = 100;

/** Tags of the fields of a Value: number and wire type. */
const NULL = 8;
const NUMBER = 17;
const STRING = 26;
const BOOL = 32;
const STRUCT = 42;
const LIST = 50;
/** Tags of messages and texts in a Struct, its entries, and a ListValue. */
const FIRST = 10;
const SECOND = 18;

/** Returns undefined if the bytes are no Value. The first call loads protobufjs, which most threads never need. */
export function decodeValue(bytes: Uint8Array): Json | undefined {
  try {
    const { Reader } = createRequire(import.meta.url)('protobufjs/minimal.js') as typeof protobuf;
    return readValue(Reader.create(bytes), bytes.length, 0);
  } catch {
    return undefined;
  }
}

/** Reads up to `end`. Throws for malformed bytes. A Value without any field is null. */
function readValue(reader: protobuf.Reader, end: number, depth: number): Json {
  if (depth > MAX_DEPTH) throw new RangeError('nested too deeply');
  let value: Json = null;
  while (reader.pos < end) {
    const tag = readTag(reader);
    switch (tag) {
      case NULL:
        reader.int32();
        value = null;
        break;
      case NUMBER:
        value = reader.double();
        break;
      case STRING:
        value = reader.string();
        break;
      case BOOL:
        value = reader.bool();
        break;
      case STRUCT:
        value = within(reader, (last) => readStruct(reader, last, depth + 1));
        break;
      case LIST:
        value = within(reader, (last) => readList(reader, last, depth + 1));
        break;
      default:
        reader.skipType(tag & 7);
    }
  }
  return value;
}

function readStruct(reader: protobuf.Reader, end: number, depth: number): Json {
  const struct = Object.create(null) as Record<string, Json>;
  while (reader.pos < end) {
    const tag = readTag(reader);
    if (tag !== FIRST) reader.skipType(tag & 7);
    else
      within(reader, (last) => {
        let key = '';
        let value: Json = null;
        while (reader.pos < last) {
          const inner = readTag(reader);
          if (inner === FIRST) key = reader.string();
          else if (inner === SECOND) value = within(reader, (valueEnd) => readValue(reader, valueEnd, depth + 1));
          else reader.skipType(inner & 7);
        }
        struct[key] = value;
      });
  }
  return struct;
}

function readList(reader: protobuf.Reader, end: number, depth: number): Json {
  const list: Json[] = [];
  while (reader.pos < end) {
    const tag = readTag(reader);
    if (tag === FIRST) list.push(within(reader, (last) => readValue(reader, last, depth + 1)));
    else reader.skipType(tag & 7);
  }
  return list;
}

function readTag(reader: protobuf.Reader): number {
  const tag = reader.uint32();
  if (tag >>> 3 === 0) throw new RangeError('a field without a number');
  return tag;
}

/** Reads a nested message, whose length comes first. */
function within<T>(reader: protobuf.Reader, read: (end: number) => T): T {
  const length = reader.uint32();
  const end = reader.pos + length;
  if (end > reader.len) throw new RangeError('the message is cut off');
  const value = read(end);
  if (reader.pos !== end) throw new RangeError('a field is longer than its message');
  return value;
}
