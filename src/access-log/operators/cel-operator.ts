// %CEL(EXPRESSION):Z% and %TYPED_CEL(EXPRESSION):Z%: the value of an expression, as text and as JSON.

import { celJson, celText } from '../../cel/output.js';
import { messageOf } from '../../common/errors/errors.js';
import type { CelExpressionConfig, Json } from '../../config/generated/api.js';
import { expressionOfText, type StreamExpression } from '../attributes/stream-expression.js';
import type { LogBuffer } from '../log-buffer.js';
import type { StreamInfo } from '../stream/stream-info.js';
import { operatorError } from './format-error.js';
import { addNeedsTo, type HeaderNeeds, type Operator } from './operator.js';

/** `isTyped`: JSON formats get a value with its type. Adds the heads that are read to `needs`. Throws a BatonError for an invalid expression. */
export function celOperator(
  call: { name: string; parameter: string; maxLength: number | undefined },
  isTyped: boolean,
  config: CelExpressionConfig | undefined,
  needs: HeaderNeeds,
): Operator {
  const expression = compiled(call, config);
  addNeedsTo(needs, expression.needs);
  return isTyped ? new TypedCelOperator(expression, call.maxLength) : new CelOperator(expression, call.maxLength);
}

function compiled({ name, parameter }: { name: string; parameter: string }, config: CelExpressionConfig | undefined) {
  try {
    return expressionOfText(parameter, config);
  } catch (error) {
    throw operatorError(`operator %${name}%: ${messageOf(error)}`);
  }
}

class CelOperator implements Operator {
  readonly isNumber = false;
  readonly isFreeText = true;
  protected readonly expression: StreamExpression;
  protected readonly maxBytes: number;

  constructor(expression: StreamExpression, maxBytes = Number.MAX_SAFE_INTEGER) {
    this.expression = expression;
    this.maxBytes = maxBytes;
  }

  /** An error counts as missing. */
  write(info: StreamInfo, out: LogBuffer): boolean {
    const value = this.expression.evaluate(info);
    if (value === undefined) return false;
    out.latin1Text(celText(value).slice(0, this.maxBytes));
    return true;
  }
}

class TypedCelOperator extends CelOperator {
  writeJson(info: StreamInfo, out: LogBuffer): boolean {
    const value = this.expression.evaluate(info);
    let json: Json | undefined = value === undefined ? undefined : celJson(value);
    if (json === undefined) return false;
    if (typeof json === 'string') json = json.slice(0, this.maxBytes);
    out.text(JSON.stringify(json));
    return true;
  }
}
