// The line around an offset of a text, cut to what a terminal shows, with the caret's column.

import { UNPRINTABLE } from '../../common/text/shown.js';

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

/** Finds places in one text. */
export class Excerpts {
  readonly #text: string;
  readonly #hidden: readonly Range[];
  /** Where its lines end, as far as they have been counted: a text may have many, and so may its mistakes. */
  readonly #newlines: number[] = [];

  /** @param hidden pieces that are not to be shown */
  constructor(text: string, hidden: readonly Range[] = []) {
    this.#text = text;
    this.#hidden = hidden;
  }

  /** Line and column of `offset`, and that line with room for a caret, unless a piece that is not to be shown is within it. */
  at(offset: number): Place {
    const text = this.#text;
    const at = Math.max(0, Math.min(offset, text.length));
    const line = this.#linesBefore(at) + 1;
    const start = line === 1 ? 0 : this.#newlines[line - 2]! + 1;
    const place = { line, column: at - start + 1 };
    const newline = text.slice(at, at + HALF + 1).indexOf('\n');
    const lineEnd = newline < 0 ? Math.min(text.length, at + HALF + 1) : at + newline;
    const end = text[lineEnd - 1] === '\r' ? Math.max(at, lineEnd - 1) : lineEnd;
    const [from, to] = [Math.max(start, at - HALF), Math.min(end, at + HALF)];
    if (this.#hidden.some((range) => range.from < to && range.to > from)) return { ...place, excerpt: '', caret: 0 };
    const before = (from > start ? '…' : '') + text.slice(from, at);
    const after = text.slice(at, to) + (to < end ? '…' : '');
    return { ...place, excerpt: printable(before + after), caret: before.length + 1 };
  }

  /** How many lines end before `at`. */
  #linesBefore(at: number): number {
    const newlines = this.#newlines;
    for (let next = (newlines.at(-1) ?? -1) + 1; next < at; ) {
      const found = this.#text.indexOf('\n', next);
      if (found < 0 || found >= at) break;
      newlines.push(found);
      next = found + 1;
    }
    let [low, high] = [0, newlines.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (newlines[middle]! < at) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

const HALF = 100;

/** As many characters, so that the caret stays where it is. */
function printable(line: string): string {
  return line.replace(/\t/g, ' ').replace(UNPRINTABLE, '?').trimEnd();
}
