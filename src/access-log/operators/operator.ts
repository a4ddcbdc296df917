// What every operator of a format is: something that appends one value of a stream to a log buffer.

import { viewOf } from '../../common/copy-bytes.js';
import type { LogBuffer } from '../log-buffer.js';
import type { StreamInfo } from '../stream/stream-info.js';

export interface Operator {
  /** Whether JSON logs show the value as a number. */
  readonly isNumber: boolean;
  /** Appends the value; returns false, with nothing appended, when there is none. */
  write(info: StreamInfo, out: LogBuffer): boolean;
}

/** Which header names a format reads: nobody has to keep a head that no format reads. Names are in lower case. */
export interface HeaderNeeds {
  readonly request: Set<string>;
  readonly response: Set<string>;
  readonly trailers: Set<string>;
}

/** Text that is the same in every line. */
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

/** A text field of the stream; an empty one is no value. */
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

/** A number of the stream; a negative one is no value, fractions are cut. */
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
