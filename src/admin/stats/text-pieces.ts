// Gathers the texts of a long answer into pieces that are worth a write each.

import { Pieces } from '../../stats/render/pieces.js';

/** Texts, empty ones too, that take a millisecond or so to make. */
const TEXTS = 500;

/** The texts in UTF-8, some 32 KiB at a time, or less where many texts are empty. */
export function* textPieces(texts: Iterable<string>): Generator<Uint8Array, void> {
  const pieces = new Pieces();
  let count = 0;
  for (const text of texts) {
    pieces.putText(text);
    if (!pieces.isFull && ++count < TEXTS) continue;
    count = 0;
    yield pieces.take();
  }
  const last = pieces.take();
  if (last.length > 0) yield last;
}
