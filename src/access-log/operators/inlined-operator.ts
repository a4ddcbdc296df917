// Dispatches to an operator through a field of its class. These call sites stay monomorphic, so that V8 inlines the most frequent
// operators regardless of which other operators the process uses.

import type { LogBuffer } from '../log-buffer.js';
import type { StreamInfo } from '../stream/stream-info.js';
import { HeaderOperator } from './header-operator.js';
import { NumberOperator, type Operator, TextOperator, writeJsonValue } from './operator.js';

export class InlinedOperator implements Operator {
  readonly isNumber: boolean;
  readonly #header: HeaderOperator | undefined;
  readonly #number: NumberOperator | undefined;
  readonly #text: TextOperator | undefined;
  readonly #operator: Operator;

  constructor(operator: Operator) {
    this.isNumber = operator.isNumber;
    this.#header = operator instanceof HeaderOperator ? operator : undefined;
    this.#number = operator instanceof NumberOperator ? operator : undefined;
    this.#text = operator instanceof TextOperator ? operator : undefined;
    this.#operator = operator;
  }

  write(info: StreamInfo, out: LogBuffer): boolean {
    if (this.#header !== undefined) return this.#header.write(info, out);
    if (this.#number !== undefined) return this.#number.write(info, out);
    if (this.#text !== undefined) return this.#text.write(info, out);
    return this.#operator.write(info, out);
  }

  writeJson(info: StreamInfo, out: LogBuffer): boolean {
    return writeJsonValue(this.#operator, info, out);
  }
}
