// Copies the short ranges of bytes that lines and heads consist of: a call of set() or copyWithin() costs more than such a copy.

/**
 * Copies [start, end) of `source` to `to` in `target`, which is no part of that range: four bytes at a time, which takes a third of the
 * time that one by one takes.
 */
export function copyBytes(target: DataView, to: number, source: DataView, start: number, end: number): void {
  const last = end - 4;
  if (start > last) {
    while (start < end) target.setUint8(to++, source.getUint8(start++));
    return;
  }
  for (; start < last; start += 4, to += 4) target.setInt32(to, source.getInt32(start, true), true);
  // Some of the last four for the second time.
  target.setInt32(to + last - start, source.getInt32(last, true), true);
}

/** The same bytes, for copyBytes(). */
export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
