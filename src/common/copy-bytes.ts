// Copies the short byte ranges of log lines and message heads: for these, a call of set() or copyWithin() costs more than
// the copy.

/**
 * Copies [start, end) of `source` to offset `to` of `target`, which must not overlap that range. Four bytes at a time take a
 * third of the time of single bytes.
 */
export function copyBytes(target: DataView, to: number, source: DataView, start: number, end: number): void {
  const last = end - 4;
  if (start > last) {
    while (start < end) target.setUint8(to++, source.getUint8(start++));
    return;
  }
  for (; start < last; start += 4, to += 4) target.setInt32(to, source.getInt32(start, true), true);
  // The last word may overlap the one before.
  target.setInt32(to + last - start, source.getInt32(last, true), true);
}

/** Returns a view of the same bytes, for copyBytes(). */
export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
