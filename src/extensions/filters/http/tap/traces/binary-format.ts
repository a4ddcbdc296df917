// Writes traces as length-delimited protobuf messages.

import { endpointIdOf, internalNameOf, isInternalText, ProtobufWriter } from '../../../../sdk.js';
import {
  type BufferedTrace,
  splitAddress,
  type TracedBody,
  type TracedConnection,
  type TracedHeader,
  type TracedMessage,
  type TraceFormat,
  type TraceSegment,
} from './trace.js';

/** Field numbers of envoy.data.tap.v3 and of the messages it contains. */
const enum Trace {
  Buffered = 1,
  Segment = 2,
}
const enum Buffered {
  Request = 1,
  Response = 2,
  Connection = 3,
}
const enum Message {
  Headers = 1,
  Body = 2,
  Trailers = 3,
  ReceivedTime = 4,
}
const enum Segment {
  TraceId = 1,
}
const enum HeaderMap {
  Headers = 1,
}
const enum Header {
  Key = 1,
  Value = 2,
  RawValue = 3,
}
const enum Body {
  AsBytes = 1,
  Truncated = 3,
}
const enum Connection {
  Local = 1,
  Remote = 2,
}
const enum Address {
  Socket = 1,
  Pipe = 2,
  Internal = 3,
}
const enum Socket {
  Address = 2,
  Port = 3,
}
const enum Internal {
  Name = 1,
  EndpointId = 2,
}

const enum Pipe {
  Path = 1,
}
const enum Timestamp {
  Seconds = 1,
  Nanos = 2,
}

export class BinaryFormat implements TraceFormat {
  buffered({ request, response, connection }: BufferedTrace): Uint8Array<ArrayBuffer> {
    const trace = new ProtobufWriter();
    if (request !== undefined) trace.message(Buffered.Request, messageOf(request));
    if (response !== undefined) trace.message(Buffered.Response, messageOf(response));
    if (connection !== undefined) trace.message(Buffered.Connection, connectionOf(connection));
    return wrapped(Trace.Buffered, trace);
  }

  segment({ traceId, piece, content }: TraceSegment): Uint8Array<ArrayBuffer> {
    const segment = new ProtobufWriter();
    segment.number(Segment.TraceId, traceId);
    segment.message(piece, 'bytes' in content ? bodyOf(content) : headersOf(HeaderMap.Headers, content));
    return wrapped(Trace.Segment, segment);
  }
}

function wrapped(field: Trace, inner: ProtobufWriter): Uint8Array<ArrayBuffer> {
  const wrapper = new ProtobufWriter();
  wrapper.message(field, inner);
  return wrapper.delimited();
}

function messageOf({ headers, body, trailers, receivedMs }: TracedMessage): ProtobufWriter {
  const message = headersOf(Message.Headers, headers);
  if (body !== undefined) message.message(Message.Body, bodyOf(body));
  headersOf(Message.Trailers, trailers, message);
  if (receivedMs !== undefined) {
    const time = new ProtobufWriter();
    const seconds = Math.floor(receivedMs / 1000);
    time.number(Timestamp.Seconds, seconds);
    time.number(Timestamp.Nanos, Math.round((receivedMs - seconds * 1000) * 1e6));
    message.message(Message.ReceivedTime, time);
  }
  return message;
}

function headersOf(field: number, headers: readonly TracedHeader[], into = new ProtobufWriter()): ProtobufWriter {
  for (const { key, value, raw } of headers) {
    const header = new ProtobufWriter();
    header.string(Header.Key, key);
    if (raw === undefined) header.string(Header.Value, value);
    else header.bytes(Header.RawValue, raw);
    into.message(field, header);
  }
  return into;
}

function bodyOf({ bytes, isTruncated }: TracedBody): ProtobufWriter {
  const body = new ProtobufWriter();
  body.bytes(Body.AsBytes, bytes);
  if (isTruncated) body.number(Body.Truncated, 1);
  return body;
}

function connectionOf({ local, remote }: TracedConnection): ProtobufWriter {
  const connection = new ProtobufWriter();
  connection.message(Connection.Local, addressOf(local));
  connection.message(Connection.Remote, addressOf(remote));
  return connection;
}

function addressOf(text: string): ProtobufWriter {
  const address = new ProtobufWriter();
  const inner = new ProtobufWriter();
  const split = splitAddress(text);
  if (isInternalText(text)) {
    inner.string(Internal.Name, internalNameOf(text));
    inner.string(Internal.EndpointId, endpointIdOf(text));
    address.message(Address.Internal, inner);
  } else if (split === undefined) {
    inner.string(Pipe.Path, text);
    address.message(Address.Pipe, inner);
  } else {
    inner.string(Socket.Address, split.host);
    inner.number(Socket.Port, split.port);
    address.message(Address.Socket, inner);
  }
  return address;
}
