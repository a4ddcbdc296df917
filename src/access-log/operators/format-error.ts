// Errors in formats: the operator and its place.

import { BatonError, buildEach, Mistakes } from '../../common/errors/errors.js';

/** An invalid format. The message names the operator and its position. */
export class FormatError extends BatonError {
  /** Index of the operator's first character in the format string. */
  readonly position: number;

  constructor(what: string, format: string, position: number) {
    super('CONFIG_INVALID', `${what} at position ${position} of format ${JSON.stringify(format)}`);
    this.position = position;
  }
}

/** Calls `build`. To each error about a format that it throws, adds the place `where`; several are thrown as Mistakes. */
export function atPlace<T>(where: string, build: () => T): T {
  try {
    return build();
  } catch (thrown) {
    return buildEach(Mistakes.of(thrown), (error): never => {
      if (!(error instanceof BatonError) || error.where !== undefined) throw error;
      throw new BatonError(error.code, error.message, { where, cause: error });
    })[0]!;
  }
}

/** Like atPlace(), but prefixes existing places with `where`: for errors in a nested message. */
export function withinPlace<T>(where: string, build: () => T): T {
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

/** Returns an error about an operator, still without its position. */
export function operatorError(message: string): BatonError {
  return new BatonError('CONFIG_INVALID', message);
}
