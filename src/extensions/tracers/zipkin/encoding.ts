// Encodes Zipkin's spans as JSON (v2) and as protobuf (zipkin.proto3).

import { writeMapText, writeText } from '../../messages/wire.js';
import { ProtobufWriter } from '../../sdk.js';
import type { FinishedSpan } from './span.js';

/** The server, as spans name it. Texts have one character per byte. */
export interface LocalEndpoint {
  readonly service: string;
  /** An IP address. */
  readonly ip: string;
}

export interface SpanEncoding {
  readonly contentType: string;
  encode(span: FinishedSpan): Uint8Array;
  /** Returns the body of a report. */
  join(spans: readonly Uint8Array[]): Uint8Array;
}

export function jsonEncoding(endpoint: LocalEndpoint): SpanEncoding {
  const localEndpoint = {
    serviceName: textOf(endpoint.service),
    [endpoint.ip.includes(':') ? 'ipv6' : 'ipv4']: endpoint.ip,
    port: 0,
  };
  return {
    contentType: 'application/json',
    encode: (span) => Buffer.from(JSON.stringify({ ...jsonOf(span), localEndpoint })),
    join: (spans) => Buffer.from(`[${spans.map((span) => Buffer.from(span).toString()).join(',')}]`),
  };
}

function jsonOf({ annotations, isShared, parentId, tags, ...span }: FinishedSpan): object {
  return {
    traceId: span.traceId,
    ...(parentId === '' ? {} : { parentId }),
    id: span.spanId,
    kind: span.kind,
    name: textOf(span.name),
    timestamp: span.timestamp,
    duration: span.duration,
    ...(isShared ? { shared: true } : {}),
    annotations,
    tags: Object.fromEntries([...tags].map(([name, value]) => [textOf(name), textOf(value)])),
  };
}

const KINDS = { CLIENT: 1, SERVER: 2 } as const;
const message = new ProtobufWriter();
const part = new ProtobufWriter();

export function protobufEncoding(endpoint: LocalEndpoint): SpanEncoding {
  const encodedEndpoint = encodeEndpoint(endpoint);
  return {
    contentType: 'application/x-protobuf',
    encode: (span) => encodeSpan(span, encodedEndpoint),
    join(spans) {
      const list = new ProtobufWriter();
      for (const span of spans) list.bytes(1, span);
      return list.copy();
    },
  };
}

function encodeSpan(span: FinishedSpan, endpoint: Uint8Array): Uint8Array {
  message.clear();
  message.bytes(1, Buffer.from(span.traceId, 'hex'));
  if (span.parentId !== '') message.bytes(2, Buffer.from(span.parentId, 'hex'));
  message.bytes(3, Buffer.from(span.spanId, 'hex'));
  message.number(4, KINDS[span.kind]);
  writeText(message, 5, span.name);
  message.fixed64(6, BigInt(span.timestamp));
  message.number(7, span.duration);
  message.bytes(8, endpoint);
  for (const { timestamp, value } of span.annotations) {
    part.clear();
    part.fixed64(1, BigInt(timestamp));
    writeText(part, 2, value);
    message.message(10, part);
  }
  for (const [name, value] of span.tags) writeMapText(message, 11, textOf(name), value);
  if (span.isShared) message.number(13, 1);
  return message.copy();
}

function encodeEndpoint({ ip, service }: LocalEndpoint): Uint8Array {
  const endpoint = new ProtobufWriter();
  writeText(endpoint, 1, service);
  if (/^[\d.]+$/.test(ip)) endpoint.bytes(2, Buffer.from(ip.split('.').map(Number)));
  return endpoint.copy();
}

/** Returns the text of its UTF-8 bytes. */
function textOf(bytes: string): string {
  return Buffer.from(bytes, 'latin1').toString();
}
