// The Huffman code of HPACK (RFC 7541, appendix B).
//
// The code is canonical: the lengths of the codes define the codes. Most text consists of symbols with at most PRIMARY_BITS bits, which one
// look-up decodes; longer codes are found by length.

/** Code lengths of the symbols 0 to 255 and EOS, as digits of base 36. */
const LENGTHS =
  'dnsssssssoussussssssssusssssssss6aacd68baa8b8666555666666678f6cad67777777777777777777777878djde6f56565666577666567655677777fbedskmkkmmm' +
  'nmnnnnnonoomnonnnnlmnmnnomlkmmnnlnmmolmnnllmnlmnnkmmmnmmnqqkjmnmpqqqrrqopjlqrrqrollqqsrrrkoklmllnmmppooqnqrqqrrrrrsrrrrrqu';

const EOS = 256;
const PRIMARY_BITS = 9;
const MAX_BITS = 30;

const CODE_LENGTHS = Uint8Array.from(LENGTHS, (digit) => Number.parseInt(digit, 36));
const CODES = new Uint32Array(EOS + 1);
/** By the next PRIMARY_BITS bits: symbol << 4 | length; 0 if the code is longer. */
const PRIMARY = new Uint16Array(1 << PRIMARY_BITS);
/** Symbols by length, then by value. */
const SYMBOLS = new Uint16Array(EOS + 1);
/** By length: the first code, and the index of its symbol minus that code. */
const FIRST_CODE = new Uint32Array(MAX_BITS + 2);
const SYMBOL_OFFSET = new Int32Array(MAX_BITS + 2);
fillTables();

/** The longest text that `length` encoded bytes can contain. */
export function maxDecodedLength(length: number): number {
  return Math.floor((length * 8) / 5);
}

/**
 * Decodes bytes[at, end) to bytes[to …], which must have room for maxDecodedLength() and not overlap. Returns the offset after the text, or
 * -1 if the code is invalid: it contains EOS, or its padding is not a prefix of EOS shorter than a byte.
 */
export function huffmanDecode(bytes: Uint8Array, at: number, end: number, to: number): number {
  let bits = 0;
  let count = 0;
  for (;;) {
    while (count < PRIMARY_BITS && at < end) {
      bits = ((bits << 8) | bytes[at++]!) & 0xffffff;
      count += 8;
    }
    // Missing bits are zeros, which the comparison of lengths detects.
    const index = count >= PRIMARY_BITS ? bits >>> (count - PRIMARY_BITS) : bits << (PRIMARY_BITS - count);
    const entry = PRIMARY[index & ((1 << PRIMARY_BITS) - 1)]!;
    const length = entry & 15;
    if (length !== 0) {
      if (length > count) return isPadding(bits, count) ? to : -1;
      bytes[to++] = entry >>> 4;
      count -= length;
      continue;
    }
    // A code longer than PRIMARY_BITS. `count` is below 17, so its bits before the next byte fit in 24.
    let code = bits & ((1 << count) - 1);
    let codeBits = count;
    // More bits than the code has may be left over: they are given back.
    for (let size = PRIMARY_BITS + 1; ; size++) {
      if (size > MAX_BITS) return -1;
      if (size > codeBits) {
        if (at === end) return codeBits < 8 && isPadding(code, codeBits) ? to : -1;
        code = code * 256 + bytes[at++]!;
        codeBits += 8;
      }
      const prefix = Math.floor(code / 2 ** (codeBits - size));
      const symbolIndex = prefix + SYMBOL_OFFSET[size]!;
      if (prefix >= FIRST_CODE[size + 1]! / 2) continue;
      const symbol = SYMBOLS[symbolIndex]!;
      if (symbol === EOS) return -1;
      bytes[to++] = symbol;
      count = codeBits - size;
      bits = code % 2 ** count;
      break;
    }
  }
}

/** Returns whether the last `count` bits, less than a byte, are all ones. */
function isPadding(bits: number, count: number): boolean {
  const mask = (1 << count) - 1;
  return count < 8 && (bits & mask) === mask;
}

/** Returns the number of bytes that bytes[at, end) takes when encoded. `fold`: maps each byte to the encoded one. */
export function huffmanLength(bytes: Uint8Array, at: number, end: number, fold: Uint8Array): number {
  let bits = 0;
  while (at < end) bits += CODE_LENGTHS[fold[bytes[at++]!]!]!;
  return (bits + 7) >>> 3;
}

/** Encodes bytes[at, end) to bytes[to …]. Returns the offset after the code. */
export function huffmanEncode(bytes: Uint8Array, at: number, end: number, to: number, fold: Uint8Array): number {
  let bits = 0;
  let count = 0;
  while (at < end) {
    const symbol = fold[bytes[at++]!]!;
    let length = CODE_LENGTHS[symbol]!;
    let code = CODES[symbol]!;
    if (length > 16) {
      // At most 7 bits are left over from before: 16 more fit in a small integer.
      const rest = length - 16;
      bits = (bits << 16) | (code >>> rest);
      count += 16;
      for (; count >= 8; count -= 8) bytes[to++] = bits >>> (count - 8);
      bits &= 0xff;
      code &= (1 << rest) - 1;
      length = rest;
    }
    bits = ((bits & 0xff) << length) | code;
    count += length;
    for (; count >= 8; count -= 8) bytes[to++] = bits >>> (count - 8);
  }
  if (count > 0) bytes[to++] = (bits << (8 - count)) | (0xff >>> count);
  return to;
}

function fillTables(): void {
  const symbols = [...CODE_LENGTHS.keys()].sort((one, other) => CODE_LENGTHS[one]! - CODE_LENGTHS[other]!);
  let code = 0;
  let index = 0;
  for (let length = 1; length <= MAX_BITS; length++) {
    FIRST_CODE[length] = code;
    SYMBOL_OFFSET[length] = index - code;
    for (; index < symbols.length && CODE_LENGTHS[symbols[index]!] === length; index++) {
      const symbol = symbols[index]!;
      SYMBOLS[index] = symbol;
      CODES[symbol] = code;
      if (length <= PRIMARY_BITS) {
        const first = code << (PRIMARY_BITS - length);
        PRIMARY.fill((symbol << 4) | length, first, first + (1 << (PRIMARY_BITS - length)));
      }
      code++;
    }
    code *= 2;
  }
  FIRST_CODE[MAX_BITS + 1] = code;
}
