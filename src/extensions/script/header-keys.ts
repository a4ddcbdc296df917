// Keys of header fields by name, as modules write them.

import { type HeaderKey, headerKey } from '../sdk.js';

/** A module may make names from what clients send. */
const MAX_KEYS = 1024;

const keys = new Map<string, HeaderKey>();

/** Returns the key. Throws a TypeError if it is not a valid header name. */
export function keyOf(name: string): HeaderKey {
  const known = keys.get(name);
  if (known !== undefined) return known;
  const key = headerKey(String(name).toLowerCase());
  if (keys.size < MAX_KEYS) keys.set(name, key);
  return key;
}

/** Fields that say how a message is framed, and that the codec writes. */
const FRAMING = new Set([
  'content-length',
  'transfer-encoding',
  'connection',
  'keep-alive',
  'upgrade',
  'te',
  'trailer',
]);

/** Returns the key of a field that a module writes. Throws a TypeError for one that follows from the body or the connection. */
export function writableKey(name: string): HeaderKey {
  const key = keyOf(name);
  if (FRAMING.has(key.name))
    throw new TypeError(`a script cannot set '${key.name}': it follows from the body and the connection`);
  return key;
}
