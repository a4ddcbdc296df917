// Rewrites the heads and trailers of old hosts into the strict syntax, byte by byte: a bare LF ends a line, a folded line becomes one line
// with a space (RFC 9112 section 5.2), and whitespace at the end of a line or between the parts of a status line is reduced. HeadParser
// parses the result, so that only strict heads leave the codec. Everything else that is invalid stays as it is, and the parser refuses it.
//
// Only responses are rewritten. Requests that hops interpret in different ways are attacks.

import { Char } from './characters.js';

const enum Place {
  Version = 0,
  Status = 1,
  Reason = 2,
  /** At the first field line, which can't be a folded one. */
  FirstField = 3,
  Field = 4,
  /** At the start of another line, which may continue the last one. */
  NextField = 5,
  /** After the empty line. */
  End = 6,
}

/** The most bytes that reading one byte writes: the end of the line before it, and the end of the head. */
export const MAX_GROWTH = 4;

export class OldSyntax {
  /** Offset after the last byte that write() has read. */
  readTo = 0;
  /** Whitespace after the returned offset, which is dropped if the line ends. */
  heldBack = 0;
  #place = Place.Version;
  /** The last byte was a CR, which is not written yet. */
  #isAfterCr = false;
  /** In the whitespace at the start of a folded line. */
  #isFolding = false;

  begin(isTrailers: boolean): void {
    this.#place = isTrailers ? Place.FirstField : Place.Version;
    this.heldBack = 0;
    this.#isAfterCr = this.#isFolding = false;
  }

  /**
   * Rewrites bytes[at, end), at most up to the end of the head, to `to` and following. Returns the offset after the bytes that are certain.
   * Writes up to MAX_GROWTH bytes for each byte read.
   */
  write(bytes: Uint8Array, at: number, end: number, to: number): number {
    for (; at < end && this.#place !== Place.End; at++) {
      const byte = bytes[at]!;
      if (byte === Char.Lf) {
        this.#isAfterCr = false;
        to = this.#lineEnd(bytes, to);
        continue;
      }
      // The parser refuses a CR without LF.
      if (this.#isAfterCr) to = this.#text(bytes, Char.Cr, to);
      this.#isAfterCr = byte === Char.Cr;
      if (this.#isAfterCr) continue;
      to = byte === Char.Space || byte === Char.Tab ? this.#space(bytes, byte, to) : this.#text(bytes, byte, to);
    }
    this.readTo = at;
    return to;
  }

  #lineEnd(bytes: Uint8Array, to: number): number {
    this.heldBack = 0;
    this.#isFolding = false;
    switch (this.#place) {
      case Place.Field:
        this.#place = Place.NextField;
        return to;
      case Place.FirstField:
        this.#place = Place.End;
        return writeLineEnd(bytes, to);
      case Place.NextField:
        this.#place = Place.End;
        return writeLineEnd(bytes, writeLineEnd(bytes, to));
      default:
        this.#place = Place.FirstField;
        return writeLineEnd(bytes, to);
    }
  }

  #space(bytes: Uint8Array, byte: number, to: number): number {
    switch (this.#place) {
      case Place.Version:
      case Place.Status:
        bytes[to] = Char.Space;
        this.heldBack = 1;
        return to;
      case Place.FirstField:
        return this.#text(bytes, byte, to);
      case Place.NextField:
        this.#place = Place.Field;
        this.#isFolding = true;
        bytes[to] = Char.Space;
        this.heldBack = 1;
        return to;
      default:
        if (!this.#isFolding) bytes[to + this.heldBack++] = byte;
        return to;
    }
  }

  #text(bytes: Uint8Array, byte: number, to: number): number {
    if (this.#place === Place.NextField) to = writeLineEnd(bytes, to);
    if (this.#place >= Place.FirstField) this.#place = Place.Field;
    else if (this.heldBack > 0 && this.#place < Place.Reason) this.#place++;
    to += this.heldBack;
    this.heldBack = 0;
    this.#isFolding = false;
    bytes[to] = byte;
    return to + 1;
  }
}

function writeLineEnd(bytes: Uint8Array, to: number): number {
  bytes[to] = Char.Cr;
  bytes[to + 1] = Char.Lf;
  return to + 2;
}
