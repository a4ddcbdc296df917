// What is wrong with a format: which operator, and where.

import { BatonError } from '../common/errors.js';

/** A format that is refused: the message names the operator and its position. */
export class FormatError extends BatonError {
  /** Index of the character in the format string at which the operator begins. */
  readonly position: number;

  constructor(what: string, format: string, position: number) {
    super('CONFIG_INVALID', `${what} at position ${position} of format ${JSON.stringify(format)}`);
    this.position = position;
  }
}

/** An operator that is refused, before anybody knows where it stands. */
export function operatorError(message: string): BatonError {
  return new BatonError('CONFIG_INVALID', message);
}
