// Tokens that are larger than a browser stores in one cookie: `name_0`, `name_1` … with their number in `name_chunks`.

import type { CookieTemplate } from './cookies.js';

/** Limits of the cookies of a token. */
export interface ChunkLimits {
  /** Maximum size of a whole Set-Cookie header. */
  readonly maxBytes: number;
  readonly maxChunks: number;
}

/** As in Envoy, for reading. */
const MAX_CHUNKS = 16;
const MIN_CHUNKS = 2;
/** A piece has room for an index of two digits. */
const INDEX_CHARS = '_15'.length;

/** The result of joinChunks(). */
export const enum Joined {
  /** The token is not in chunks. */
  None = 0,
  Whole = 1,
  Malformed = 2,
}

/** Replaces the chunks of a token by one cookie. Chunks that do not fit together are removed. */
export function joinChunks(cookies: Map<string, string>, name: string): Joined {
  const text = cookies.get(`${name}_chunks`);
  if (text === undefined) return Joined.None;
  cookies.delete(`${name}_chunks`);
  const count = /^\+?0*\d{1,2}$/.test(text) ? Number(text) : 0;
  const names = chunkNames(name, count);
  const isWhole = count >= MIN_CHUNKS && count <= MAX_CHUNKS && names.every((each) => cookies.has(each));
  if (isWhole) cookies.set(name, names.map((each) => cookies.get(each)).join(''));
  for (const each of isWhole ? names : chunkNames(name, MAX_CHUNKS)) cookies.delete(each);
  return isWhole ? Joined.Whole : Joined.Malformed;
}

/** Returns Set-Cookie fields for a token; undefined: it is too large. */
export function tokenFields(
  cookie: CookieTemplate,
  value: string,
  maxAge: string,
  limits: ChunkLimits | undefined,
): string[] | undefined {
  const whole = cookie.set(value, maxAge);
  if (limits === undefined || whole.length <= limits.maxBytes) return [whole];
  const room = limits.maxBytes - cookie.name.length - INDEX_CHARS - 1 - cookie.tail(maxAge).length;
  const count = room <= 0 ? Number.POSITIVE_INFINITY : Math.ceil(value.length / room);
  if (count > limits.maxChunks) return undefined;
  const names = chunkNames(cookie.name, count);
  const pieces = names.map((name, at) => cookie.set(value.slice(at * room, (at + 1) * room), maxAge, name));
  return [...pieces, cookie.set(String(count), maxAge, `${cookie.name}_chunks`)];
}

/**
 * Returns Set-Cookie fields that delete the chunks of a token, by what the browser has sent.
 * @param kept number of chunks that are set again; 0: the token is not in chunks
 */
export function chunkDeletions(cookie: CookieTemplate, sent: ReadonlyMap<string, string>, kept: number): string[] {
  const { name } = cookie;
  if (!sent.has(`${name}_chunks`)) return [];
  const probe = new Map(sent);
  const count = joinChunks(probe, name) === Joined.Whole ? Number(sent.get(`${name}_chunks`)) : MAX_CHUNKS;
  const names = chunkNames(name, count).slice(kept);
  return [...(kept === 0 ? [`${name}_chunks`] : []), ...names].map((each) => cookie.deletion(each));
}

function chunkNames(name: string, count: number): string[] {
  return Array.from({ length: Math.min(count, MAX_CHUNKS) }, (_, index) => `${name}_${index}`);
}
