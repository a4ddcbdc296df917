// The questions to a processor (envoy.service.ext_proc.v3.ProcessingRequest).

import type { Struct } from '../../../../config/generated/api.js';
import { writeMapMessage, writeStruct } from '../../../messages/wire.js';
import { type HeaderBlock, headerKey, ProtobufWriter, requestScheme, type StreamInfo } from '../../../sdk.js';
import type { ForwardRules } from './forward-rules.js';
import type { BodyMode } from './modes.js';

/** What a question is about: the number of its field for a request. That for a response is one more. */
export const enum Part {
  Headers = 2,
  Body = 4,
  Trailers = 6,
}

/** What the processor learns with each question. */
export interface QuestionRules {
  /** Undefined: the processor gets all fields. */
  readonly forwarded: ForwardRules | undefined;
  /** Namespaces of the dynamic metadata that the processor gets. */
  readonly namespaces: readonly string[];
  /** What the processor does not answer. */
  readonly isObserved: boolean;
}

/** The body modes, which the first question of a stream has. */
export interface ProtocolConfig {
  readonly request: BodyMode;
  readonly response: BodyMode;
  readonly sendsEarly: boolean;
}

const message = new ProtobufWriter();
const part = new ProtobufWriter();
const fields = new ProtobufWriter();
const entry = new ProtobufWriter();

/** Begins a question about a head or trailers; finishQuestion() follows. */
export function beginFields(
  { forwarded }: QuestionRules,
  kind: Part.Headers | Part.Trailers,
  block: HeaderBlock,
  isRequest: boolean,
  endStream: boolean,
): void {
  fields.clear();
  if (kind === Part.Headers) writePseudoFields(block, isRequest, forwarded);
  for (let index = 0; index < block.size; index++) {
    if (block.isRemoved(index)) continue;
    const name = block.name(index);
    if (isRequest && kind === Part.Headers && name === 'host') continue;
    writeField(name, block.value(index), forwarded);
  }
  part.clear();
  part.message(1, fields);
  if (endStream) part.number(3, 1);
  begin(kind, isRequest);
}

/** Begins a question about a body, or a piece of it. */
export function beginBody(bytes: Uint8Array, isRequest: boolean, endStream: boolean): void {
  part.clear();
  if (bytes.length > 0) part.bytes(1, bytes);
  if (endStream) part.number(2, 1);
  begin(Part.Body, isRequest);
}

/** Returns the encoded question. `protocol` and `attributes`: undefined except for the first one. */
export function finishQuestion(
  { isObserved, namespaces }: QuestionRules,
  info: StreamInfo,
  protocol: ProtocolConfig | undefined,
  attributes: Struct | undefined,
): Uint8Array {
  writeMetadata(namespaces, info);
  if (attributes !== undefined) {
    entry.clear();
    writeStruct(entry, 2, attributes);
    writeMapMessage(message, 9, NAMESPACE, entry);
  }
  if (isObserved) message.number(10, 1);
  // As in Envoy, an observer does not need to know.
  else if (protocol !== undefined) {
    part.clear();
    if (protocol.request > 0) part.number(1, protocol.request);
    if (protocol.response > 0) part.number(2, protocol.response);
    if (protocol.sendsEarly) part.number(3, 1);
    message.message(11, part);
  }
  return message.copy();
}

function begin(kind: Part, isRequest: boolean): void {
  message.clear();
  message.message(isRequest ? kind : kind + 1, part);
}

function writePseudoFields(head: HeaderBlock, isRequest: boolean, forwarded: ForwardRules | undefined): void {
  if (!isRequest) return writeField(':status', String(head.status), forwarded);
  writeField(':authority', head.get(HOST) ?? '', forwarded);
  writeField(':path', head.pathText(), forwarded);
  writeField(':method', head.methodText(), forwarded);
  writeField(':scheme', requestScheme(head), forwarded);
}

/** Writes a HeaderValue. As in Envoy, the value is in raw_value: it need not be UTF-8. */
function writeField(name: string, value: string, forwarded: ForwardRules | undefined): void {
  if (forwarded?.allows(name) === false) return;
  entry.clear();
  entry.string(1, name);
  if (value !== '') entry.bytes(3, Buffer.from(value, 'latin1'));
  fields.message(1, entry);
}

/** As in Envoy, the metadata of the connection stands in for namespaces that the request lacks. */
function writeMetadata(namespaces: readonly string[], { downstream, dynamicMetadata }: StreamInfo): void {
  const ofConnection = downstream?.dynamicMetadata;
  part.clear();
  for (const namespace of namespaces) {
    const struct = dynamicMetadata?.get(namespace) ?? ofConnection?.get(namespace);
    if (struct === undefined) continue;
    entry.clear();
    writeStruct(entry, 2, struct);
    writeMapMessage(part, 1, namespace, entry);
  }
  message.message(8, part);
}

/** Of the attributes. */
const NAMESPACE = 'envoy.filters.http.ext_proc';
const HOST = headerKey('host');
