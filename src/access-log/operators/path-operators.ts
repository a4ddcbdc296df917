// %PATH(X:Y):Z%, %QUERY_PARAM(X):Z% and %QUERY_PARAMS(X):Z%: the request's path and its query.

import { headerKey } from '../../common/text/header-names.js';
import type { LogBuffer } from '../log-buffer.js';
import type { HeaderView } from '../stream/header-view.js';
import type { StreamInfo } from '../stream/stream-info.js';
import { operatorError } from './format-error.js';
import type { HeaderNeeds, Operator } from './operator.js';

const ORIGINAL_PATH = headerKey('x-envoy-original-path');

type PathSource = 'ORIG' | 'PATH' | 'ORIG_OR_PATH';

/** Creates %PATH(WQ|NQ:ORIG|PATH|ORIG_OR_PATH)%. Throws a BatonError for other options. */
export function pathOperator(parameter: string, maxBytes: number | undefined, needs: HeaderNeeds): Operator {
  const [query = '', source = ''] = parameter.split(':');
  if (!['', 'WQ', 'NQ'].includes(query)) throw operatorError(`operator %PATH% takes WQ or NQ, not '${query}'`);
  if (!['', 'ORIG', 'PATH', 'ORIG_OR_PATH'].includes(source))
    throw operatorError(`operator %PATH% takes ORIG, PATH or ORIG_OR_PATH, not '${source}'`);
  needs.request.add(':path').add(ORIGINAL_PATH.name);
  return new PathOperator((source || 'ORIG_OR_PATH') as PathSource, query === 'NQ', maxBytes);
}

export function queryParamOperator(name: string, maxBytes: number | undefined, needs: HeaderNeeds): Operator {
  needs.request.add(':path').add(ORIGINAL_PATH.name);
  return new QueryParamOperator(name, maxBytes);
}

/** Creates %QUERY_PARAMS(ORIG|DECODED)%. Throws a BatonError for another option. */
export function queryParamsOperator(option: string, maxBytes: number | undefined, needs: HeaderNeeds): Operator {
  if (!['', 'ORIG', 'DECODED'].includes(option))
    throw operatorError(`operator %QUERY_PARAMS% takes ORIG or DECODED, not '${option}'`);
  needs.request.add(':path').add(ORIGINAL_PATH.name);
  return new QueryParamsOperator(option === 'DECODED', maxBytes);
}

/** A place in a head. Reused. */
const range = { start: 0, end: 0 };

/** Sets `range` to the path. Returns whether there is one. */
function findPath(view: HeaderView, source: PathSource): boolean {
  if (source !== 'PATH') {
    const index = view.find(ORIGINAL_PATH);
    if (index >= 0) {
      range.start = view.valueStart(index);
      range.end = view.valueEnd(index);
      return true;
    }
    if (source === 'ORIG') return false;
  }
  range.start = view.pathStart;
  range.end = view.pathEnd;
  return view.pathEnd > view.pathStart;
}

/** Returns the offset of the query's mark in `range`, or its end. */
function queryMark(bytes: Uint8Array): number {
  for (let at = range.start; at < range.end; at++) if (bytes[at] === QUESTION_MARK) return at;
  return range.end;
}

class PathOperator implements Operator {
  readonly isNumber = false;
  readonly #source: PathSource;
  readonly #withoutQuery: boolean;
  readonly #maxBytes: number;

  constructor(source: PathSource, withoutQuery: boolean, maxBytes = Number.MAX_SAFE_INTEGER) {
    this.#source = source;
    this.#withoutQuery = withoutQuery;
    this.#maxBytes = maxBytes;
  }

  write(info: StreamInfo, out: LogBuffer): boolean {
    const view = info.requestHeaders;
    if (view === undefined || !findPath(view, this.#source)) return false;
    const end = this.#withoutQuery ? queryMark(view.memory.bytes) : range.end;
    out.range(view.memory.view, range.start, Math.min(end, range.start + this.#maxBytes));
    return true;
  }
}

class QueryParamsOperator implements Operator {
  readonly isNumber = false;
  readonly #isDecoded: boolean;
  readonly #maxBytes: number;

  constructor(isDecoded: boolean, maxBytes = Number.MAX_SAFE_INTEGER) {
    this.#isDecoded = isDecoded;
    this.#maxBytes = maxBytes;
  }

  write(info: StreamInfo, out: LogBuffer): boolean {
    const view = info.requestHeaders;
    if (view === undefined || !findPath(view, 'ORIG_OR_PATH')) return false;
    const { bytes } = view.memory;
    const mark = queryMark(bytes);
    if (mark === range.end) return false;
    const start = out.length;
    if (this.#isDecoded) writeDecoded(bytes, mark + 1, range.end, isGraphic, out);
    else out.range(view.memory.view, mark + 1, range.end);
    if (out.length - start > this.#maxBytes) out.length = start + this.#maxBytes;
    return true;
  }
}

/** The first parameter of a name. Name and value are decoded, except that control characters stay as %XX: they would break the line. */
class QueryParamOperator implements Operator {
  readonly isNumber = false;
  readonly #name: Uint8Array;
  readonly #maxBytes: number;

  constructor(name: string, maxBytes = Number.MAX_SAFE_INTEGER) {
    this.#name = new TextEncoder().encode(name);
    this.#maxBytes = maxBytes;
  }

  write(info: StreamInfo, out: LogBuffer): boolean {
    const view = info.requestHeaders;
    if (view === undefined || !findPath(view, 'ORIG_OR_PATH')) return false;
    const { bytes } = view.memory;
    const start = out.length;
    for (let at = queryMark(bytes) + 1; at < range.end; ) {
      const end = indexOf(bytes, AMPERSAND, at, range.end);
      const equals = indexOf(bytes, EQUALS, at, end);
      if (this.#isName(bytes, at, equals, out)) {
        if (equals < end) writeDecoded(bytes, equals + 1, end, isNoControl, out);
        if (out.length - start > this.#maxBytes) out.length = start + this.#maxBytes;
        return true;
      }
      at = end + 1;
    }
    return false;
  }

  #isName(bytes: Uint8Array, start: number, end: number, out: LogBuffer): boolean {
    if (end === start) return false;
    const mark = out.length;
    writeDecoded(bytes, start, end, isNoControl, out);
    const name = this.#name;
    let isEqual = out.length - mark === name.length;
    for (let i = 0; isEqual && i < name.length; i++) isEqual = out.bytes[mark + i] === name[i];
    out.length = mark;
    return isEqual;
  }
}

/** Appends [start, end) with those %XX decoded whose byte is `isDecoded`. */
function writeDecoded(
  bytes: Uint8Array,
  start: number,
  end: number,
  isDecoded: (byte: number) => boolean,
  out: LogBuffer,
): void {
  for (let at = start; at < end; at++) {
    const byte = bytes[at]!;
    if (byte === PERCENT && at + 2 < end) {
      const value = hex(bytes[at + 1]!) * 16 + hex(bytes[at + 2]!);
      if (value >= 0 && isDecoded(value)) {
        out.byte(value);
        at += 2;
        continue;
      }
    }
    out.byte(byte);
  }
}

/** Returns the value of a hexadecimal digit, or a large negative number. */
function hex(byte: number): number {
  if (byte >= 48 && byte <= 57) return byte - 48;
  const letter = byte | 0x20;
  return letter >= 97 && letter <= 102 ? letter - 87 : -1000;
}

function indexOf(bytes: Uint8Array, byte: number, start: number, end: number): number {
  for (let at = start; at < end; at++) if (bytes[at] === byte) return at;
  return end;
}

/** As in Envoy, %QUERY_PARAMS(DECODED)% decodes visible ASCII characters that a URL may contain. */
function isGraphic(byte: number): boolean {
  return byte > 0x20 && byte < 0x7f && !NEVER_IN_URL.has(byte);
}

const NEVER_IN_URL = new Set(Buffer.from('"<>\\^{|}'));

function isNoControl(byte: number): boolean {
  return byte >= 0x20 && byte !== 0x7f;
}

const QUESTION_MARK = 63;
const PERCENT = 37;
const AMPERSAND = 38;
const EQUALS = 61;
