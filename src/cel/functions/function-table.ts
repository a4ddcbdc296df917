// What a function of expressions is.

import type { CelValue } from '../values.js';

/** A value; undefined: an error, for example because there is no function for arguments of these types. */
export type Result = CelValue | undefined;

export interface CelFunction {
  /** Minimum number of arguments, including the receiver. */
  readonly least: number;
  readonly most: number;
  /** How it may be called: as f(a), as a.f(), or as both. */
  readonly style: 'global' | 'method' | 'both';
  /** Called with as many arguments as the expression has. */
  readonly apply: (a: CelValue, b: CelValue, c: CelValue | undefined, d: CelValue | undefined) => Result;
}

export type FunctionTable = ReadonlyMap<string, CelFunction>;

export function oneOf(style: CelFunction['style'], apply: (a: CelValue) => Result): CelFunction {
  return { least: 1, most: 1, style, apply };
}

export function twoOf(style: CelFunction['style'], apply: (a: CelValue, b: CelValue) => Result): CelFunction {
  return { least: 2, most: 2, style, apply };
}

/** Texts that functions make are not longer, in bytes: an error instead. */
export const MAX_MADE = 1024 * 1024;
