// Exceptions caused by a defect in an extension's source, not by the user's configuration: the message names the extension
// and the place.

import { sourceStack } from '../package/source-places.js';
import { BatonError } from './errors.js';

/**
 * Calls `call`, the function `what` of an extension, and returns its result. Rethrows a BatonError unchanged. Wraps any
 * other exception in an Error whose message names the function and the place in the source.
 */
export function callExtension<T>(what: string, extension: string, call: () => T): T {
  try {
    return call();
  } catch (error) {
    if (error instanceof BatonError) throw error;
    throw new Error(describeDefect(what, extension, error), { cause: error });
  }
}

/** Returns the message for an exception that a function of an extension threw, with its place in the source. */
export function describeDefect(what: string, extension: string, thrown: unknown): string {
  return `${what}() of '${extension}' failed: ${withSourcePlace(thrown)}`;
}

/** Returns what was thrown as text, with its place in the source if that is known. */
export function withSourcePlace(thrown: unknown): string {
  const [, place] = /\n\s+(at .*)/.exec(thrown instanceof Error ? sourceStack(thrown.stack ?? '') : '') ?? [];
  return place === undefined ? String(thrown) : `${thrown} ${place}`;
}
