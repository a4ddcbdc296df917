// Formats exceptions for log lines and records. Anything can be thrown, so nothing here throws.

import { stdSerializers } from 'pino';
import { sourceStack } from '../common/package/source-places.js';

const UNKNOWN = 'the exception cannot be shown';
/** The text may contain data from a peer. */
const MAX_LENGTH = 8192;

/** Returns the stack with source locations, or a text for values without a stack. */
export function stackOf(thrown: unknown): string {
  try {
    return shortened(thrown instanceof Error ? sourceStack(thrown.stack ?? `${thrown}`) : String(thrown));
  } catch {
    return UNKNOWN;
  }
}

/**
 * Returns what pino's own serializer returns for an error (type, message, stack with causes, members), or a text for other
 * values.
 */
export function serializeThrown(thrown: unknown): unknown {
  if (!(thrown instanceof Error)) return stackOf(thrown);
  try {
    return withSourcePlaces(stdSerializers.err(thrown));
  } catch {
    // The error is frozen or has a getter that throws.
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
