// Messages in transit from the reading thread to the primary: strings of bounded size, so that the primary can unpack a message
// of any size in steps. (Cloning 10,000 endpoints blocks it for 40 ms, parsing them as a single string for 20.)

import { setKey } from '../../common/records.js';
import type { Path, PathPart } from '../../config/text/path.js';

/** A message as JSON. */
export interface Parcel {
  /** The message, with long lists emptied. */
  readonly text: string;
  /** The content of these lists, in order; a list inside an element of another follows it. */
  readonly lists: readonly { readonly path: Path; readonly pieces: readonly string[] }[];
}

/** Approximate characters of a piece. */
const PIECE_CHARS = 64 * 1024;
/** Lists up to this length are not divided. */
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

/** Restores the message. Yields after about each piece's amount of work. */
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

/** Returns its size in characters. */
export function sizeOf({ text, lists }: Parcel): number {
  return lists.reduce((sum, { pieces }) => sum + pieces.reduce((all, piece) => all + piece.length, 0), text.length);
}

/** Returns the elements as JSON lists of about a piece's length. */
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
