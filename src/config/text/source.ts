// What reading a configuration text gives: plain values (objects, lists, scalars), with the way back from a path to a line.

import { Excerpts, type Place } from './excerpt.js';
import { formatPath, type Path } from './path.js';
import type { Problem } from './problem.js';
import { mayHoldSecrets } from './secrets.js';

/** A field that the API does not have, where the text itself does not show it: in binary protos. */
export interface UnknownField {
  /** Of the message that has it. */
  readonly path: Path;
  readonly message: string;
  /** Its number. */
  readonly field: string;
}

export interface Source {
  /** The file as the user named it, or the option that carried the text. */
  readonly name: string;
  readonly value: unknown;
  /** Fields that `value` lacks because the API does not have them. */
  readonly unknownFields?: readonly UnknownField[];
  /** How many values the text holds, each counted once however often an alias repeats it. */
  readonly size: number;
  /** Where a path stands in the text: its key, or what the key holds. Undefined when the text has no such path. */
  locate(path: Path, at: 'key' | 'value'): Place | undefined;
}

export interface SourceResult {
  /**
   * Undefined where the text cannot be read. With problems beside it, keys are set twice in it: it is not to be used, but checks of it
   * tell what else is wrong. Of two values the last one is in it.
   */
  readonly source?: Source;
  readonly problems: readonly Problem[];
  /** How many more there are, which are only counted. */
  readonly furtherProblems?: number;
}

/** Values nested deeper than this are refused, as protobuf's own parsers do. */
export const MAX_DEPTH = 100;
export const TOO_DEEP = `nested deeper than ${MAX_DEPTH} levels`;

/** What is wrong in a text itself, and the offset in it. */
export interface TextMistake {
  readonly offset: number;
  readonly message: string;
  /** Where it is not the syntax that is wrong. */
  readonly path?: Path;
}

/** As many as are told of a text: the rest is only counted. */
export const MAX_MISTAKES = 100;

/** Mistakes in the text itself. Where secrets are within such a text cannot be told: if it has some, no line of it is shown. */
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
