// The line around an offset of a text, cut to what a terminal shows, with the caret's column.

/** A place in a text; line, column and caret count from 1. */
export interface Place {
  readonly line: number;
  readonly column: number;
  /** Empty when it is not to be shown. */
  readonly excerpt: string;
  readonly caret: number;
}

/** A piece of a text, from an offset up to another. */
export interface Range {
  readonly from: number;
  readonly to: number;
}

/** Line and column of `offset`, and that line with room for a caret, unless a piece that is not to be shown is within it. */
export function excerptAt(text: string, offset: number, hidden: readonly Range[] = []): Place {
  const at = Math.max(0, Math.min(offset, text.length));
  const start = text.lastIndexOf('\n', at - 1) + 1;
  const newline = text.indexOf('\n', at);
  const lineEnd = newline < 0 ? text.length : newline;
  const end = text[lineEnd - 1] === '\r' ? Math.max(at, lineEnd - 1) : lineEnd;
  const [from, to] = [Math.max(start, at - HALF), Math.min(end, at + HALF)];
  let line = 1;
  for (let index = text.indexOf('\n'); index >= 0 && index < start; index = text.indexOf('\n', index + 1)) line++;
  const place = { line, column: at - start + 1 };
  if (hidden.some((range) => range.from < to && range.to > from)) return { ...place, excerpt: '', caret: 0 };
  const before = (from > start ? '…' : '') + text.slice(from, at);
  const after = text.slice(at, to) + (to < end ? '…' : '');
  return { ...place, excerpt: printable(before + after), caret: before.length + 1 };
}

const HALF = 100;

/** What would end a line, change its direction, or tell a terminal something. */
export const UNPRINTABLE = /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;

/** As many characters, so that the caret stays where it is. */
function printable(line: string): string {
  return line.replace(/\t/g, ' ').replace(UNPRINTABLE, '?').trimEnd();
}
