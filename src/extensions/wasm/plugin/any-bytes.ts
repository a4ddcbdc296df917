// The configuration of a plugin or a VM as its module gets it: text and bytes as they are, a Struct in its binary form.

import type { Any } from '../../../config/generated/api.js';
import { BatonError, ProtobufWriter } from '../../sdk.js';

/** Messages that a module can get, by their full names. */
export const CONFIGURATIONS = ['google.protobuf.StringValue', 'google.protobuf.BytesValue', 'google.protobuf.Struct'];

/** Returns the bytes; none without a configuration. Throws a BatonError for another message. */
export function anyBytes(any: Any | undefined): Buffer {
  if (any === undefined) return Buffer.alloc(0);
  const name = any['@type'].slice(any['@type'].lastIndexOf('/') + 1);
  const { value } = any as { readonly value?: unknown };
  switch (name) {
    case 'google.protobuf.StringValue':
      return Buffer.from(String(value ?? ''));
    case 'google.protobuf.BytesValue':
      return Buffer.from(String(value ?? ''), 'base64');
    case 'google.protobuf.Struct':
      return Buffer.from(structBytes((value ?? {}) as Readonly<Record<string, unknown>>));
    default:
      throw new BatonError('CONFIG_INVALID', `modules get ${CONFIGURATIONS.join(', ')}; ${name} is not supported`);
  }
}

function structBytes(value: Readonly<Record<string, unknown>>): Uint8Array {
  const writer = new ProtobufWriter();
  for (const [key, item] of Object.entries(value)) {
    const entry = new ProtobufWriter();
    entry.string(1, key);
    entry.bytes(2, valueBytes(item));
    writer.bytes(1, entry.copy());
  }
  return writer.copy();
}

/** A google.protobuf.Value. The loader has limited how deep it is. */
function valueBytes(value: unknown): Uint8Array {
  const writer = new ProtobufWriter();
  if (value === null || value === undefined) writer.number(1, 0);
  else if (typeof value === 'number') writer.double(2, value);
  else if (typeof value === 'string') writer.string(3, value);
  else if (typeof value === 'boolean') writer.number(4, value ? 1 : 0);
  else if (Array.isArray(value)) {
    const list = new ProtobufWriter();
    for (const item of value) list.bytes(1, valueBytes(item));
    writer.bytes(6, list.copy());
  } else writer.bytes(5, structBytes(value as Readonly<Record<string, unknown>>));
  return writer.copy();
}
