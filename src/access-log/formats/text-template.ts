// A compiled text with operators.

import type { LogBuffer } from '../log-buffer.js';
import { InlinedOperator } from '../operators/inlined-operator.js';
import { Literal, type Operator } from '../operators/operator.js';
import type { StreamInfo } from '../stream/stream-info.js';

/** A constant text and the operator after it. */
interface Step {
  readonly literal: Literal | undefined;
  readonly operator: InlinedOperator | undefined;
}

export class TextTemplate {
  readonly #steps: readonly Step[];
  readonly #omitsEmptyValues: boolean;

  /** `omitsEmptyValues`: writes nothing instead of `-` for a missing value. */
  constructor(operators: readonly Operator[], omitsEmptyValues: boolean) {
    this.#steps = stepsOf(operators);
    this.#omitsEmptyValues = omitsEmptyValues;
  }

  write(info: StreamInfo, out: LogBuffer): void {
    const steps = this.#steps;
    for (let i = 0; i < steps.length; i++) {
      const { literal, operator } = steps[i]!;
      literal?.write(info, out);
      if (operator?.write(info, out) === false && !this.#omitsEmptyValues) out.byte(DASH);
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
    steps.push({ literal, operator: new InlinedOperator(operator) });
    literal = undefined;
  }
  if (literal !== undefined) steps.push({ literal, operator: undefined });
  return steps;
}

const DASH = 45;
