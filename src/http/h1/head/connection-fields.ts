// Interprets the fields of ConnectionHeader: where the body ends, whether the connection ends after the message, and what else they ask of
// the next hop (RFC 9112 sections 3.2, 6 and 9). Ambiguous messages are refused.

import { ConnectionHeader, equalsFolded, headerIdOf, headerKey } from '../../../common/text/header-names.js';
import type { Memory } from '../../../io/memory.js';
import { BodyKind, type HeaderBlock, Method } from '../../headers/header-block.js';
import { H1Error } from '../errors.js';
import { isAuthority } from './authority.js';
import { Char } from './characters.js';
import { isPlainLength, parseContentLength } from './framing.js';

const enum Token {
  Close = 1,
  KeepAlive = 2,
  Upgrade = 4,
}

/**
 * Limits for the names in Connection. Each name costs a scan of all fields, so a peer could keep a worker busy with one head. The limit for
 * clients is Envoy's.
 */
const TOO_MANY_NAMES = 10;
const TOO_MANY_NAMES_OF_HOSTS = 100;

/** Collects the connection fields of one head. Methods return an H1Error, or 0 for success. */
export class ConnectionFields {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;

  #hostIndex = -1;
  #contentLength = -1;
  /** Content-Length is valid, but not in its usual form. */
  #isOddLength = false;
  #chunked = false;
  #connectionTokens = 0;
  /** How many names the Connection fields list. */
  #connectionNames = 0;
  #upgradeField = false;
  #expectField = false;
  /** Connection names a field that clients may not remove. */
  #namesProtected = false;

  constructor(memory: Memory) {
    this.#bytes = memory.bytes;
    this.#view = memory.view;
  }

  /** Index of the last Host field, or -1. */
  get hostIndex(): number {
    return this.#hostIndex;
  }

  /** Resets the state for another head. */
  clear(): void {
    this.#hostIndex = -1;
    this.#contentLength = -1;
    this.#isOddLength = false;
    this.#chunked = false;
    this.#connectionTokens = 0;
    this.#connectionNames = 0;
    this.#upgradeField = this.#expectField = this.#namesProtected = false;
  }

  /** Records a field, one of ConnectionHeader. */
  note(head: HeaderBlock, index: number, isRequest: boolean): number {
    const start = head.valueStart(index);
    const end = head.valueEnd(index);
    switch (head.id(index) as ConnectionHeader) {
      case ConnectionHeader.Host:
        if (this.#hostIndex >= 0 && isRequest) return H1Error.HostRepeated;
        this.#hostIndex = index;
        return 0;
      case ConnectionHeader.Connection:
        this.#connectionList(head, start, end);
        if (isRequest && this.#namesProtected) return H1Error.Connection;
        return this.#connectionNames >= (isRequest ? TOO_MANY_NAMES : TOO_MANY_NAMES_OF_HOSTS) ? H1Error.Connection : 0;
      case ConnectionHeader.ContentLength:
        // A repeated length is refused even if both are equal: other hops may use the other one.
        if (this.#contentLength >= 0) return H1Error.ContentLength;
        this.#contentLength = parseContentLength(this.#bytes, start, end);
        if (this.#contentLength < 0) return H1Error.ContentLength;
        this.#isOddLength = !isPlainLength(head, index);
        return 0;
      case ConnectionHeader.TransferEncoding:
        if (this.#chunked) return H1Error.Coding;
        this.#chunked = true;
        return equalsFolded(this.#bytes, start, end, CHUNKED) ? 0 : H1Error.Coding;
      case ConnectionHeader.Upgrade:
        // h2c is not offered: its upgrade is ignored, as RFC 9110 section 7.8 allows.
        if (!equalsFolded(this.#bytes, start, end, H2C)) this.#upgradeField = true;
        return 0;
      case ConnectionHeader.Expect:
        // Several fields are one list, which is not exactly 100-continue.
        head.expectContinue = !this.#expectField && equalsFolded(this.#bytes, start, end, CONTINUE);
        this.#expectField = true;
        return 0;
      default:
        return 0;
    }
  }

  /** Called when all fields of a request are recorded. */
  finishRequest(head: HeaderBlock): number {
    if (this.#hostIndex >= 0) {
      const start = head.valueStart(this.#hostIndex);
      const end = head.valueEnd(this.#hostIndex);
      if (end > start && !isAuthority(this.#bytes, start, end)) return H1Error.HostInvalid;
    }
    head.close = this.#isLast(head);
    if (head.minorVersion === 0) head.expectContinue = false;
    if (this.#chunked) {
      if (head.minorVersion === 0 || head.method === Method.Connect) return H1Error.CodingNotAllowed;
      if (this.#contentLength >= 0) return H1Error.LengthAndCoding;
      head.bodyKind = BodyKind.Chunked;
    } else if (this.#contentLength >= 0) {
      if (head.method === Method.Connect && this.#contentLength > 0) return H1Error.ContentLengthNotAllowed;
      head.bodyKind = BodyKind.Length;
      head.contentLength = this.#contentLength;
    }
    const isUpgrade = this.#upgradeField && (this.#connectionTokens & Token.Upgrade) !== 0 && head.minorVersion === 1;
    // A chunked body would need its last chunk before the switch, which the host may read as tunnel bytes: such an upgrade is ignored.
    head.upgrade = isUpgrade && !this.#chunked && head.method !== Method.Connect;
    return this.#hostIndex < 0 && head.minorVersion === 1 ? H1Error.HostMissing : 0;
  }

  /** Called when all fields of a response are recorded. */
  finishResponse(head: HeaderBlock): number {
    head.close = this.#isLast(head);
    const hasNoBody = head.status < 200 || head.status === 204;
    if (this.#chunked) {
      if (head.minorVersion === 0 || hasNoBody) return H1Error.CodingNotAllowed;
      if (this.#contentLength >= 0) return H1Error.LengthAndCoding;
      head.bodyKind = BodyKind.Chunked;
    } else if (this.#contentLength >= 0) {
      if (hasNoBody && this.#contentLength > 0) return H1Error.ContentLengthNotAllowed;
      head.bodyKind = BodyKind.Length;
      head.contentLength = this.#contentLength;
    } else {
      head.bodyKind = hasNoBody || head.status === 304 ? BodyKind.None : BodyKind.UntilClose;
    }
    head.upgrade = head.status === 101;
    return 0;
  }

  /**
   * Rewrites an unusual Content-Length, because peers that misread tabs, or read 010 as 8, would find another end of the body. Returns true
   * if there was one; some bytes of the head are in scratch then.
   */
  rewriteOddLength(head: HeaderBlock): boolean {
    if (this.#isOddLength) head.set(CONTENT_LENGTH, String(this.#contentLength));
    return this.#isOddLength;
  }

  #connectionList(head: HeaderBlock, start: number, end: number): void {
    const bytes = this.#bytes;
    // The usual value. It is also a field name, so it has an ID.
    if (headerIdOf(bytes, this.#view, start, end) === ConnectionHeader.KeepAlive) {
      this.#connectionNames++;
      this.#connectionTokens |= Token.KeepAlive;
      return;
    }
    let at = start;
    while (at < end) {
      while (at < end && (bytes[at] === Char.Comma || bytes[at] === Char.Space || bytes[at] === Char.Tab)) at++;
      if (at === end) return;
      this.#connectionNames++;
      const tokenStart = at;
      while (at < end && bytes[at] !== Char.Comma) at++;
      let tokenEnd = at;
      while (bytes[tokenEnd - 1] === Char.Space || bytes[tokenEnd - 1] === Char.Tab) tokenEnd--;
      if (equalsFolded(bytes, tokenStart, tokenEnd, KEEP_ALIVE)) this.#connectionTokens |= Token.KeepAlive;
      else if (equalsFolded(bytes, tokenStart, tokenEnd, CLOSE)) this.#connectionTokens |= Token.Close;
      else if (equalsFolded(bytes, tokenStart, tokenEnd, UPGRADE)) this.#connectionTokens |= Token.Upgrade;
      else {
        head.nominates = true;
        this.#namesProtected ||= isProtected(bytes, tokenStart, tokenEnd);
      }
    }
  }

  /** Returns whether the connection ends after this message (RFC 9112 section 9.3). */
  #isLast(head: HeaderBlock): boolean {
    if ((this.#connectionTokens & Token.Close) !== 0) return true;
    return head.minorVersion === 0 && (this.#connectionTokens & Token.KeepAlive) === 0;
  }
}

/** Returns whether removing this field would change what the request means. As in Envoy, clients may not nominate it. */
function isProtected(bytes: Uint8Array, start: number, end: number): boolean {
  return bytes[start] === Char.Colon || PROTECTED.some((name) => equalsFolded(bytes, start, end, name));
}

const CONTENT_LENGTH = headerKey('content-length');
const encoder = new TextEncoder();
const PROTECTED = ['host', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto'].map((name) =>
  encoder.encode(name),
);
const CHUNKED = encoder.encode('chunked');
const KEEP_ALIVE = encoder.encode('keep-alive');
const CLOSE = encoder.encode('close');
const UPGRADE = encoder.encode('upgrade');
const CONTINUE = encoder.encode('100-continue');
const H2C = encoder.encode('h2c');
