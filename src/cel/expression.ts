// An expression as a tree, in the form that both its text and its messages have: operators are calls of functions, whose names are those
// of the messages.

import { BatonError } from '../common/errors/errors.js';
import type { CelValue } from './values.js';

export type Expression =
  | { readonly kind: 'constant'; readonly value: CelValue }
  | { readonly kind: 'variable'; readonly name: string }
  /** `isTest`: has(operand.field). */
  | { readonly kind: 'select'; readonly operand: Expression; readonly field: string; readonly isTest: boolean }
  /** `args` begins with the receiver of `receiver.name(…)`. */
  | { readonly kind: 'call'; readonly name: string; readonly isMethod: boolean; readonly args: readonly Expression[] }
  | { readonly kind: 'list'; readonly elements: readonly Expression[] }
  | { readonly kind: 'map'; readonly entries: readonly (readonly [Expression, Expression])[] };

/** Maximum depth of nested operands. Deeper expressions are refused, so that evaluation cannot exhaust the stack. */
export const MAX_DEPTH = 250;
/** Maximum number of parts of an expression. */
export const MAX_PARTS = 20_000;

/** Counts the parts of one expression, and refuses too many of them. */
export class PartCounter {
  #parts = 0;

  /** Throws a BatonError for a part at this depth that is too deep or too much. */
  add(depth: number): void {
    if (depth > MAX_DEPTH) throw invalid(`the expression is nested deeper than ${MAX_DEPTH} levels`);
    if (++this.#parts > MAX_PARTS) throw invalid(`the expression has more than ${MAX_PARTS} parts`);
  }
}

/** Returns the error of an expression that is refused. */
export function invalid(message: string): BatonError {
  return new BatonError('CONFIG_INVALID', message);
}
