// Messages as they travel from the thread that reads them to the primary: texts of a bounded size, so that the primary can take
// a message of any size a piece at a time. (A clone of 10,000 endpoints keeps it for 40 ms, the same as one text for 20.)

import { setKey } from '../../common/records.js';
import type { Path, PathPart } from '../../config/text/path.js';

/** A message as JSON. */
export interface Parcel {
  /** The message, long lists emptied. */
  readonly text: string;
  /** What belongs in them, in this order; those that stand in an element of another come after it. */
  readonly lists: readonly { readonly path: Path; readonly pieces: readonly string[] }[];
}

/** Characters of a piece, about. */
const PIECE_CHARS = 64 * 1024;
/** Elements that no piece is made for. */
const SHORT_LIST = 64;

export function pack(message: unknown): Parcel {
  const lists: { path: Path; pieces: string[] }[] = [];
  const cut = (value: unknown, path: PathPart[]): unknown => {
    if (typeof value !== 'object' || value === null) return value;
    if (Array.isArray(value)) {
      const isLong = value.length > SHORT_LIST;
      const pieces: string[] = [];
      if (isLong) lists.push({ path: [...path], pieces });
      const kept = value.map((element, index) => inside(element, index, path));
      if (!isLong) return kept;
      pieces.push(...join(kept));
      return [];
    }
    const copy: Record<string, unknown> = {};
    for (const [name, held] of Object.entries(value)) setKey(copy, name, inside(held, name, path));
    return copy;
  };
  const inside = (value: unknown, part: PathPart, path: PathPart[]): unknown => {
    path.push(part);
    const held = cut(value, path);
    path.pop();
    return held;
  };
  return { text: JSON.stringify(cut(message, [])), lists };
}

/** Puts it together again; yields wherever a piece's worth has been done since the last time. */
export function* unpack({ text, lists }: Parcel): Generator<void, unknown> {
  const message: unknown = JSON.parse(text);
  if (text.length >= PIECE_CHARS) yield;
  for (const { path, pieces } of lists) {
    let list = message as Record<PathPart, unknown>;
    for (const part of path) list = list[part] as Record<PathPart, unknown>;
    for (const piece of pieces) {
      (list as unknown as unknown[]).push(...(JSON.parse(piece) as unknown[]));
      if (piece.length >= PIECE_CHARS / 2) yield;
    }
  }
  return message;
}

/** How much there is of it, in characters. */
export function sizeOf({ text, lists }: Parcel): number {
  return lists.reduce((sum, { pieces }) => sum + pieces.reduce((all, piece) => all + piece.length, 0), text.length);
}

/** The elements as JSON lists of about a piece's length. */
function join(elements: readonly unknown[]): string[] {
  const pieces: string[] = [];
  let texts: string[] = [];
  let length = 0;
  const end = () => {
    if (texts.length > 0) pieces.push(`[${texts.join(',')}]`);
    texts = [];
    length = 0;
  };
  for (const element of elements) {
    const text = JSON.stringify(element) ?? 'null';
    texts.push(text);
    length += text.length;
    if (length >= PIECE_CHARS) end();
  }
  end();
  return pieces;
}
