// Exceptions that tell of a mistake in the source of an extension, and not in what a user has written: they name both.

import { sourceStack } from '../package/source-places.js';
import { BatonError } from './errors.js';

/**
 * What `call`, which is the function `what` of an extension, returns. A BatonError that it throws passes as it is; of anything else
 * the message says which function threw it, and where.
 */
export function ofExtension<T>(what: string, extension: string, call: () => T): T {
  try {
    return call();
  } catch (error) {
    if (error instanceof BatonError) throw error;
    throw new Error(defectOf(what, extension, error), { cause: error });
  }
}

/** What the function of the extension has thrown, and where in the source. */
export function defectOf(what: string, extension: string, thrown: unknown): string {
  return `${what}() of '${extension}' failed: ${withPlace(thrown)}`;
}

/** What was thrown, and where in the source if that is known. */
export function withPlace(thrown: unknown): string {
  const [, place] = /\n\s+(at .*)/.exec(thrown instanceof Error ? sourceStack(thrown.stack ?? '') : '') ?? [];
  return place === undefined ? String(thrown) : `${thrown} ${place}`;
}
