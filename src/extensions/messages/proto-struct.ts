// Converts a decoded google.protobuf.Struct to plain data.

import type { Json, Struct } from '../../config/generated/api.js';

/** The decoded message. */
export interface ProtoStruct {
  readonly fields?: { readonly [key: string]: ProtoValue };
}

interface ProtoValue {
  readonly numberValue?: number;
  readonly stringValue?: string;
  readonly boolValue?: boolean;
  readonly structValue?: ProtoStruct;
  readonly listValue?: { readonly values?: readonly ProtoValue[] };
}

/** Returns the structure; undefined if there is none, or it is empty. */
export function filledStruct(struct: ProtoStruct | undefined): Struct | undefined {
  return Object.keys(struct?.fields ?? {}).length === 0 ? undefined : structOf(struct!);
}

function structOf({ fields = {} }: ProtoStruct): Struct {
  const struct: Record<string, Json> = { __proto__: null } as unknown as Record<string, Json>;
  for (const key of Object.keys(fields)) struct[key] = jsonOf(fields[key]!);
  return struct;
}

function jsonOf({ boolValue, listValue, numberValue, stringValue, structValue }: ProtoValue): Json {
  if (structValue !== undefined) return structOf(structValue);
  if (listValue !== undefined) return (listValue.values ?? []).map(jsonOf);
  return stringValue ?? numberValue ?? boolValue ?? null;
}
