// Lists of names and values as modules and the host exchange them: the count, the lengths, and each text with a NUL after it.

/** Texts have one character a byte. */
export type Pairs = readonly (readonly [name: string, value: string])[];

/** Many more than a message can have. */
const MAX_PAIRS = 65_536;

/** Returns no pairs for bytes that are no list, as Envoy, and for a list that is too long. */
export function readPairs(bytes: Buffer): [string, string][] {
  if (bytes.length < 4) return [];
  const count = bytes.readUInt32LE(0);
  let at = 4 + count * 8;
  if (count > MAX_PAIRS || at > bytes.length) return [];
  const pairs: [string, string][] = [];
  for (let i = 0; i < count; i++) {
    const nameLength = bytes.readUInt32LE(4 + i * 8);
    const valueLength = bytes.readUInt32LE(8 + i * 8);
    const value = at + nameLength + 1;
    const end = value + valueLength + 1;
    if (end > bytes.length) return [];
    pairs.push([bytes.toString('latin1', at, at + nameLength), bytes.toString('latin1', value, value + valueLength)]);
    at = end;
  }
  return pairs;
}

export function writePairs(pairs: Pairs): Buffer {
  let length = 4 + pairs.length * 8;
  for (const [name, value] of pairs) length += name.length + value.length + 2;
  const bytes = Buffer.alloc(length);
  bytes.writeUInt32LE(pairs.length, 0);
  let at = 4 + pairs.length * 8;
  pairs.forEach(([name, value], index) => {
    bytes.writeUInt32LE(name.length, 4 + index * 8);
    bytes.writeUInt32LE(value.length, 8 + index * 8);
    at += bytes.write(name, at, 'latin1') + 1;
    at += bytes.write(value, at, 'latin1') + 1;
  });
  return bytes;
}
