// What is wrong with a configuration, with the place in the file, as it crosses threads and is printed.

import { onOneLine } from '../../common/text/shown.js';

/** One mistake or warning. All numbers count from 1; 0 means that the source has no lines (binary protos). */
export interface Problem {
  /** The file as the user named it, or the option that carried the text. */
  readonly source: string;
  readonly line: number;
  readonly column: number;
  /** Field path, empty for a mistake in the syntax. */
  readonly path: string;
  readonly message: string;
  /** The offending line, cut to what a terminal shows, and the caret's column within it. */
  readonly excerpt: string;
  readonly caret: number;
}

/** A problem of a source without lines, or of it as a whole; '': of no source. */
export function problemOf(source: string, message: string, path = ''): Problem {
  return { source, line: 0, column: 0, path, message, excerpt: '', caret: 0 };
}

/** `file:line:column: path: message`, then the offending line and a caret under it; without a source the message alone. */
export function formatProblem(problem: Problem): string {
  if (problem.source === '') return escaped(problem.message);
  const place = problem.line > 0 ? `${problem.source}:${problem.line}:${problem.column}` : problem.source;
  const path = problem.path === '' ? '' : ` ${problem.path}:`;
  const head = escaped(`${place}:${path} ${problem.message}`);
  if (problem.line === 0 || problem.excerpt === '') return head;
  const number = String(problem.line);
  const margin = ' '.repeat(number.length);
  return `${head}\n  ${number} | ${problem.excerpt}\n  ${margin} | ${' '.repeat(problem.caret - 1)}^`;
}

/** More tells nobody more, and the log takes no line of any length. */
const MAX_LENGTH = 2000;

/** What a user or a peer wrote may be in a message: it is of any length, but it ends no line, and tells a terminal nothing. */
export function escaped(text: string): string {
  return onOneLine(text.length > MAX_LENGTH ? `${text.slice(0, MAX_LENGTH)}…` : text);
}

/** All of them, one after the other. */
export function formatProblems(problems: readonly Problem[]): string {
  return problems.map(formatProblem).join('\n');
}
