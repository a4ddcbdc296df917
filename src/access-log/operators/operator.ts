// The interface of format operators, each of which appends one value of a stream to a log buffer, and the simplest operators.

import { viewOf } from '../../common/copy-bytes.js';
import { escapeJson } from '../formats/json-escape.js';
import type { LogBuffer } from '../log-buffer.js';
import type { StreamInfo } from '../stream/stream-info.js';

export interface Operator {
  /** JSON logs write the value as a number. */
  readonly isNumber: boolean;
  /** The value may hold any characters, such as line ends. */
  readonly isFreeText?: boolean;
  /** Appends the value. Returns false, with nothing appended, if there is none. */
  write(info: StreamInfo, out: LogBuffer): boolean;
  /** Like write(), but appends JSON. Absent: what write() appends is a number or the content of a string. */
  writeJson?(info: StreamInfo, out: LogBuffer): boolean;
}

/** Appends the value of an operator as JSON; `maxBytes` truncates strings. Returns false, with nothing appended, if there is none. */
export function writeJsonValue(operator: Operator, info: StreamInfo, out: LogBuffer, maxBytes?: number): boolean {
  if (operator.writeJson !== undefined) return operator.writeJson(info, out);
  if (operator.isNumber) return operator.write(info, out);
  const mark = out.length;
  out.byte(QUOTE);
  const start = out.length;
  if (!operator.write(info, out)) {
    out.length = mark;
    return false;
  }
  if (maxBytes !== undefined && out.length - start > maxBytes) out.length = start + maxBytes;
  escapeJson(out, start);
  out.byte(QUOTE);
  return true;
}

const QUOTE = 34;

/** The header names that a format reads, in lower case. Heads without readers need not be kept. */
export interface HeaderNeeds {
  readonly request: Set<string>;
  readonly response: Set<string>;
  readonly trailers: Set<string>;
  /** The bytes of the stream on the wire are read: they must be counted. */
  wireBytes?: boolean;
}

/** Returns an empty set of needs. */
export function noHeaderNeeds(): HeaderNeeds {
  return { request: new Set(), response: new Set(), trailers: new Set() };
}

/** Adds `more` to `needs`. */
export function addNeedsTo(needs: HeaderNeeds, more: HeaderNeeds): void {
  for (const head of ['request', 'response', 'trailers'] as const) for (const name of more[head]) needs[head].add(name);
  if (more.wireBytes === true) needs.wireBytes = true;
}

/** A constant text. */
export class Literal implements Operator {
  readonly isNumber = false;
  readonly #bytes: DataView;

  constructor(text: string) {
    this.#bytes = viewOf(new TextEncoder().encode(text));
  }

  write(_info: StreamInfo, out: LogBuffer): boolean {
    out.range(this.#bytes, 0, this.#bytes.byteLength);
    return true;
  }
}

/** A text of the stream; an empty one counts as missing. */
export class TextOperator implements Operator {
  readonly isNumber = false;
  readonly #get: (info: StreamInfo) => string;

  constructor(get: (info: StreamInfo) => string) {
    this.#get = get;
  }

  write(info: StreamInfo, out: LogBuffer): boolean {
    const text = this.#get(info);
    if (text === '') return false;
    out.text(text);
    return true;
  }
}

/** A number of the stream; a negative one counts as missing, fractions are truncated. */
export class NumberOperator implements Operator {
  readonly isNumber = true;
  readonly #get: (info: StreamInfo) => number;

  constructor(get: (info: StreamInfo) => number) {
    this.#get = get;
  }

  write(info: StreamInfo, out: LogBuffer): boolean {
    const value = this.#get(info);
    if (value < 0) return false;
    out.number(Math.floor(value));
    return true;
  }
}
