// google.rpc.Status, the body of an error when convert_grpc_status is set.

import {
  type FieldDescriptor,
  FieldType,
  type MessageDescriptor,
  type TypeRegistry,
  WellKnown,
} from '../../../protobuf/types.js';
import { WireReader } from '../../../protobuf/wire-reader.js';
import { WireWriter } from '../../../protobuf/wire-writer.js';

/** Returns the descriptor set's own type, or a built-in one. */
export function statusMessage({ messages }: TypeRegistry): MessageDescriptor {
  const own = messages.get('google.rpc.Status');
  if (own !== undefined) return own;
  const any = messages.get('google.protobuf.Any') ?? ANY;
  return builtIn('google.rpc.Status', WellKnown.None, [
    field('code', 1, FieldType.Int32),
    field('message', 2, FieldType.String),
    { ...field('details', 3, FieldType.Message), isRepeated: true, message: any },
  ]);
}

/** Encodes a status without details. `message`: UTF-8. */
export function encodeStatus(code: number, message: Buffer): Buffer {
  const writer = new WireWriter();
  writer.tag(1, 0);
  writer.uint64(BigInt(code));
  if (message.length > 0) {
    writer.tag(2, 2);
    writer.bytes(message);
  }
  return writer.written;
}

/** Returns the bytes of a grpc-status-details-bin; undefined if it has no message. */
export function decodeDetails(value: string): Buffer | undefined {
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(value)) return undefined;
  const bytes = Buffer.from(value, 'base64');
  try {
    const reader = new WireReader(bytes);
    while (reader.next()) reader.skip();
    return bytes;
  } catch {
    return undefined;
  }
}

/** Decodes a grpc-message. */
export function decodeMessage(text: string): Buffer {
  const decoded = text.replace(/%([0-9a-fA-F]{2})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  );
  return Buffer.from(decoded, 'latin1');
}

function field(name: string, number: number, type: FieldType): FieldDescriptor {
  return {
    name,
    jsonName: name,
    number,
    type,
    isRepeated: false,
    isRequired: false,
    hasPresence: false,
    checksUtf8: false,
    oneof: -1,
    message: undefined,
    enum: undefined,
  };
}

function builtIn(name: string, wellKnown: WellKnown, fields: readonly FieldDescriptor[]): MessageDescriptor {
  return {
    name,
    fields,
    byNumber: new Map(fields.map((each) => [each.number, each])),
    byName: new Map(fields.map((each) => [each.name, each])),
    oneofs: [],
    isMapEntry: false,
    wellKnown,
  };
}

const ANY = builtIn('google.protobuf.Any', WellKnown.Any, [
  { ...field('type_url', 1, FieldType.String), jsonName: 'typeUrl' },
  field('value', 2, FieldType.Bytes),
]);
