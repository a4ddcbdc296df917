// What was thrown, as lines and records show it. Anything can be thrown: nothing here throws.

import { stdSerializers } from 'pino';
import { sourceStack } from '../common/package/source-places.js';

const UNKNOWN = 'what was thrown cannot be shown';
/** It may hold anything that a peer has sent. */
const MAX_LENGTH = 8192;

/** The stack, with places of the source; a text for what has none. */
export function stackOf(thrown: unknown): string {
  try {
    return shortened(thrown instanceof Error ? sourceStack(thrown.stack ?? `${thrown}`) : String(thrown));
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

function shortened(text: string): string {
  return text.length > MAX_LENGTH ? `${text.slice(0, MAX_LENGTH)}…` : text;
}

interface Serialized {
  message: string;
  stack: string;
  readonly aggregateErrors?: readonly Serialized[];
}

function withSourcePlaces<Error extends Serialized>(error: Error): Error {
  error.message = shortened(error.message);
  error.stack = shortened(sourceStack(error.stack));
  error.aggregateErrors?.forEach(withSourcePlaces);
  return error;
}
