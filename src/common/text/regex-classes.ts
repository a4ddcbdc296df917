// Character classes of RE2 expressions: where they end in the pattern, and how many byte ranges they compile to.

export interface CharacterClass {
  /** Index after the last character of the class. */
  readonly end: number;
  /**
   * Minimum number of byte ranges, each of which RE2 compiles to an instruction. 0: a position, such as an anchor, not a
   * character.
   */
  readonly ranges: number;
  /** The class contains non-ASCII characters, as all negated classes do. */
  readonly isWide: boolean;
  /** A Unicode property, or a character that is not a byte: the size is unknown. */
  readonly isUnknown: boolean;
}

type Bytes = Uint8Array;

/** Returns the class that begins with the bracket at `at`. An unterminated class extends to the end of the pattern. */
export function classAt(pattern: string, at: number): CharacterClass {
  const isNegated = pattern[at + 1] === '^';
  const bytes = new Uint8Array(256);
  let isWide = isNegated;
  let isUnknown = false;
  let end = at + (isNegated ? 2 : 1);
  const first = end;
  while (end < pattern.length && (pattern[end] !== ']' || end === first)) {
    const named = matchAt(POSIX, pattern, end);
    if (named !== null) {
      const members = POSIX_CLASSES[named[2]!];
      if (members === undefined) isUnknown = true;
      else addAll(bytes, members, named[1] === '^');
      end += named[0].length;
      continue;
    }
    const [low, afterLow] = memberAt(pattern, end);
    end = afterLow;
    if (typeof low !== 'number') {
      if (low === undefined) isUnknown = true;
      else addAll(bytes, low.members, low.isNegated);
      continue;
    }
    let high = low;
    if (pattern[end] === '-' && pattern[end + 1] !== ']' && end + 1 < pattern.length) {
      const [member, afterHigh] = memberAt(pattern, end + 1);
      if (typeof member === 'number') [high, end] = [member, afterHigh];
    }
    isWide ||= high > 0x7f;
    for (let byte = low; byte <= high && byte < 256; byte++) bytes[byte] = 1;
  }
  if (isNegated) for (let byte = 0; byte < 256; byte++) bytes[byte]! ^= 1;
  const ranges = isWide && !isNegated ? 1 : countRanges(bytes);
  return { end: end + 1, ranges, isWide, isUnknown: isUnknown || ranges === 0 };
}

/** Returns what the backslash at `at` stands for, outside of brackets. */
export function escapeAt(pattern: string, at: number): CharacterClass {
  const next = pattern[at + 1] ?? '';
  if (ASSERTIONS.includes(next)) return { end: at + 2, ranges: 0, isWide: false, isUnknown: false };
  const [member, end] = memberAt(pattern, at);
  if (member === undefined) return { end, ranges: 1, isWide: true, isUnknown: true };
  if (typeof member === 'number') return { end, ranges: 1, isWide: member > 0x7f, isUnknown: member > 0xff };
  const bytes = new Uint8Array(256);
  addAll(bytes, member.members, member.isNegated);
  return { end, ranges: countRanges(bytes), isWide: member.isNegated, isUnknown: false };
}

/** Escapes of anchors and word boundaries. */
const ASSERTIONS = 'AzbB';

interface Members {
  readonly members: string;
  readonly isNegated: boolean;
}

/** Returns a byte, a class, or undefined for a Unicode property; and the index after it. */
function memberAt(pattern: string, at: number): [member: number | Members | undefined, end: number] {
  if (pattern[at] !== '\\') return [pattern.charCodeAt(at), at + 1];
  const next = pattern[at + 1] ?? '';
  const property = matchAt(PROPERTY, pattern, at);
  if (property !== null) return [undefined, at + property[0].length];
  const code = matchAt(CODE, pattern, at);
  if (code !== null) {
    const octal = code[3];
    const value = octal === undefined ? Number.parseInt(code[1] ?? code[2]!, 16) : Number.parseInt(octal, 8);
    return [value, at + code[0].length];
  }
  const members = PERL_CLASSES[next.toLowerCase()];
  if (members !== undefined) return [{ members, isNegated: next !== next.toLowerCase() }, at + 2];
  return [(CONTROLS[next] ?? next).charCodeAt(0) || 0, at + 2];
}

const POSIX = /\[:(\^?)(\w+):\]/y;
const PROPERTY = /\\[pP](?:\{[^}]{0,64}\}|.)/suy;
const CODE = /\\(?:x\{([0-9a-fA-F]{1,6})\}|x([0-9a-fA-F]{2})|([0-7]{3}))/y;
const CONTROLS: Readonly<Record<string, string>> = { a: '\x07', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' };

/** Pairs of first and last members. */
const PERL_CLASSES: Readonly<Record<string, string>> = { d: '09', s: '\t\n\f\r  ', w: '09AZ__az' };
const POSIX_CLASSES: Readonly<Record<string, string>> = {
  alnum: '09AZaz',
  alpha: 'AZaz',
  ascii: '\0\x7f',
  blank: '\t\t  ',
  cntrl: '\0\x1f\x7f\x7f',
  digit: '09',
  graph: '!~',
  lower: 'az',
  print: ' ~',
  punct: '!/:@[`{~',
  space: '\t\r  ',
  upper: 'AZ',
  word: '09AZ__az',
  xdigit: '09AFaf',
};

function addAll(bytes: Bytes, members: string, isNegated: boolean): void {
  const added = new Uint8Array(256);
  for (let at = 0; at < members.length; at += 2) added.fill(1, members.charCodeAt(at), members.charCodeAt(at + 1) + 1);
  for (let byte = 0; byte < 256; byte++) if ((added[byte] === 1) !== isNegated) bytes[byte] = 1;
}

function countRanges(bytes: Bytes): number {
  const isFolded = hasBothCases(bytes);
  let ranges = 0;
  for (let from = 0; from < 256; from++) {
    if (bytes[from] === 0) continue;
    let to = from;
    while (bytes[to + 1] === 1) to++;
    // Lower-case letters cover capitals as well.
    if (!isFolded || from < UPPER_A || to > UPPER_Z) ranges++;
    from = to;
  }
  return ranges;
}

function hasBothCases(bytes: Bytes): boolean {
  for (let upper = UPPER_A; upper <= UPPER_Z; upper++) if (bytes[upper] !== bytes[upper + CASE]) return false;
  return true;
}

const UPPER_A = 65;
const UPPER_Z = 90;
const CASE = 32;

/** Matches a sticky expression at `at`. */
function matchAt(expression: RegExp, text: string, at: number): RegExpExecArray | null {
  expression.lastIndex = at;
  return expression.exec(text);
}
