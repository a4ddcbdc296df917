// Extracts the line at an offset of a text, shortened for terminals, with the column of the caret.

import { UNPRINTABLE } from '../../common/text/shown.js';

/** A place in a text. Line, column and caret are 1-based. */
export interface Place {
  readonly line: number;
  readonly column: number;
  /** Empty if the line must not be shown. */
  readonly excerpt: string;
  readonly caret: number;
}

/** A range of a text, from an offset up to another. */
export interface Range {
  readonly from: number;
  readonly to: number;
}

/** Locates places in one text. */
export class Excerpts {
  readonly #text: string;
  readonly #hidden: readonly Range[];
  /** Offsets of line ends, as far as they have been counted: both a text and its mistakes may have many lines. */
  readonly #newlines: number[] = [];

  /** @param hidden ranges that must not be shown */
  constructor(text: string, hidden: readonly Range[] = []) {
    this.#text = text;
    this.#hidden = hidden;
  }

  /** Returns line and column of `offset`, with an excerpt of the line unless it contains a hidden range. */
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

  /** Returns how many lines end before `at`. */
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

/** Replaces characters one by one, so that the caret position stays correct. */
function printable(line: string): string {
  return line.replace(/\t/g, ' ').replace(UNPRINTABLE, '?').trimEnd();
}
