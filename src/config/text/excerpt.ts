// The line around an offset of a text, cut to what a terminal shows, with the caret's column.

/** A place in a text; line, column and caret count from 1. */
export interface Place {
  readonly line: number;
  readonly column: number;
  readonly excerpt: string;
  readonly caret: number;
}

/** Line and column of `offset`, and that line with room for a caret. */
export function excerptAt(text: string, offset: number): Place {
  const at = Math.max(0, Math.min(offset, text.length));
  const start = text.lastIndexOf('\n', at - 1) + 1;
  const newline = text.indexOf('\n', at);
  const end = newline < 0 ? text.length : newline;
  const before = at - start > HALF ? `…${text.slice(at - HALF, at)}` : text.slice(start, at);
  const after = end - at > HALF ? `${text.slice(at, at + HALF)}…` : text.slice(at, end);
  let line = 1;
  for (let index = text.indexOf('\n'); index >= 0 && index < start; index = text.indexOf('\n', index + 1)) line++;
  return { line, column: at - start + 1, excerpt: printable(before + after), caret: before.length + 1 };
}

const HALF = 100;

/** Control characters would move the caret or the terminal. */
function printable(line: string): string {
  return line
    .replace(/\t/g, ' ')
    .replace(/[\u0000-\u001f\u007f-\u009f]/g, '?')
    .trimEnd();
}
