// Gathers the texts of a long answer into pieces that are worth a write each.

import { Pieces } from '../stats/pieces.js';

/** The texts in UTF-8, some 32 KiB at a time. */
export function* textPieces(texts: Iterable<string>): Generator<Uint8Array, void> {
  const pieces = new Pieces();
  for (const text of texts) {
    pieces.putText(text);
    if (pieces.isFull) yield pieces.take();
  }
  const last = pieces.take();
  if (last.length > 0) yield last;
}
