// The result of parsing a configuration text: plain values (objects, lists, scalars), and a mapping from paths to lines.

import { Excerpts, type Place } from './excerpt.js';
import { formatPath, type Path } from './path.js';
import type { Problem } from './problem.js';
import { mayHoldSecrets } from './secrets.js';

/** An unknown field that is not visible in the text: in binary protos. */
export interface UnknownField {
  /** Path of the message that contains it. */
  readonly path: Path;
  readonly message: string;
  /** The number of the field. */
  readonly field: string;
}

export interface Source {
  /** The file as the user named it, or the option with the text. */
  readonly name: string;
  readonly value: unknown;
  /** Unknown fields, which `value` does not contain. */
  readonly unknownFields?: readonly UnknownField[];
  /** Number of values in the text. A value that aliases repeat counts once. */
  readonly size: number;
  /** Locates a path in the text: its key or its value. Undefined if the text does not have the path. */
  locate(path: Path, at: 'key' | 'value'): Place | undefined;
}

export interface SourceResult {
  /**
   * Undefined if the text cannot be parsed. If there are problems too, the text has duplicate keys: it must not be used, but
   * checking it reveals further problems. It contains the last of duplicate values.
   */
  readonly source?: Source;
  readonly problems: readonly Problem[];
  /** Number of further problems that are not listed. */
  readonly furtherProblems?: number;
}

/** Maximum nesting of values, as in protobuf's own parsers. */
export const MAX_DEPTH = 100;
export const TOO_DEEP = `nested deeper than ${MAX_DEPTH} levels`;

/** A mistake in a text and its offset. */
export interface TextMistake {
  readonly offset: number;
  readonly message: string;
  /** Set if the mistake is not in the syntax. */
  readonly path?: Path;
}

/** Maximum number of mistakes that are reported per text; further ones are only counted. */
export const MAX_MISTAKES = 100;

/**
 * Returns problems for mistakes in the text itself. Secrets cannot be located in such a text, so no line is shown if it
 * contains any.
 */
export function syntaxProblems(name: string, text: string, mistakes: readonly TextMistake[]): Problem[] {
  if (mistakes.length === 0) return [];
  const hidden = mayHoldSecrets(text) ? [{ from: 0, to: text.length }] : [];
  const excerpts = new Excerpts(text, hidden);
  return mistakes.slice(0, MAX_MISTAKES).map(({ offset, message, path = [] }) => ({
    source: name,
    path: formatPath(path),
    message,
    ...excerpts.at(offset),
  }));
}
