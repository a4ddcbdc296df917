// What was thrown, as lines and records show it. Anything can be thrown: nothing here throws.

import { stdSerializers } from 'pino';
import { sourceStack } from '../common/package/source-places.js';

const UNKNOWN = 'what was thrown cannot be shown';

/** The stack, with places of the source; a text for what has none. */
export function stackOf(thrown: unknown): string {
  try {
    return thrown instanceof Error ? sourceStack(thrown.stack ?? `${thrown}`) : String(thrown);
  } catch {
    return UNKNOWN;
  }
}

/** As pino's own serializer has it: type, message, stack with its causes, and the members of an error; a text for other things. */
export function serializeThrown(thrown: unknown): unknown {
  if (!(thrown instanceof Error)) return stackOf(thrown);
  try {
    return withSourcePlaces(stdSerializers.err(thrown));
  } catch {
    // Frozen, or with a getter that throws.
    return stackOf(thrown);
  }
}

interface Serialized {
  stack: string;
  readonly aggregateErrors?: readonly Serialized[];
}

function withSourcePlaces<Error extends Serialized>(error: Error): Error {
  error.stack = sourceStack(error.stack);
  error.aggregateErrors?.forEach(withSourcePlaces);
  return error;
}
