// Parses the head of a request or response, or a trailer section, in place into a HeaderBlock (RFC 9112 sections 2 to 6).
//
// Nothing is allocated and no byte is looked at twice: when a head ends in the middle, the parser remembers where it
// stands; HeadReader keeps the bytes. What is ambiguous is refused.

import {
  ConnectionHeader,
  equalsFolded,
  headerIdOf,
  headerKey,
  isConnectionHeader,
  LONGEST_NAME,
  OTHER_HEADER,
} from '../../../common/text/header-names.js';
import type { Memory } from '../../../io/memory.js';
import { BodyKind, type HeaderBlock, Method } from '../../headers/header-block.js';
import { H1Error } from '../errors.js';
import { isAuthority, Port } from './authority.js';
import { Char, colonAt, spanEnd, TARGET, TOKEN, textEnd } from './characters.js';
import { parseContentLength } from './framing.js';
import { isSecret, type KnownFields } from './known-fields.js';
import { methodOf } from './method.js';
import { readTarget, Target } from './target.js';

export const enum HeadKind {
  Request = 0,
  Response = 1,
  Trailers = 2,
}

export interface HeadLimits {
  /** Start line, fields and empty line together; at most LARGEST_BLOCK. */
  maxHeadBytes: number;
  maxHeaders: number;
  /** Whether requests in HTTP/1.0 are served; otherwise they are answered with 426. */
  acceptHttp10?: boolean;
  /** Whether a target may not be an https URL: its client takes a connection for encrypted that is not. */
  refusesHttpsTargets?: boolean;
  /** Trailers are read and go no further, and none are sent. */
  dropsTrailers?: boolean;
}

/** parse() needs more bytes. Errors are negative, offsets behind a complete head positive. */
export const INCOMPLETE = 0;

/** The start line is complete. */
const DONE = 1;

const enum Stage {
  Begin = 0,
  Method = 1,
  Target = 2,
  Version = 3,
  Reason = 4,
  Fields = 5,
}

const enum Token {
  Close = 1,
  KeepAlive = 2,
  Upgrade = 4,
}

/** A field's number before its name was looked up. */
const UNREAD = -1;

/** Each name costs a look at all fields, so that a client could keep a worker busy with one head. The number is Envoy's. */
const TOO_MANY_NAMES = 10;

/** After so many lines that are not known a head is taken for a new one. */
const MOST_UNKNOWN = 2;

/** Length of "HTTP/1.1 200". */
const STATUS_END = 12;

export class HeadParser {
  /** A complete head has bytes in scratch: an absolute target was taken apart, or a length written anew. */
  usedScratch = false;

  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #known: KnownFields;

  #kind = HeadKind.Request;
  #stage = Stage.Begin;
  /** Where the current line begins, and up to where it was looked at. */
  #lineStart = 0;
  #scan = 0;
  /** End of the current field's name once the colon was seen, otherwise 0. */
  #nameEnd = 0;
  #fieldsStart = 0;
  /** Fields that were taken over from an earlier head, or never will be. */
  #settledFields = 0;
  /** Lines that were not known, since the last one that was. */
  #unknownInRow = 0;

  #hostIndex = -1;
  #contentLength = -1;
  /** Content-Length is not written as everybody writes it. */
  #isOddLength = false;
  #chunked = false;
  #connectionTokens = 0;
  /** How many names the Connection fields have listed. */
  #connectionNames = 0;
  #upgradeField = false;

  constructor(memory: Memory, known: KnownFields) {
    this.#bytes = memory.bytes;
    this.#view = memory.view;
    this.#known = known;
  }

  /** A head begins at `start`. */
  begin(kind: HeadKind, start: number): void {
    this.#kind = kind;
    this.#stage = kind === HeadKind.Trailers ? Stage.Fields : Stage.Begin;
    this.#lineStart = start;
    this.#scan = start;
    this.#nameEnd = 0;
    this.#settledFields = 0;
    this.#unknownInRow = kind === HeadKind.Trailers ? MOST_UNKNOWN : 0;
    this.#hostIndex = -1;
    this.#contentLength = -1;
    this.#isOddLength = false;
    this.#chunked = false;
    this.#connectionTokens = 0;
    this.#connectionNames = 0;
    this.#upgradeField = false;
    this.usedScratch = false;
  }

  /**
   * Goes on up to `end` and fills `head`, which was empty at begin(). Returns the offset behind the head, INCOMPLETE, or
   * a negated H1Error.
   */
  parse(head: HeaderBlock, end: number, limits: HeadLimits): number {
    if (this.#stage !== Stage.Fields) {
      const result =
        this.#kind === HeadKind.Request ? this.#requestLine(head, end, limits) : this.#statusLine(head, end);
      if (result !== DONE) return result;
      this.#stage = Stage.Fields;
    }
    const behind = this.#fields(head, end, limits.maxHeaders);
    if (behind <= 0) return behind;
    head.headEnd = behind;
    if (this.#kind === HeadKind.Trailers) return behind;
    if (this.#settledFields < head.size) this.#known.remember(head, this.#fieldsStart);
    const error = this.#kind === HeadKind.Request ? this.#finishRequest(head, limits) : this.#finishResponse(head);
    if (error !== 0) return -error;
    if (this.#isOddLength) this.#rewriteLength(head);
    return behind;
  }

  #requestLine(head: HeaderBlock, end: number, limits: HeadLimits): number {
    const bytes = this.#bytes;
    let at = this.#scan;
    if (this.#stage === Stage.Begin) {
      // One empty line before a request is forgiven: old clients send one behind a body (RFC 9112 section 2.2).
      if (at < end && bytes[at] === Char.Cr) {
        if (at + 1 >= end) return INCOMPLETE;
        if (bytes[at + 1] !== Char.Lf) return -H1Error.LineEnd;
        at += 2;
      }
      this.#lineStart = at;
      this.#stage = Stage.Method;
    }
    if (this.#stage === Stage.Method) {
      at = spanEnd(TOKEN, bytes, at, end);
      if (at >= end) return this.#waitAt(at);
      if (bytes[at] !== Char.Space || at === this.#lineStart) return -H1Error.RequestLine;
      head.methodStart = this.#lineStart;
      head.methodEnd = at;
      head.method = methodOf(bytes, this.#lineStart, at);
      at++;
      head.pathStart = at;
      this.#stage = Stage.Target;
    }
    if (this.#stage === Stage.Target) {
      at = spanEnd(TARGET, bytes, at, end);
      if (at >= end) return this.#waitAt(at);
      if (bytes[at] !== Char.Space) return -(bytes[at] === Char.Cr ? H1Error.RequestLine : H1Error.Target);
      if (at === head.pathStart) return -H1Error.RequestLine;
      head.pathEnd = at;
      this.#scan = ++at;
      this.#stage = Stage.Version;
    }
    const behind = this.#version(head, this.#scan, end);
    if (behind <= 0) return behind;
    if (behind + 1 >= end) {
      if (behind < end && bytes[behind] !== Char.Cr) return -H1Error.RequestLine;
      return INCOMPLETE;
    }
    if (bytes[behind] !== Char.Cr) return -H1Error.RequestLine;
    if (bytes[behind + 1] !== Char.Lf) return -H1Error.LineEnd;
    if (head.minorVersion === 0 && limits.acceptHttp10 !== true) return -H1Error.Http10;
    return this.#startFields(head, behind + 2);
  }

  #statusLine(head: HeaderBlock, end: number): number {
    const bytes = this.#bytes;
    if (this.#stage === Stage.Begin) {
      let at = this.#version(head, this.#scan, end);
      if (at <= 0) return at === -H1Error.RequestLine ? -H1Error.StatusLine : at;
      if (at < end && bytes[at] !== Char.Space) return -H1Error.StatusLine;
      let status = 0;
      const digitsEnd = at + 4;
      for (at++; at < digitsEnd; at++) {
        if (at >= end) return INCOMPLETE;
        const digit = bytes[at]! - Char.Zero;
        if (digit < 0 || digit > 9) return -H1Error.StatusLine;
        status = status * 10 + digit;
      }
      if (status < 100) return -H1Error.StatusLine;
      if (at >= end) return INCOMPLETE;
      if (bytes[at] !== Char.Space && bytes[at] !== Char.Cr) return -H1Error.StatusLine;
      head.status = status;
      this.#scan = at;
      this.#stage = Stage.Reason;
    }
    const at = textEnd(bytes, this.#view, this.#scan, end);
    if (at + 1 >= end) {
      if (at < end && bytes[at] !== Char.Cr) return -H1Error.StatusLine;
      return this.#waitAt(at);
    }
    if (bytes[at] !== Char.Cr) return -H1Error.StatusLine;
    if (bytes[at + 1] !== Char.Lf) return -H1Error.LineEnd;
    this.#startFields(head, at + 2);
    // A line without the space before its missing reason phrase is understood, but not passed on.
    if (bytes[head.startLineStart + STATUS_END] !== Char.Space) head.startLineEnd = head.startLineStart;
    return DONE;
  }

  /** "HTTP/1.0" or "HTTP/1.1" at `at`: returns the offset behind it. */
  #version(head: HeaderBlock, at: number, end: number): number {
    const bytes = this.#bytes;
    if (at + 8 <= end && this.#view.getInt32(at, true) === HTTP && this.#view.getInt32(at + 4, true) === SLASH_1_1) {
      head.minorVersion = 1;
      return at + 8;
    }
    for (let i = 0; i < VERSION_PREFIX.length; i++) {
      if (at + i >= end) return INCOMPLETE;
      if (bytes[at + i] !== VERSION_PREFIX[i]) return -H1Error.RequestLine;
    }
    at += VERSION_PREFIX.length;
    if (at >= end) return INCOMPLETE;
    const major = bytes[at]! - Char.Zero;
    if (major < 1 || major > 9) return -H1Error.RequestLine;
    if (at + 1 >= end) return INCOMPLETE;
    if (bytes[at + 1] !== Char.Dot) return -H1Error.RequestLine;
    if (at + 2 >= end) return INCOMPLETE;
    const minor = bytes[at + 2]! - Char.Zero;
    if (minor < 0 || minor > 9) return -H1Error.RequestLine;
    if (major !== 1 || minor > 1) return -H1Error.Version;
    head.minorVersion = minor;
    return at + 3;
  }

  #startFields(head: HeaderBlock, at: number): number {
    if (head.minorVersion === 1) {
      head.startLineStart = this.#lineStart;
      head.startLineEnd = at;
    }
    this.#lineStart = this.#scan = this.#fieldsStart = at;
    return DONE;
  }

  /** Takes over lines that are the same as those of an earlier head. Returns the offset behind them, or a negated H1Error. */
  #takeKnown(head: HeaderBlock, at: number, end: number, maxHeaders: number): number {
    const from = head.size;
    if (from === 0) this.#known.choose(this.#kind, end - at);
    const count = Math.min(this.#known.match(from, at, end), maxHeaders - from);
    if (count <= 0) {
      this.#unknownInRow++;
      return at;
    }
    this.#unknownInRow = 0;
    this.#settledFields += count;
    this.#known.addTo(head, from, count, at);
    for (let lines = this.#known.connectionLines(from, count); lines !== 0; lines &= lines - 1) {
      const error = this.#connectionField(head, 31 - Math.clz32(lines & -lines));
      if (error !== 0) return -error;
    }
    return head.lineEnd(from + count - 1);
  }

  /** Field lines up to the empty line: returns the offset behind it. */
  #fields(head: HeaderBlock, end: number, maxHeaders: number): number {
    const bytes = this.#bytes;
    const view = this.#view;
    let lineStart = this.#lineStart;
    let at = this.#scan;
    let nameEnd = this.#nameEnd;
    for (;;) {
      if (at === lineStart && this.#unknownInRow < MOST_UNKNOWN) {
        at = this.#takeKnown(head, at, end, maxHeaders);
        if (at < 0) return at;
        lineStart = at;
      }
      let id = UNREAD;
      if (nameEnd === 0) {
        // A known name needs no look at its bytes one by one.
        if (at === lineStart) {
          let reach = at + LONGEST_NAME + 4;
          if (reach > end) reach = end;
          const colon = colonAt(view, at, reach);
          if (colon < reach) id = headerIdOf(bytes, view, at, colon);
          if (id > OTHER_HEADER) at = colon;
        }
        if (id <= OTHER_HEADER) at = spanEnd(TOKEN, bytes, at, end);
        if (at >= end) break;
        if (bytes[at] !== Char.Colon || at === lineStart) {
          if (at !== lineStart || bytes[at] !== Char.Cr) {
            return -(bytes[at] === Char.Lf || bytes[at] === Char.Cr ? H1Error.LineEnd : H1Error.FieldName);
          }
          if (at + 1 >= end) break;
          return bytes[at + 1] === Char.Lf ? at + 2 : -H1Error.LineEnd;
        }
        nameEnd = at++;
      }
      at = textEnd(bytes, view, at, end);
      if (at + 1 >= end) {
        if (at < end && bytes[at] !== Char.Cr) return -valueError(bytes[at]!);
        break;
      }
      if (bytes[at] !== Char.Cr) return -valueError(bytes[at]!);
      if (bytes[at + 1] !== Char.Lf) return -H1Error.LineEnd;
      if (head.size >= maxHeaders) return -H1Error.TooManyFields;

      // The CR behind the value and the colon before it stop these loops.
      let valueStart = nameEnd + 1;
      while (bytes[valueStart] === Char.Space || bytes[valueStart] === Char.Tab) valueStart++;
      let valueEnd = at;
      while (valueEnd > valueStart && (bytes[valueEnd - 1] === Char.Space || bytes[valueEnd - 1] === Char.Tab)) {
        valueEnd--;
      }
      if (id === UNREAD) id = headerIdOf(bytes, view, lineStart, nameEnd);
      head.addField(id, lineStart, nameEnd, valueStart, valueEnd, at + 2);
      if (isSecret(id)) this.#settledFields++;
      if (isConnectionHeader(id) && this.#kind !== HeadKind.Trailers) {
        const error = this.#connectionField(head, head.size - 1);
        if (error !== 0) return -error;
      }
      at += 2;
      lineStart = at;
      nameEnd = 0;
    }
    this.#lineStart = lineStart;
    this.#nameEnd = nameEnd;
    return this.#waitAt(at);
  }

  #waitAt(at: number): number {
    this.#scan = at;
    return INCOMPLETE;
  }

  /** Notes what a field, one of ConnectionHeader, says about framing and the connection. Returns an H1Error or 0. */
  #connectionField(head: HeaderBlock, index: number): number {
    const start = head.valueStart(index);
    const end = head.valueEnd(index);
    switch (head.id(index) as ConnectionHeader) {
      case ConnectionHeader.Host:
        if (this.#hostIndex >= 0 && this.#kind === HeadKind.Request) return H1Error.HostRepeated;
        this.#hostIndex = index;
        return 0;
      case ConnectionHeader.Connection:
        this.#connectionList(head, start, end);
        return this.#kind === HeadKind.Request && this.#connectionNames >= TOO_MANY_NAMES ? H1Error.Connection : 0;
      case ConnectionHeader.ContentLength:
        // A repeated length is refused even when it says the same: others in the chain may pick another one.
        if (this.#contentLength >= 0) return H1Error.ContentLength;
        this.#contentLength = parseContentLength(this.#bytes, start, end);
        if (this.#contentLength < 0) return H1Error.ContentLength;
        this.#isOddLength = !isPlainLength(this.#bytes, head, index);
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
        if (equalsFolded(this.#bytes, start, end, CONTINUE)) head.expectContinue = true;
        return 0;
      default:
        return 0;
    }
  }

  #connectionList(head: HeaderBlock, start: number, end: number): void {
    const bytes = this.#bytes;
    // What nearly everybody writes; it is the name of a field too, so that it has a number.
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
      else head.nominates = true;
    }
  }

  /** Whether the connection ends with this message (RFC 9112 section 9.3). */
  #isLast(head: HeaderBlock): boolean {
    if ((this.#connectionTokens & Token.Close) !== 0) return true;
    return head.minorVersion === 0 && (this.#connectionTokens & Token.KeepAlive) === 0;
  }

  #finishRequest(head: HeaderBlock, limits: HeadLimits): number {
    if (this.#hostIndex < 0) {
      if (head.minorVersion === 1) return H1Error.HostMissing;
    } else {
      const start = head.valueStart(this.#hostIndex);
      const end = head.valueEnd(this.#hostIndex);
      if (end > start && !isAuthority(this.#bytes, start, end, Port.Optional)) return H1Error.HostInvalid;
    }
    head.close = this.#isLast(head);
    if (head.minorVersion === 0) head.expectContinue = false;
    const error = this.#requestBody(head);
    if (error !== 0) return error;
    if (this.#bytes[head.pathStart] === Char.Slash && head.method !== Method.Connect) return 0;
    const target = readTarget(head, this.#hostIndex);
    this.usedScratch = target === Target.Http || target === Target.Https;
    if (target === Target.Invalid) return H1Error.Target;
    return target === Target.Https && limits.refusesHttpsTargets === true ? H1Error.HttpsTarget : 0;
  }

  #requestBody(head: HeaderBlock): number {
    const isUpgrade = this.#upgradeField && (this.#connectionTokens & Token.Upgrade) !== 0 && head.minorVersion === 1;
    if (this.#chunked) {
      if (head.minorVersion === 0 || head.method === Method.Connect) return H1Error.CodingNotAllowed;
      if (this.#contentLength >= 0) return H1Error.LengthAndCoding;
      head.bodyKind = BodyKind.Chunked;
    } else if (this.#contentLength >= 0) {
      if (head.method === Method.Connect && this.#contentLength > 0) return H1Error.ContentLengthNotAllowed;
      head.bodyKind = BodyKind.Length;
      head.contentLength = this.#contentLength;
    }
    // Chunks would have to be ended for the host, who may take them for the tunnel's bytes: such an upgrade is ignored.
    head.upgrade = isUpgrade && !this.#chunked && head.method !== Method.Connect;
    return 0;
  }

  /** Peers that stumble over tabs, or read 010 as 8, would find another end of the body. */
  #rewriteLength(head: HeaderBlock): void {
    head.set(CONTENT_LENGTH, String(this.#contentLength));
    this.usedScratch = true;
  }

  #finishResponse(head: HeaderBlock): number {
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
}

/** Whether what stands behind a Content-Length is ": 12": one space, no zeros first. */
function isPlainLength(bytes: Uint8Array, head: HeaderBlock, index: number): boolean {
  const start = head.valueStart(index);
  const end = head.valueEnd(index);
  return (
    start - head.nameEnd(index) === 2 &&
    bytes[start - 1] === Char.Space &&
    head.lineEnd(index) - end === 2 &&
    (bytes[start] !== Char.Zero || end - start === 1)
  );
}

/** The byte that ended a value too early. */
function valueError(byte: number): H1Error {
  return byte === Char.Lf ? H1Error.LineEnd : H1Error.FieldValue;
}

const CONTENT_LENGTH = headerKey('content-length');
const encoder = new TextEncoder();
const VERSION_PREFIX = encoder.encode('HTTP/');
/** The two words of "HTTP/1.1". */
const HTTP = 0x50545448;
const SLASH_1_1 = 0x312e312f;
const CHUNKED = encoder.encode('chunked');
const KEEP_ALIVE = encoder.encode('keep-alive');
const CLOSE = encoder.encode('close');
const UPGRADE = encoder.encode('upgrade');
const CONTINUE = encoder.encode('100-continue');
const H2C = encoder.encode('h2c');
