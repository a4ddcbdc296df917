// Builds a header block from decoded fields, by the rules of RFC 9113, sections 8.1 to 8.3, as strict as Envoy (nghttp2) enforces them.

import { ConnectionHeader, headerKey, knownHeader } from '../../common/text/header-names.js';
import type { Memory } from '../../io/memory.js';
import type { Http2Options } from '../codec/options.js';
import { Char, spanEnd, TOKEN } from '../h1/head/characters.js';
import { methodOf } from '../h1/head/method.js';
import { BodyKind, type HeaderBlock, Method } from '../headers/header-block.js';
import { beginLine, endLine } from '../headers/header-line.js';
import { isRequestAuthority, isRequestPath, isRequestScheme } from './characters.js';
import type { FieldSink } from './hpack/decoder.js';
import { FieldKind } from './hpack/static-table.js';

export const enum Section {
  Request = 0,
  Response = 1,
  Trailers = 2,
}

/** What is wrong with a header section. */
export const enum SectionError {
  None = 0,
  /** A field that is not allowed, or a value that its name does not allow. */
  InvalidField = 1,
  /** A pseudo-header is missing, or fields contradict each other. */
  InvalidMessage = 2,
  TooLarge = 3,
  TooManyFields = 4,
}

const COOKIE = knownHeader('cookie');
/** Names of fields that belong to a connection of HTTP/1 (section 8.2.2). */
const CONNECTION_FIELDS =
  (1 << ConnectionHeader.Connection) |
  (1 << ConnectionHeader.KeepAlive) |
  (1 << ConnectionHeader.ProxyConnection) |
  (1 << ConnectionHeader.TransferEncoding) |
  (1 << ConnectionHeader.Upgrade);

/** Values up to this length are exact numbers. */
const MAX_LENGTH_DIGITS = 15;

export class HeadBuilder implements FieldSink {
  /** Set by finish(). */
  error = SectionError.None;
  /** The section is invalid or too large: the rest is only decoded. */
  isFull = false;
  readonly #memory: Memory;
  #head!: HeaderBlock;
  #section = Section.Request;
  #maxBytes = 0;
  #maxFields = 0;
  #bytes = 0;
  #fields = 0;
  #cookies = 0;
  /** Bits of the FieldKind of pseudo-headers that have occurred, from FieldKind.Authority on. */
  #pseudo = 0;
  /** An ordinary field has occurred. */
  #hasFields = false;
  #isPathAsterisk = false;
  #allowsProtocol = false;
  /** The value of :protocol. */
  #protocolStart = 0;
  #protocolEnd = 0;

  constructor(memory: Memory) {
    this.#memory = memory;
  }

  /** Starts a section whose fields are added to `head`. */
  begin(head: HeaderBlock, section: Section, limits: HeadLimits): void {
    this.error = SectionError.None;
    this.isFull = false;
    this.#head = head;
    this.#section = section;
    this.#maxBytes = limits.maxHeadBytes;
    this.#maxFields = limits.maxHeaders;
    this.#allowsProtocol = limits.allowsConnectProtocol;
    this.#bytes = this.#fields = this.#cookies = this.#pseudo = 0;
    this.#hasFields = this.#isPathAsterisk = false;
  }

  field(kind: number, nameStart: number, nameEnd: number, valueStart: number, valueEnd: number): void {
    if (this.isFull) return;
    this.#bytes += nameEnd - nameStart + valueEnd - valueStart;
    if (this.#bytes > this.#maxBytes) return this.#fail(SectionError.TooLarge);
    if (++this.#fields > this.#maxFields) return this.#fail(SectionError.TooManyFields);
    if (kind > FieldKind.Mask) return this.#fail(SectionError.InvalidField);
    if (kind >= FieldKind.Authority) return this.#addPseudo(kind, nameStart, nameEnd, valueStart, valueEnd);
    this.#hasFields = true;
    const lineEnd = valueEnd + 2;
    const { bytes } = this.#memory;
    while (valueEnd > valueStart && isBlank(bytes[valueEnd - 1]!)) valueEnd--;
    while (valueStart < valueEnd && isBlank(bytes[valueStart]!)) valueStart++;
    // Only the first names need a check.
    if (kind <= ConnectionHeader.Expect && kind > 0 && !this.#takes(kind, valueStart, valueEnd)) return;
    if (kind === COOKIE) this.#cookies++;
    this.#head.addField(kind, nameStart, nameEnd, valueStart, valueEnd, lineEnd);
  }

  /** Checks the whole section, and completes the head. */
  finish(): void {
    if (this.error !== SectionError.None) return;
    const head = this.#head;
    switch (this.#section) {
      case Section.Request:
        if (!this.#isCompleteRequest()) return this.#fail(SectionError.InvalidMessage);
        break;
      case Section.Response:
        if (head.status === 0) return this.#fail(SectionError.InvalidMessage);
        break;
    }
    if (this.#cookies > 1 && this.#section === Section.Request) joinCookies(head);
  }

  #fail(error: SectionError): void {
    this.error = error;
    this.isFull = true;
  }

  /** Returns whether a field with the ID of a ConnectionHeader is part of the head. */
  #takes(id: number, valueStart: number, valueEnd: number): boolean {
    const head = this.#head;
    if (((CONNECTION_FIELDS >>> id) & 1) === 1) {
      this.#fail(SectionError.InvalidField);
      return false;
    }
    switch (id) {
      case ConnectionHeader.Host:
        return this.#takesHost(valueStart, valueEnd);
      case ConnectionHeader.Te:
        if (this.#section !== Section.Request || isTrailers(this.#memory.bytes, valueStart, valueEnd)) return true;
        this.#fail(SectionError.InvalidField);
        return false;
      case ConnectionHeader.ContentLength: {
        if (this.#section === Section.Trailers) return false;
        const length = lengthOf(this.#memory.bytes, valueStart, valueEnd);
        if (length >= 0 && head.bodyKind === BodyKind.None) {
          head.bodyKind = BodyKind.Length;
          head.contentLength = length;
          return true;
        }
        this.#fail(SectionError.InvalidField);
        return false;
      }
      case ConnectionHeader.Expect:
        if (this.#section === Section.Request && isContinue(this.#memory.bytes, valueStart, valueEnd))
          head.expectContinue = true;
        return true;
      default:
        return true;
    }
  }

  /** An :authority takes the place of Host, also if they differ (RFC 9113, section 8.3.1). */
  #takesHost(valueStart: number, valueEnd: number): boolean {
    if (this.#section !== Section.Request) return this.#section === Section.Response;
    const head = this.#head;
    const isRepeated = head.mayHave(ConnectionHeader.Host);
    if (isRepeated && (this.#pseudo & bit(FieldKind.Authority)) !== 0) return false;
    if (!isRepeated && isRequestAuthority(this.#memory.bytes, valueStart, valueEnd)) return true;
    this.#fail(SectionError.InvalidField);
    return false;
  }

  #addPseudo(kind: number, nameStart: number, nameEnd: number, valueStart: number, valueEnd: number): void {
    const isLate = this.#hasFields || (this.#pseudo & bit(kind)) !== 0;
    if (isLate) return this.#fail(SectionError.InvalidField);
    this.#pseudo |= bit(kind);
    const isRightSection = kind === FieldKind.Status ? Section.Response : Section.Request;
    if (this.#section !== isRightSection) return this.#fail(SectionError.InvalidField);
    const head = this.#head;
    const { bytes } = this.#memory;
    switch (kind) {
      case FieldKind.Authority:
        if (!isRequestAuthority(bytes, valueStart, valueEnd)) break;
        head.addField(ConnectionHeader.Host, nameStart, nameEnd, valueStart, valueEnd, valueEnd + 2);
        return;
      case FieldKind.Method:
        head.methodStart = valueStart;
        head.methodEnd = valueEnd;
        if (valueEnd === valueStart || !isToken(bytes, valueStart, valueEnd)) break;
        head.method = Math.max(Method.Other, methodOf(bytes, valueStart, valueEnd));
        return;
      case FieldKind.Path:
        if (!isRequestPath(bytes, valueStart, valueEnd)) break;
        head.pathStart = valueStart;
        head.pathEnd = valueEnd;
        this.#isPathAsterisk = valueEnd - valueStart === 1 && bytes[valueStart] === Char.Asterisk;
        return;
      case FieldKind.Scheme:
        if (!isRequestScheme(bytes, valueStart, valueEnd)) break;
        return;
      case FieldKind.Protocol:
        if (!this.#allowsProtocol || valueEnd === valueStart || !isToken(bytes, valueStart, valueEnd)) break;
        this.#protocolStart = valueStart;
        this.#protocolEnd = valueEnd;
        return;
      case FieldKind.Status: {
        const status = valueEnd - valueStart === 3 ? lengthOf(bytes, valueStart, valueEnd) : -1;
        if (status < 100) break;
        head.status = status;
        return;
      }
    }
    this.#fail(SectionError.InvalidField);
  }

  /** Section 8.3.1, and section 8.5 for CONNECT, whose target becomes the path as in HTTP/1. */
  #isCompleteRequest(): boolean {
    const head = this.#head;
    const has = this.#pseudo;
    if ((has & bit(FieldKind.Method)) === 0) return false;
    const isExtended = (has & bit(FieldKind.Protocol)) !== 0;
    if (isExtended && head.method !== Method.Connect) return false;
    if (head.method === Method.Connect) {
      // Its body is a tunnel.
      if (head.bodyKind !== BodyKind.None) return false;
      if (isExtended) return this.#becomeUpgrade();
      if ((has & (bit(FieldKind.Path) | bit(FieldKind.Scheme))) !== 0 || (has & bit(FieldKind.Authority)) === 0)
        return false;
      const host = head.findId(ConnectionHeader.Host);
      head.pathStart = head.valueStart(host);
      head.pathEnd = head.valueEnd(host);
      return true;
    }
    return this.#hasTarget();
  }

  #hasTarget(): boolean {
    const head = this.#head;
    const required = bit(FieldKind.Path) | bit(FieldKind.Scheme);
    if ((this.#pseudo & required) !== required || !head.mayHave(ConnectionHeader.Host)) return false;
    if (this.#memory.bytes[head.pathStart] === Char.Slash) return true;
    return this.#isPathAsterisk && head.method === Method.Options;
  }

  /** An extended CONNECT (RFC 8441) becomes the upgrade that HTTP/1.1 would have, as in Envoy. */
  #becomeUpgrade(): boolean {
    if (!this.#hasTarget()) return false;
    const head = this.#head;
    head.upgrade = true;
    head.setMethod(Method.Get, 'GET');
    const length = this.#protocolEnd - this.#protocolStart;
    const at = beginLine(head, UPGRADE_KEY, length);
    head.memory.copy(at, this.#protocolStart, this.#protocolEnd);
    endLine(head, UPGRADE_KEY, at, at + length);
    head.add(CONNECTION_KEY, 'upgrade');
    return true;
  }
}

/** The options that limit a section. */
export type HeadLimits = Pick<Http2Options, 'maxHeadBytes' | 'maxHeaders' | 'allowsConnectProtocol'>;

function bit(kind: number): number {
  return 1 << (kind - FieldKind.Authority);
}

function isBlank(byte: number): boolean {
  return byte === Char.Space || byte === Char.Tab;
}

/** Returns the value of 1 to 15 digits, or -1. */
function lengthOf(bytes: Uint8Array, start: number, end: number): number {
  if (end === start || end - start > MAX_LENGTH_DIGITS) return -1;
  let value = 0;
  for (let at = start; at < end; at++) {
    const digit = bytes[at]! - Char.Zero;
    if (digit < 0 || digit > 9) return -1;
    value = value * 10 + digit;
  }
  return value;
}

function isTrailers(bytes: Uint8Array, start: number, end: number): boolean {
  return isText(bytes, start, end, 'trailers');
}

function isContinue(bytes: Uint8Array, start: number, end: number): boolean {
  return isText(bytes, start, end, '100-continue');
}

/** Returns whether bytes[start, end) is `text`, whose letters are in lower case, ignoring case. */
function isText(bytes: Uint8Array, start: number, end: number, text: string): boolean {
  if (end - start !== text.length) return false;
  for (let i = 0; i < text.length; i++) {
    const byte = bytes[start + i]!;
    if ((byte >= 65 && byte <= 90 ? byte | 32 : byte) !== text.charCodeAt(i)) return false;
  }
  return true;
}

function isToken(bytes: Uint8Array, start: number, end: number): boolean {
  return spanEnd(TOKEN, bytes, start, end) === end;
}

/** Joins the crumbs of cookies (RFC 9113, section 8.2.3): other versions have one field. */
function joinCookies(head: HeaderBlock): void {
  const { memory } = head;
  let length = 0;
  for (let i = head.findId(COOKIE); i >= 0; i = head.findId(COOKIE, i + 1))
    length += head.valueEnd(i) - head.valueStart(i) + SEPARATOR.length;
  let at = beginLine(head, COOKIE_KEY, length);
  const start = at;
  for (let i = head.findId(COOKIE); i >= 0; i = head.findId(COOKIE, i + 1)) {
    if (at > start) for (const byte of SEPARATOR) memory.bytes[at++] = byte;
    memory.copy(at, head.valueStart(i), head.valueEnd(i));
    at += head.valueEnd(i) - head.valueStart(i);
  }
  head.removeId(COOKIE);
  endLine(head, COOKIE_KEY, start, at);
}

const COOKIE_KEY = headerKey('cookie');
const UPGRADE_KEY = headerKey('upgrade');
const CONNECTION_KEY = headerKey('connection');
const SEPARATOR = new TextEncoder().encode('; ');
