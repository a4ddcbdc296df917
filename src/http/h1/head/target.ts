// Request targets other than an absolute path (RFC 9112 section 3.2).

import { equalsFolded, headerKey } from '../../../common/text/header-names.js';
import { type HeaderBlock, Method } from '../../headers/header-block.js';
import { isUrlAuthority, Port } from './authority.js';
import { Char, SCHEME, spanEnd } from './characters.js';

export const enum Target {
  Invalid = 0,
  /** The authority of a CONNECT, or "*": the head's path stays as received. */
  AsReceived = 1,
  /** A URL of either scheme that was split: some bytes of the head are in scratch now. */
  Http = 2,
  Https = 3,
  /** Neither a path nor a URL. */
  NoUrl = 4,
  /** A URL of a scheme other than http and https. */
  OtherScheme = 5,
}

/**
 * Checks the target in the head's path. CONNECT has an authority with a port, OPTIONS may have "*", and everything else is http://host/path
 * or https://host/path. The authority of a URL then replaces the Host field (at `hostIndex`, or -1), and the rest becomes the path: "/" if
 * there is none, as in Envoy also for OPTIONS.
 */
export function readTarget(head: HeaderBlock, hostIndex: number): Target {
  const { bytes } = head.memory;
  const { pathStart, pathEnd } = head;
  if (head.method === Method.Connect) {
    return isUrlAuthority(bytes, pathStart, pathEnd, Port.Required) ? Target.AsReceived : Target.Invalid;
  }
  if (bytes[pathStart] === Char.Asterisk) {
    return head.method === Method.Options && pathEnd - pathStart === 1 ? Target.AsReceived : Target.Invalid;
  }
  return readUrl(head, hostIndex);
}

function readUrl(head: HeaderBlock, hostIndex: number): Target {
  const { memory, pathEnd: end } = head;
  const { bytes } = memory;
  const scheme = schemeOf(bytes, head.pathStart, end);
  if (scheme !== Target.Http && scheme !== Target.Https) return scheme;
  const start = head.pathStart + (scheme === Target.Http ? HTTP : HTTPS).length;
  let at = start;
  while (at < end && bytes[at] !== Char.Slash && bytes[at] !== Char.Question) at++;
  if (!isUrlAuthority(bytes, start, at, Port.Optional)) return Target.Invalid;
  if (at < end && bytes[at] === Char.Slash) head.pathStart = at;
  else setPath(head, Char.Slash, at, end);
  head.startLineEnd = head.startLineStart;
  head.scheme = scheme === Target.Http ? 'http' : 'https';
  if (hostIndex >= 0) head.removeAt(hostIndex);
  head.add(HOST, memory.text(start, at));
  return scheme;
}

/** Returns Http or Https for a URL that has at least one byte after "//", or else what is wrong. */
function schemeOf(bytes: Uint8Array, start: number, end: number): Target {
  if (end > start + HTTP.length && startsWith(bytes, start, HTTP)) return Target.Http;
  if (end > start + HTTPS.length && startsWith(bytes, start, HTTPS)) return Target.Https;
  const at = spanEnd(SCHEME, bytes, start, end);
  if (at === start || at + AUTHORITY.length > end || !startsWith(bytes, at, AUTHORITY)) return Target.NoUrl;
  return startsWith(bytes, start, HTTP) || startsWith(bytes, start, HTTPS) ? Target.Invalid : Target.OtherScheme;
}

function startsWith(bytes: Uint8Array, start: number, prefix: Uint8Array): boolean {
  return equalsFolded(bytes, start, start + prefix.length, prefix);
}

/** Sets the path to `first` followed by bytes[from, to). */
function setPath(head: HeaderBlock, first: number, from: number, to: number): void {
  const { memory } = head;
  const start = head.room(1 + to - from);
  memory.bytes[start] = first;
  memory.copy(start + 1, from, to);
  head.pathStart = start;
  head.pathEnd = start + 1 + to - from;
}

const HOST = headerKey('host');
const HTTP = new TextEncoder().encode('http://');
const HTTPS = new TextEncoder().encode('https://');
const AUTHORITY = new TextEncoder().encode('://');
