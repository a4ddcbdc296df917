// %COALESCE({"operators": […]}):Z%: the value of the first operator that has one.

import type { LogBuffer } from '../log-buffer.js';
import type { StreamInfo } from '../stream/stream-info.js';
import { operatorError } from './format-error.js';
import { type Operator, writeJsonValue } from './operator.js';

/** One element of `operators`. */
export interface CoalescedCall {
  name: string;
  parameter: string | undefined;
  maxLength: number | undefined;
}

const COALESCE = 'COALESCE';

/** Parses the parameter. Throws a BatonError if it is not of the documented form. */
export function parseCoalesce(parameter: string): CoalescedCall[] {
  let config: unknown;
  try {
    config = JSON.parse(parameter);
  } catch {
    throw operatorError(`operator %${COALESCE}% takes JSON, not '${parameter}'`);
  }
  const operators = (config as { operators?: unknown } | null)?.operators;
  if (!Array.isArray(operators)) throw operatorError(`operator %${COALESCE}% takes JSON with a list 'operators'`);
  if (operators.length === 0) throw operatorError(`operator %${COALESCE}% needs at least one of 'operators'`);
  return operators.map(callOf);
}

function callOf(entry: unknown, index: number): CoalescedCall {
  const wrong = (what: string): Error => operatorError(`operator %${COALESCE}%: operators[${index}] ${what}`);
  if (typeof entry === 'string') return checked({ name: entry, parameter: undefined, maxLength: undefined }, wrong);
  if (typeof entry !== 'object' || entry === null) throw wrong('is neither a name nor an object');
  const { command, param, max_length: maxLength } = entry as Record<string, unknown>;
  if (typeof command !== 'string') throw wrong("has no 'command'");
  if (param !== undefined && typeof param !== 'string') throw wrong("has a 'param' that is not text");
  if (maxLength !== undefined && !(Number.isSafeInteger(maxLength) && (maxLength as number) > 0))
    throw wrong("has a 'max_length' that is not a positive integer");
  return checked({ name: command, parameter: param || undefined, maxLength: maxLength as number | undefined }, wrong);
}

/** A nested list would have to be JSON in a string in JSON, which serves nobody and could be nested without limit. */
function checked(call: CoalescedCall, wrong: (what: string) => Error): CoalescedCall {
  if (call.name === COALESCE) throw wrong(`is %${COALESCE}% again: add its operators to this list`);
  return call;
}

export class CoalesceOperator implements Operator {
  readonly isNumber = false;
  readonly isFreeText: boolean;
  readonly #operators: readonly Operator[];
  readonly #maxBytes: number;

  constructor(operators: readonly Operator[], maxBytes = Number.MAX_SAFE_INTEGER) {
    this.#operators = operators;
    this.isFreeText = operators.some((each) => each.isFreeText);
    this.#maxBytes = maxBytes;
  }

  write(info: StreamInfo, out: LogBuffer): boolean {
    const start = out.length;
    for (const operator of this.#operators) {
      if (!operator.write(info, out)) continue;
      if (out.length - start > this.#maxBytes) out.length = start + this.#maxBytes;
      return true;
    }
    return false;
  }

  /** As in Envoy, only strings are truncated. */
  writeJson(info: StreamInfo, out: LogBuffer): boolean {
    for (const operator of this.#operators) if (writeJsonValue(operator, info, out, this.#maxBytes)) return true;
    return false;
  }
}
