// Text with operators in it, as a stream's values complete it.

import type { LogBuffer } from '../log-buffer.js';
import { HeaderOperator } from '../operators/header-operator.js';
import { Literal, NumberOperator, type Operator, TextOperator } from '../operators/operator.js';
import type { StreamInfo } from '../stream/stream-info.js';

/**
 * Literal text, and the operator behind it in the field of its class: called at a place of their own, the classes that lines mostly
 * consist of become a part of their caller.
 */
interface Step {
  readonly literal: Literal | undefined;
  readonly header: HeaderOperator | undefined;
  readonly number: NumberOperator | undefined;
  readonly text: TextOperator | undefined;
  readonly other: Operator | undefined;
}

export class TextTemplate {
  readonly #steps: readonly Step[];
  readonly #omitsEmptyValues: boolean;

  /** `omitsEmptyValues`: nothing is written for a value that is missing, and not `-`. */
  constructor(operators: readonly Operator[], omitsEmptyValues: boolean) {
    this.#steps = stepsOf(operators);
    this.#omitsEmptyValues = omitsEmptyValues;
  }

  write(info: StreamInfo, out: LogBuffer): void {
    const steps = this.#steps;
    for (let i = 0; i < steps.length; i++) {
      const { literal, header, number, text, other } = steps[i]!;
      literal?.write(info, out);
      let hasValue = true;
      if (header !== undefined) hasValue = header.write(info, out);
      else if (number !== undefined) hasValue = number.write(info, out);
      else if (text !== undefined) hasValue = text.write(info, out);
      else if (other !== undefined) hasValue = other.write(info, out);
      if (!hasValue && !this.#omitsEmptyValues) out.byte(DASH);
    }
  }
}

function stepsOf(operators: readonly Operator[]): Step[] {
  const steps: Step[] = [];
  let literal: Literal | undefined;
  for (const operator of operators) {
    if (operator instanceof Literal && literal === undefined) {
      literal = operator;
      continue;
    }
    steps.push(stepOf(literal, operator));
    literal = undefined;
  }
  if (literal !== undefined) steps.push(stepOf(literal, undefined));
  return steps;
}

function stepOf(literal: Literal | undefined, operator: Operator | undefined): Step {
  const header = operator instanceof HeaderOperator ? operator : undefined;
  const number = operator instanceof NumberOperator ? operator : undefined;
  const text = operator instanceof TextOperator ? operator : undefined;
  return { literal, header, number, text, other: (header ?? number ?? text) ? undefined : operator };
}

const DASH = 45;
