// What is wrong with a format: which operator, and where.

import { BatonError, buildEach, Mistakes } from '../../common/errors/errors.js';

/** A format that is refused: the message names the operator and its position. */
export class FormatError extends BatonError {
  /** Index of the character in the format string at which the operator begins. */
  readonly position: number;

  constructor(what: string, format: string, position: number) {
    super('CONFIG_INVALID', `${what} at position ${position} of format ${JSON.stringify(format)}`);
    this.position = position;
  }
}

/** What `build` gives. Throws what is wrong with a format with the place of that format, Mistakes for several. */
export function placed<T>(where: string, build: () => T): T {
  try {
    return build();
  } catch (thrown) {
    return buildEach(Mistakes.of(thrown), (error): never => {
      if (!(error instanceof BatonError) || error.where !== undefined) throw error;
      throw new BatonError(error.code, error.message, { where, cause: error });
    })[0]!;
  }
}

/** The same for what is wrong in a message that stands at `where`: its places are in there. */
export function within<T>(where: string, build: () => T): T {
  try {
    return build();
  } catch (thrown) {
    return buildEach(Mistakes.of(thrown), (error): never => {
      if (!(error instanceof BatonError)) throw error;
      const { code, message, remedy } = error;
      const place = error.where === undefined ? where : `${where}.${error.where}`;
      throw new BatonError(code, message, { where: place, remedy, cause: error });
    })[0]!;
  }
}

/** An operator that is refused, before anybody knows where it stands. */
export function operatorError(message: string): BatonError {
  return new BatonError('CONFIG_INVALID', message);
}
