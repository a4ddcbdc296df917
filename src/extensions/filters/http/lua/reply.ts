// respond(): the response of a script.

import { type HeaderBlock, type HeaderKey, type LocalReply, LuaError } from '../../../sdk.js';
import { writable } from './objects/headers.js';

export interface LuaReply {
  readonly status: number;
  readonly body: Buffer;
  readonly fields: readonly (readonly [key: HeaderKey, value: string])[];
}

/** Returns the header fields in a Lua table; a value may be a table of values. Throws a LuaError if a name or value is not text. */
export function fieldsOf(entries: readonly unknown[]): [name: string, value: string][] {
  const fields: [string, string][] = [];
  for (let i = 0; i < entries.length; i += 2) {
    const name = textOf(entries[i]).toLowerCase();
    const value = entries[i + 1];
    if (Array.isArray(value)) for (let j = 1; j < value.length; j += 2) fields.push([name, textOf(value[j])]);
    else fields.push([name, textOf(value)]);
  }
  return fields;
}

export function replyOf(headers: readonly unknown[], body: string | undefined): LuaReply {
  const fields = fieldsOf(headers);
  const status = fields.find(([name]) => name === ':status')?.[1] ?? '';
  if (!/^\s*\d{3}\s*$/.test(status) || Number(status) < 200 || Number(status) >= 600)
    throw new LuaError(':status must be between 200-599');
  return {
    status: Number(status),
    body: Buffer.from(body ?? '', 'latin1'),
    fields: fields
      .filter(([name]) => !name.startsWith(':') && name !== 'content-length')
      .map(([name, value]) => [writable(name), checked(name, value)]),
  };
}

export function localReply({ body, fields, status }: LuaReply): LocalReply {
  return {
    status,
    body,
    details: 'lua_response',
    flags: 0,
    isVerbatim: true,
    editHeaders(head: HeaderBlock) {
      for (const [key, value] of fields) head.add(key, value);
    },
  };
}

/** Throws a LuaError for a value that cannot be sent. */
export function checked(name: string, value: string): string {
  if (/[\r\n\0]/.test(value)) throw new LuaError(`invalid value of ${name}`);
  return value;
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return String(value);
  throw new LuaError(`bad header (string expected, got ${typeName(value)})`);
}

function typeName(value: unknown): string {
  if (value === undefined) return 'nil';
  if (Array.isArray(value)) return 'table';
  return typeof value === 'object' ? ((value as { type?: string }).type ?? 'userdata') : typeof value;
}
