// Makes the messages of a gRPC request from the JSON or the bytes of a body.

import { isUtf8 } from 'node:buffer';
import type { FieldDescriptor } from '../../../protobuf/types.js';
import { WireWriter } from '../../../protobuf/wire-writer.js';
import { JsonElements } from './json-elements.js';
import { parseJson } from './json-parser.js';
import { JsonObject, type JsonValue } from './json-value.js';
import { MessageEncoder } from './message-encoder.js';
import type { RequestCall } from './request-call.js';
import type { TranscoderRules } from './transcoder-rules.js';

const FRAME_HEADER_BYTES = 5;
/** Bytes of an HTTP body in one message of a stream, below the 4 MiB that gRPC servers accept by default. */
const PIECE_BYTES = 1024 * 1024;
const UNKNOWN_PARAMETERS =
  'type.googleapis.com/envoy.extensions.filters.http.grpc_json_transcoder.v3.UnknownQueryParams';

/** The text of an error, with one character a byte. */
export interface RequestError {
  readonly error: string;
  /** A message of a stream is larger than its limit. */
  readonly isTooLarge?: boolean;
}

export class RequestTranslator {
  readonly #rules: TranscoderRules;
  readonly #call: RequestCall;
  readonly #elements: JsonElements | undefined;
  readonly #maxBytes: number;
  /** The content type of an HTTP body, until its first message. */
  #contentType: string;
  /** The next message is the first one, which has what the path and the query say. */
  #isFirst = true;

  /** `contentType`: of the request; `maxBytes`: of the JSON of one message of a stream. */
  constructor(rules: TranscoderRules, call: RequestCall, contentType: string, maxBytes: number) {
    this.#maxBytes = maxBytes;
    this.#rules = rules;
    this.#call = call;
    this.#contentType = contentType;
    const { takesHttpBody, method } = call.bound;
    if (method.clientStreaming && !takesHttpBody) this.#elements = new JsonElements();
  }

  /** Messages are made before the body is complete. */
  get isStreaming(): boolean {
    return this.#call.bound.method.clientStreaming;
  }

  /** Bytes of a message that is not complete. */
  get heldBytes(): number {
    return this.#elements?.heldBytes ?? 0;
  }

  /** Returns the message of a body that is complete. */
  whole(body: Buffer): Buffer | RequestError {
    if (this.#call.bound.takesHttpBody) return this.#httpBody(body);
    if (body.length === 0) return this.#encode(new JsonObject(), false);
    const { value, error, isTruncated } = parseJson(body.toString('latin1'), validBytes(body));
    if (error !== undefined && !isTruncated) return { error };
    const encoded = value === undefined ? undefined : this.#encode(value, error !== undefined);
    // A mistake in what has been read comes before the one that the end is missing.
    if (encoded !== undefined && 'error' in encoded) return encoded;
    return error === undefined ? encoded! : { error };
  }

  /** Returns the messages that the next bytes of a stream complete. */
  push(bytes: Uint8Array, isLast: boolean): Buffer | RequestError {
    if (this.#elements === undefined) return this.#pieces(bytes, isLast);
    const elements = this.#elements;
    elements.push(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1'));
    const messages: Buffer[] = [];
    for (let text = elements.next(); text !== undefined; text = elements.next()) {
      const message = this.#element(text);
      if ('error' in message) return message;
      messages.push(message);
    }
    if (isLast) elements.end();
    return elements.error === undefined ? Buffer.concat(messages) : { error: elements.error };
  }

  #element(text: string): Buffer | RequestError {
    if (text.length > this.#maxBytes) return { error: '', isTooLarge: true };
    const bytes = Buffer.from(text, 'latin1');
    const { value, error } = parseJson(text, validBytes(bytes));
    return error === undefined ? this.#encode(value!, false) : { error };
  }

  #encode(value: JsonValue, isPartial: boolean): Buffer | RequestError {
    const { bound, bindings } = this.#call;
    const writer = new WireWriter(FRAME_HEADER_BYTES);
    const encoder = new MessageEncoder(writer, this.#rules.encoding);
    encoder.encode(bound.method.input, within(bound.bodyPath, value), this.#isFirst ? bindings : undefined, isPartial);
    this.#isFirst = false;
    return encoder.error === undefined ? framed(writer) : { error: encoder.error };
  }

  // ── HTTP bodies ──────────────────────────────────────────────────────────────────────────────────────────────────

  #pieces(bytes: Uint8Array, isLast: boolean): Buffer | RequestError {
    const messages: Buffer[] = [];
    for (let at = 0; at < bytes.length || (isLast && this.#isFirst); at += PIECE_BYTES) {
      const message = this.#httpBody(bytes.subarray(at, at + PIECE_BYTES));
      if ('error' in message) return message;
      messages.push(message);
    }
    return Buffer.concat(messages);
  }

  #httpBody(body: Uint8Array): Buffer | RequestError {
    const { bound, bindings } = this.#call;
    const writer = new WireWriter(FRAME_HEADER_BYTES);
    if (this.#isFirst) {
      const encoder = new MessageEncoder(writer, this.#rules.encoding);
      encoder.encode(bound.method.input, within(bound.bodyPath, new JsonObject()), bindings);
      if (encoder.error !== undefined) return { error: encoder.error };
    }
    const marks = bound.bodyPath.map((field) => {
      writer.tag(field.number, 2);
      return writer.begin();
    });
    if (this.#contentType !== '') {
      writer.tag(1, 2);
      writer.byteText(this.#contentType);
      this.#contentType = '';
    }
    if (this.#call.unknown.size > 0) this.#writeUnknown(writer);
    writer.tag(2, 2);
    writer.bytes(body);
    for (const mark of marks.reverse()) writer.end(mark);
    this.#isFirst = false;
    return framed(writer);
  }

  /** Writes HttpBody.extensions with the parameters that are not fields. */
  #writeUnknown(writer: WireWriter): void {
    writer.tag(3, 2);
    const any = writer.begin();
    writer.tag(1, 2);
    writer.byteText(UNKNOWN_PARAMETERS);
    writer.tag(2, 2);
    const parameters = writer.begin();
    for (const [name, texts] of [...this.#call.unknown].sort(([a], [b]) => (a < b ? -1 : 1))) {
      writer.tag(1, 2);
      const entry = writer.begin();
      writer.tag(1, 2);
      writer.byteText(name);
      writer.tag(2, 2);
      const values = writer.begin();
      for (const text of texts) {
        writer.tag(1, 2);
        writer.byteText(text);
      }
      writer.end(values);
      writer.end(entry);
    }
    writer.end(parameters);
    writer.end(any);
  }
}

/** Returns the value as the field at the end of a path. */
function within(path: readonly FieldDescriptor[], value: JsonValue): JsonValue {
  let outer = value;
  for (let index = path.length - 1; index >= 0; index--) {
    const object = new JsonObject();
    object.add(path[index]!.name, outer);
    outer = object;
  }
  return outer;
}

/** Completes the header of the message's frame. */
function framed(writer: WireWriter): Buffer {
  writer.setByte(0, 0);
  writer.setUint32(1, writer.length - FRAME_HEADER_BYTES);
  return writer.written;
}

/** Returns how many bytes from the beginning are UTF-8. */
function validBytes(bytes: Buffer): number {
  if (isUtf8(bytes)) return bytes.length;
  // The longest valid beginning. A longer one never becomes valid again.
  let low = 0;
  let high = bytes.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (isUtf8(withoutTail(bytes, middle))) low = middle;
    else high = middle - 1;
  }
  return withoutTail(bytes, low).length;
}

/** Returns bytes[0, end) without an incomplete character at the end. */
function withoutTail(bytes: Buffer, end: number): Buffer {
  for (let back = 1; back <= 3 && back <= end; back++) {
    const byte = bytes[end - back]!;
    if (byte < 0x80) break;
    if (byte < 0xc0) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    return bytes.subarray(0, length > back ? end - back : end);
  }
  return bytes.subarray(0, end);
}
