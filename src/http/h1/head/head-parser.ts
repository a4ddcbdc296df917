// Parses a request head, a response head or a trailer section in place into a HeaderBlock (RFC 9112 sections 2 to 5).
//
// It allocates nothing and reads no byte twice: for an incomplete head the parser keeps its position, and HeadReader keeps the bytes.
// Ambiguous heads are refused.

import { headerIdOf, isConnectionHeader, MAX_NAME_BYTES, OTHER_HEADER } from '../../../common/text/header-names.js';
import type { Memory } from '../../../io/memory.js';
import type { Http1Options } from '../../codec/options.js';
import { type HeaderBlock, Method } from '../../headers/header-block.js';
import { H1Error } from '../errors.js';
import { Char, colonAt, spanEnd, TARGET, TOKEN, textEnd } from './characters.js';
import { ConnectionFields } from './connection-fields.js';
import { isSecret, type KnownFields } from './known-fields.js';
import { CUSTOM, methodOf } from './method.js';
import { readTarget, Target } from './target.js';

export const enum HeadKind {
  Request = 0,
  Response = 1,
  Trailers = 2,
}

/** Result of parse() that asks for more bytes. Errors are negative; the offset after a complete head is positive. */
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

/** Header ID before the name is looked up. */
const UNREAD = -1;

/** After this many unknown lines in a row, a head is no longer compared with an earlier one. */
const MAX_UNKNOWN = 2;

/** Length of "HTTP/1.1 200". */
const STATUS_END = 12;

export class HeadParser {
  /** The complete head has bytes in scratch: an absolute target was split, or a length was rewritten. */
  usedScratch = false;

  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #known: KnownFields;
  readonly #connectionFields: ConnectionFields;

  #kind = HeadKind.Request;
  #stage = Stage.Begin;
  /** Start of the current line, and the offset up to which it was read. */
  #lineStart = 0;
  #scan = 0;
  /** End of the current field's name once its colon was read, otherwise 0. */
  #nameEnd = 0;
  #fieldsStart = 0;
  /** Fields that were copied from an earlier head, or must never be. */
  #settledFields = 0;
  /** Unknown lines since the last known one. */
  #unknownInRow = 0;
  /** The target has a fragment. The head is read to its end, because it is logged. */
  #hasFragment = false;

  constructor(memory: Memory, known: KnownFields) {
    this.#bytes = memory.bytes;
    this.#view = memory.view;
    this.#known = known;
    this.#connectionFields = new ConnectionFields(memory);
  }

  /** Starts a head at `start`. */
  begin(kind: HeadKind, start: number): void {
    this.#kind = kind;
    this.#stage = kind === HeadKind.Trailers ? Stage.Fields : Stage.Begin;
    this.#lineStart = start;
    this.#scan = start;
    this.#nameEnd = 0;
    this.#settledFields = 0;
    this.#unknownInRow = kind === HeadKind.Trailers ? MAX_UNKNOWN : 0;
    this.#connectionFields.clear();
    this.#hasFragment = false;
    this.usedScratch = false;
  }

  /**
   * Continues up to `end` and fills `head`, which was empty at begin(). Returns the offset after the head, INCOMPLETE, or a negated
   * H1Error.
   */
  parse(head: HeaderBlock, end: number, limits: Http1Options): number {
    if (this.#stage !== Stage.Fields) {
      const result =
        this.#kind === HeadKind.Request ? this.#requestLine(head, end, limits) : this.#statusLine(head, end);
      if (result !== DONE) return result;
      this.#stage = Stage.Fields;
    }
    const behind = this.#fields(head, end, limits.maxHeaders);
    if (behind <= 0) return behind;
    head.headEnd = behind;
    head.receivedFields = head.size;
    if (this.#kind === HeadKind.Trailers) return behind;
    if (this.#settledFields < head.size) this.#known.remember(head, this.#fieldsStart);
    const fields = this.#connectionFields;
    let error = 0;
    if (this.#kind === HeadKind.Request) {
      error = fields.finishRequest(head);
      if (error === 0) error = this.#target(head, limits);
      if (error === 0 && this.#hasFragment) error = H1Error.Fragment;
    } else error = fields.finishResponse(head);
    if (error !== 0) return -error;
    if (fields.rewriteOddLength(head)) this.usedScratch = true;
    return behind;
  }

  #requestLine(head: HeaderBlock, end: number, limits: Http1Options): number {
    const bytes = this.#bytes;
    let at = this.#scan;
    if (this.#stage === Stage.Begin) {
      // Empty lines before a request are ignored: old clients send one after a body (RFC 9112 section 2.2).
      while (at < end && (bytes[at] === Char.Cr || bytes[at] === Char.Lf)) {
        if (bytes[at] === Char.Cr) {
          if (at + 1 >= end) return this.#waitAt(at);
          if (bytes[++at] !== Char.Lf) return -H1Error.LineEnd;
        }
        at++;
      }
      if (at >= end) return this.#waitAt(at);
      this.#lineStart = at;
      this.#stage = Stage.Method;
    }
    if (this.#stage === Stage.Method) {
      at = spanEnd(TOKEN, bytes, at, end);
      if (at >= end) return this.#waitAt(at);
      if (bytes[at] !== Char.Space || at === this.#lineStart) return -H1Error.RequestLine;
      head.methodStart = this.#lineStart;
      head.methodEnd = at;
      const method = methodOf(bytes, this.#lineStart, at);
      if (method === CUSTOM) {
        if (limits.allowsCustomMethods !== true) return -H1Error.RequestLine;
        head.method = Method.Other;
      } else head.method = method;
      at++;
      head.pathStart = at;
      this.#stage = Stage.Target;
    }
    if (this.#stage === Stage.Target) {
      at = spanEnd(TARGET, bytes, at, end);
      while (at < end && bytes[at] === Char.Hash) {
        this.#hasFragment = true;
        at = spanEnd(TARGET, bytes, at + 1, end);
      }
      if (at >= end) return this.#waitAt(at);
      if (bytes[at] !== Char.Space || at === head.pathStart)
        return -targetError(bytes[at]!, at === head.pathStart || limits.acceptHttp10 === true);
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
    if (head.minorVersion === 0 && limits.acceptHttp10 !== true) return -H1Error.Version;
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
    // A status line without the space before an empty reason phrase is accepted, but rewritten when it is forwarded.
    if (bytes[head.startLineStart + STATUS_END] !== Char.Space) head.startLineEnd = head.startLineStart;
    return DONE;
  }

  /** Parses "HTTP/1.0" or "HTTP/1.1" at `at`. Returns the offset after it. */
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
    if (major < 0 || major > 9) return -H1Error.RequestLine;
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

  /** Copies the fields of lines that equal those of an earlier head. Returns the offset after them, or a negated H1Error. */
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
      const error = this.#connectionFields.note(head, 31 - Math.clz32(lines & -lines), this.#kind === HeadKind.Request);
      if (error !== 0) return -error;
    }
    return head.lineEnd(from + count - 1);
  }

  /** Parses field lines up to the empty line. Returns the offset after it. */
  #fields(head: HeaderBlock, end: number, maxHeaders: number): number {
    const bytes = this.#bytes;
    const view = this.#view;
    let lineStart = this.#lineStart;
    let at = this.#scan;
    let nameEnd = this.#nameEnd;
    for (;;) {
      if (at === lineStart && this.#unknownInRow < MAX_UNKNOWN) {
        at = this.#takeKnown(head, at, end, maxHeaders);
        if (at < 0) return at;
        lineStart = at;
      }
      let id = UNREAD;
      if (nameEnd === 0) {
        // A known name need not be checked byte by byte.
        if (at === lineStart) {
          let reach = at + MAX_NAME_BYTES + 4;
          if (reach > end) reach = end;
          const colon = colonAt(view, at, reach);
          if (colon < reach) id = headerIdOf(bytes, view, at, colon);
          if (id > OTHER_HEADER) at = colon;
        }
        if (id <= OTHER_HEADER) at = spanEnd(TOKEN, bytes, at, end);
        if (at >= end) break;
        if (bytes[at] !== Char.Colon || at === lineStart) {
          if (at !== lineStart || bytes[at] !== Char.Cr) {
            return -nameError(bytes[at]!);
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

      // The CR after the value and the colon before it stop these loops.
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
        const error = this.#connectionFields.note(head, head.size - 1, this.#kind === HeadKind.Request);
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

  /** Splits a target that is not just a path. Returns an H1Error or 0. */
  #target(head: HeaderBlock, limits: Http1Options): number {
    if (this.#bytes[head.pathStart] === Char.Slash && head.method !== Method.Connect) return 0;
    const target = readTarget(head, this.#connectionFields.hostIndex);
    this.usedScratch = target === Target.Http || target === Target.Https;
    if (target === Target.Invalid) return H1Error.Target;
    if (target === Target.NoUrl) return H1Error.TargetByte;
    if (target === Target.OtherScheme) return H1Error.Scheme;
    return target === Target.Https && limits.refusesHttpsTargets === true ? H1Error.HttpsTarget : 0;
  }
}

/** Returns the error for the byte that ended a target too early. */
function targetError(byte: number, isNoRequest: boolean): H1Error {
  // A request line of HTTP/0.9 has no version.
  if (byte === Char.Cr) return isNoRequest ? H1Error.RequestLine : H1Error.Version;
  if (byte === Char.Space) return H1Error.RequestLine;
  return byte < Char.Space || byte === Char.Delete ? H1Error.TargetControl : H1Error.TargetByte;
}

/** Returns the error for the byte that ended a name. */
function nameError(byte: number): H1Error {
  if (byte === Char.Lf || byte === Char.Cr) return H1Error.LineEnd;
  return byte === 0 ? H1Error.FieldValue : H1Error.FieldName;
}

/** Returns the error for the byte that ended a value too early. */
function valueError(byte: number): H1Error {
  return byte === Char.Lf ? H1Error.LineEnd : H1Error.FieldValue;
}

const VERSION_PREFIX = new TextEncoder().encode('HTTP/');
/** The two words of "HTTP/1.1". */
const HTTP = 0x50545448;
const SLASH_1_1 = 0x312e312f;
