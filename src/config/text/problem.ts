// A problem of a configuration with its place in the file, as plain data for threads and for output.

import { onOneLine } from '../../common/text/shown.js';

/** An error or a warning. All numbers are 1-based; 0 means that the source has no lines (binary protos). */
export interface Problem {
  /** The file as the user named it, or the option with the text. */
  readonly source: string;
  readonly line: number;
  readonly column: number;
  /** Field path, empty for a syntax error. */
  readonly path: string;
  readonly message: string;
  /** The offending line, shortened for terminals, and the column of the caret in it. */
  readonly excerpt: string;
  readonly caret: number;
}

/** Returns a problem without a line, or about a whole source. `source` is '' if there is no source. */
export function problemOf(source: string, message: string, path = ''): Problem {
  return { source, line: 0, column: 0, path, message, excerpt: '', caret: 0 };
}

/**
 * Returns `file:line:column: path: message`, then the offending line with a caret below it; without a source only the message.
 */
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

/** Longer messages are not useful and exceed the maximum of a log line. */
const MAX_LENGTH = 2000;

/** Shortens a message, which may quote users or peers, and escapes line ends and control characters. */
export function escaped(text: string): string {
  return onOneLine(text.length > MAX_LENGTH ? `${text.slice(0, MAX_LENGTH)}…` : text);
}

/** Returns all problems, one after the other. */
export function formatProblems(problems: readonly Problem[]): string {
  return problems.map(formatProblem).join('\n');
}
