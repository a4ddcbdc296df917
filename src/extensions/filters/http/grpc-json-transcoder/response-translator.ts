// Makes the body of a response from gRPC messages: JSON, or the content of a google.api.HttpBody.

import type { FieldDescriptor } from '../../../protobuf/types.js';
import { WireError, WireReader, WireType } from '../../../protobuf/wire-reader.js';
import { MessageFrames } from './message-frames.js';
import { printMessage } from './message-printer.js';
import type { BoundMethod } from './method-table.js';
import { StreamForm, type TranscoderRules } from './transcoder-rules.js';

export interface ResponseError {
  readonly error: string;
}

export class ResponseTranslator {
  readonly #rules: TranscoderRules;
  readonly #bound: BoundMethod;
  readonly #frames = new MessageFrames();
  #count = 0;
  /** The content type of the first HttpBody, one character per byte. */
  contentType: string | undefined;

  constructor(rules: TranscoderRules, bound: BoundMethod) {
    this.#rules = rules;
    this.#bound = bound;
  }

  /** Bytes of messages that are not complete. */
  get heldBytes(): number {
    return this.#frames.heldBytes;
  }

  /** Appends bytes of the response without translating them. */
  push(bytes: Uint8Array): void {
    this.#frames.push(bytes);
  }

  /** Returns what the complete messages become. */
  take(): Buffer | ResponseError {
    const parts: Buffer[] = [];
    try {
      for (let message = this.#frames.next(); message !== undefined; message = this.#frames.next()) {
        const part = this.#translate(message);
        if (part !== undefined) parts.push(part);
      }
    } catch (error) {
      if (error instanceof WireError) return { error: error.message };
      throw error;
    }
    const { error } = this.#frames;
    return error === undefined ? Buffer.concat(parts) : { error };
  }

  /** Returns the rest of the body at the end of the response. */
  end(): Buffer | ResponseError {
    const rest = this.take();
    if ('error' in rest) return rest;
    this.#frames.end();
    const { error } = this.#frames;
    if (error !== undefined) return { error };
    const isArray = this.#rules.streamForm === StreamForm.Array;
    if (!this.#bound.method.serverStreaming || this.#bound.returnsHttpBody || !isArray) return rest;
    return Buffer.concat([rest, Buffer.from(this.#count === 0 ? '[]' : ']')]);
  }

  #translate(message: Buffer): Buffer | undefined {
    const { method, returnsHttpBody } = this.#bound;
    // Further messages of a unary response are ignored.
    if (!method.serverStreaming && this.#count > 0) return undefined;
    if (returnsHttpBody) return this.#httpBody(message);
    const isFirst = this.#count++ === 0;
    const { print, registry, streamForm } = this.#rules;
    const json = printMessage(method.output, message, print, registry.messages);
    if (!method.serverStreaming) return Buffer.from(json);
    if (streamForm === StreamForm.Lines) return Buffer.from(`${json}\n`);
    if (streamForm === StreamForm.Events) return Buffer.from(`data: ${json}\n\n`);
    return Buffer.from(`${isFirst ? '[' : ','}${json}`);
  }

  #httpBody(message: Buffer): Buffer | undefined {
    // An empty message says nothing, not even a content type.
    if (message.length === 0) return undefined;
    this.#count++;
    const { contentType, data } = httpBodyIn(new WireReader(message), this.#bound.responseBodyPath, 0);
    this.contentType ??= contentType;
    return data;
  }
}

function httpBodyIn(
  reader: WireReader,
  path: readonly FieldDescriptor[],
  depth: number,
): { contentType: string; data: Buffer } {
  let contentType = '';
  let data: Buffer = NOTHING;
  while (reader.next()) {
    if (reader.wireType !== WireType.Bytes) reader.skip();
    else if (depth < path.length) {
      if (reader.field === path[depth]!.number) ({ contentType, data } = httpBodyIn(reader.inner(), path, depth + 1));
      else reader.skip();
    } else if (reader.field === 1) contentType = reader.range().toString('latin1');
    else if (reader.field === 2) data = reader.range();
    else reader.skip();
  }
  if (/[\0\r\n]/.test(contentType)) throw new WireError('the content type is not the value of a header');
  return { contentType, data };
}

const NOTHING = Buffer.alloc(0);
