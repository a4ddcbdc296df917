// Gathers the texts of a long answer into pieces that are worth a write each.

import { Pieces } from '../../stats/render/pieces.js';

/** Texts, empty ones too, that take a millisecond or so to make; some take longer. */
const MAX_TEXTS = 500;
const MAX_MS = 2;

/** The texts in UTF-8, some 32 KiB at a time, or less where many texts are empty or take long. */
export function* textPieces(texts: Iterable<string>): Generator<Uint8Array, void> {
  const pieces = new Pieces();
  let count = 0;
  let begunMs = performance.now();
  for (const text of texts) {
    pieces.putText(text);
    if (!pieces.isFull && ++count < MAX_TEXTS && performance.now() - begunMs < MAX_MS) continue;
    yield pieces.take();
    count = 0;
    begunMs = performance.now();
  }
  const last = pieces.take();
  if (last.length > 0) yield last;
}
