// Request targets other than an absolute path (RFC 9112 section 3.2).

import { equalsFolded, headerKey } from '../../../common/text/header-names.js';
import { type HeaderBlock, Method } from '../../headers/header-block.js';
import { isUrlAuthority, Port } from './authority.js';
import { Char } from './characters.js';

export const enum Target {
  Invalid = 0,
  /** The authority of a CONNECT, or "*": the head's path stays as received. */
  AsReceived = 1,
  /** A URL of either scheme that was split: some bytes of the head are in scratch now. */
  Http = 2,
  Https = 3,
}

/**
 * Checks the target in the head's path. CONNECT has an authority with a port, OPTIONS may have "*", and everything else is http://host/path
 * or https://host/path. The authority of a URL then replaces the Host field (at `hostIndex`, or -1), and the rest becomes the path.
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
  if (scheme === Target.Invalid) return Target.Invalid;
  const start = head.pathStart + (scheme === Target.Http ? HTTP : HTTPS).length;
  let at = start;
  while (at < end && bytes[at] !== Char.Slash && bytes[at] !== Char.Question) at++;
  if (!isUrlAuthority(bytes, start, at, Port.Optional)) return Target.Invalid;
  if (at < end && bytes[at] === Char.Slash) head.pathStart = at;
  else if (at === end && head.method === Method.Options) setPath(head, Char.Asterisk, at, end);
  else setPath(head, Char.Slash, at, end);
  head.startLineEnd = head.startLineStart;
  head.scheme = scheme === Target.Http ? 'http' : 'https';
  if (hostIndex >= 0) head.removeAt(hostIndex);
  head.add(HOST, memory.text(start, at));
  return scheme;
}

/** Returns the scheme of a URL with at least one byte after "http://" or "https://". */
function schemeOf(bytes: Uint8Array, start: number, end: number): Target.Http | Target.Https | Target.Invalid {
  if (end > start + HTTP.length && equalsFolded(bytes, start, start + HTTP.length, HTTP)) return Target.Http;
  if (end > start + HTTPS.length && equalsFolded(bytes, start, start + HTTPS.length, HTTPS)) return Target.Https;
  return Target.Invalid;
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
