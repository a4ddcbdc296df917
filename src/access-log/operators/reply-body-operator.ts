// %LOCAL_REPLY_BODY%: the text of a local reply in formats of local replies, nothing in others.

import type { LogBuffer } from '../log-buffer.js';
import type { Operator } from './operator.js';

/** The text for the operator, one character per byte if it is a string of ASCII. Set before the format is written. */
export interface ReplyBody {
  text: string | Uint8Array;
}

export class ReplyBodyOperator implements Operator {
  readonly isNumber = false;
  readonly #body: ReplyBody;

  constructor(body: ReplyBody) {
    this.#body = body;
  }

  /** An empty text counts as a value. */
  write(_info: unknown, out: LogBuffer): boolean {
    const { text } = this.#body;
    if (typeof text === 'string') out.text(text);
    else out.append(text);
    return true;
  }
}
