// Writes values that occur in the messages of several services: texts, addresses, times and structures.

import { isUtf8 } from 'node:buffer';
import type { Json, Struct } from '../../config/generated/api.js';
import {
  endpointIdOf,
  type FilterStateObject,
  internalNameOf,
  isInternalText,
  ProtobufWriter,
  utf8Length,
} from '../sdk.js';

/** Levels of a structure; deeper ones are left out. */
const MAX_DEPTH = 64;
const INVALID = 33;
const NANOS_PER_MS = 1e6;

const inner = new ProtobufWriter();
const innermost = new ProtobufWriter();

/** Writes text with one character per byte unless it is empty. As in Envoy, '!' replaces bytes that are not UTF-8. */
export function writeText(to: ProtobufWriter, field: number, text: string): void {
  if (text === '') return;
  for (let i = 0; i < text.length; i++)
    if (text.charCodeAt(i) > 127) return to.bytes(field, utf8Of(Buffer.from(text, 'latin1')));
  to.string(field, text);
}

/** Writes bytes as writeText() writes text. */
export function writeBytesAsText(to: ProtobufWriter, field: number, bytes: Uint8Array): void {
  if (bytes.length > 0) to.bytes(field, isUtf8(bytes) ? bytes : utf8Of(Buffer.from(bytes)));
}

/** Writes an entry of a map of strings. */
export function writeMapText(to: ProtobufWriter, field: number, key: string, value: string): void {
  inner.clear();
  inner.string(1, key);
  writeText(inner, 2, value);
  to.message(field, inner);
}

/** Writes an entry of a map of messages: `value` has the message as field 2. */
export function writeMapMessage(to: ProtobufWriter, field: number, key: string, value: ProtobufWriter): void {
  value.string(1, key);
  to.message(field, value);
}

/** Writes a number unless it is 0. */
export function writeNumber(to: ProtobufWriter, field: number, value: number): void {
  if (value > 0) to.number(field, value);
}

/** Writes an envoy.config.core.v3.Address unless `text` is empty: `127.0.0.1:80`, `[::1]:80`, a path, or `envoy://listener/endpoint`. */
export function writeAddress(to: ProtobufWriter, field: number, text: string): void {
  if (text === '') return;
  innermost.clear();
  if (isInternalText(text)) {
    innermost.string(1, internalNameOf(text));
    writeText(innermost, 2, endpointIdOf(text));
    inner.clear();
    inner.message(3, innermost);
    return to.message(field, inner);
  }
  const port = /^(?:\[(.+)\]|([^/@:][^:]*)):(\d+)$/.exec(text);
  if (port === null) innermost.string(1, text);
  else {
    innermost.string(2, port[1] ?? port[2]!);
    // The field is part of a oneof.
    innermost.number(3, Number(port[3]));
  }
  inner.clear();
  inner.message(port === null ? 2 : 1, innermost);
  to.message(field, inner);
}

/** Writes a google.protobuf.Duration of `ms`. */
export function writeDuration(to: ProtobufWriter, field: number, ms: number): void {
  const seconds = Math.floor(ms / 1000);
  inner.clear();
  writeNumber(inner, 1, seconds);
  writeNumber(inner, 2, Math.floor((ms - seconds * 1000) * NANOS_PER_MS));
  to.message(field, inner);
}

/** Writes a google.protobuf.Timestamp: `ms` of the wall clock. */
export function writeTimestamp(to: ProtobufWriter, field: number, ms: number): void {
  writeDuration(to, field, ms);
}

/** Writes a google.protobuf.UInt32Value. */
export function writeWrapped(to: ProtobufWriter, field: number, value: number): void {
  inner.clear();
  writeNumber(inner, 1, value);
  to.message(field, inner);
}

/** Writes an object of the filter state as a google.protobuf.Any. */
export function writeObject(to: ProtobufWriter, field: number, { message, text }: FilterStateObject): void {
  innermost.clear();
  if (message === undefined) writeText(innermost, 1, text);
  inner.clear();
  inner.string(1, message?.typeUrl ?? 'type.googleapis.com/google.protobuf.StringValue');
  if (message === undefined) inner.message(2, innermost);
  else inner.bytes(2, message.encoded);
  to.message(field, inner);
}

/** Writes a google.protobuf.Struct. */
export function writeStruct(to: ProtobufWriter, field: number, struct: Struct): void {
  to.message(field, structOf(struct, 0));
}

function structOf(struct: Struct, depth: number): ProtobufWriter {
  const message = new ProtobufWriter();
  for (const [key, value] of Object.entries(struct)) {
    const entry = new ProtobufWriter();
    entry.string(1, key);
    entry.message(2, messageOfValue(value, depth + 1));
    message.message(1, entry);
  }
  return message;
}

function messageOfValue(value: Json, depth: number): ProtobufWriter {
  const message = new ProtobufWriter();
  if (value === null || depth > MAX_DEPTH) message.number(1, 0);
  else if (typeof value === 'number') message.double(2, value);
  else if (typeof value === 'string') message.string(3, value);
  else if (typeof value === 'boolean') message.number(4, value ? 1 : 0);
  else if (Array.isArray(value)) message.message(6, listOf(value, depth));
  else message.message(5, structOf(value as Struct, depth));
  return message;
}

function listOf(list: readonly Json[], depth: number): ProtobufWriter {
  const message = new ProtobufWriter();
  for (const each of list) message.message(1, messageOfValue(each, depth + 1));
  return message;
}

/** Replaces invalid UTF-8 in `bytes`, in place. */
function utf8Of(bytes: Uint8Array): Uint8Array {
  if (isUtf8(bytes)) return bytes;
  for (let at = 0; at < bytes.length; ) {
    const length = utf8Length(bytes, at);
    if (length === 0) bytes[at++] = INVALID;
    else at += length;
  }
  return bytes;
}
