// %LOCAL_REPLY_BODY%: the text of an answer that Baton gives itself. Only formats of such answers have it.

import type { LogBuffer } from '../log-buffer.js';
import type { Operator } from './operator.js';

/** Where the operator finds the text, one character a byte if it is a string of ASCII: whoever writes the format sets it before. */
export interface ReplyBody {
  text: string | Uint8Array;
}

export class ReplyBodyOperator implements Operator {
  readonly isNumber = false;
  readonly #body: ReplyBody;

  constructor(body: ReplyBody) {
    this.#body = body;
  }

  /** An empty text is one, and not missing. */
  write(_info: unknown, out: LogBuffer): boolean {
    const { text } = this.#body;
    if (typeof text === 'string') out.text(text);
    else out.append(text);
    return true;
  }
}
