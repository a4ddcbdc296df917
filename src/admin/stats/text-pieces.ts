// Combines the texts of a long response into pieces that are large enough to write.

import { Pieces } from '../../stats/render/pieces.js';

/** Maximum number of texts, including empty ones, per piece: producing these takes about a millisecond, sometimes longer. */
const MAX_TEXTS = 500;
const MAX_MS = 2;

/** Yields the texts in UTF-8, in pieces of about 32 KiB; pieces are smaller where many texts are empty or slow to produce. */
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
