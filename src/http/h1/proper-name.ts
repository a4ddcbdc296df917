// Header names in proper case, as Envoy's header_key_format.proper_case_words writes them.

/** Writes the name bytes[start, end) to bytes[to …]: letters at the beginning and after a special character become capitals, others small. */
export function writeProperName(bytes: Uint8Array, start: number, end: number, to: number): void {
  let isInWord = false;
  for (let at = start; at < end; at++) {
    const byte = bytes[at]!;
    const letter = byte | CASE_BIT;
    const isLetter = letter >= LETTER_A && letter <= LETTER_Z;
    bytes[to++] = isLetter ? (isInWord ? letter : letter - CASE_BIT) : byte;
    isInWord = isLetter || (byte >= DIGIT_0 && byte <= DIGIT_9);
  }
}

const CASE_BIT = 32;
const LETTER_A = 97;
const LETTER_Z = 122;
const DIGIT_0 = 48;
const DIGIT_9 = 57;
