// Classes of characters in RE2's expressions: where they end in the text, and how many ranges of bytes they are.

export interface CharacterClass {
  /** Behind its last character. */
  readonly end: number;
  /** Ranges of bytes, as RE2 makes instructions of them: at least so many. 0: it is a place and no character. */
  readonly ranges: number;
  /** It has characters of other scripts, as all that exclude something. */
  readonly isWide: boolean;
  /** A property of Unicode, or a character that is no byte: nothing is known of its size. */
  readonly isUnknown: boolean;
}

type Bytes = Uint8Array;

/** The class that begins with the bracket at `at`; one that does not end goes to the end of the text. */
export function classAt(pattern: string, at: number): CharacterClass {
  const isNegated = pattern[at + 1] === '^';
  const bytes = new Uint8Array(256);
  let isWide = isNegated;
  let isUnknown = false;
  let end = at + (isNegated ? 2 : 1);
  const first = end;
  while (end < pattern.length && (pattern[end] !== ']' || end === first)) {
    const named = atPlace(POSIX, pattern, end);
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

/** What the backslash at `at` stands for, outside of brackets. */
export function escapeAt(pattern: string, at: number): CharacterClass {
  const next = pattern[at + 1] ?? '';
  if (PLACES.includes(next)) return { end: at + 2, ranges: 0, isWide: false, isUnknown: false };
  const [member, end] = memberAt(pattern, at);
  if (member === undefined) return { end, ranges: 1, isWide: true, isUnknown: true };
  if (typeof member === 'number') return { end, ranges: 1, isWide: member > 0x7f, isUnknown: member > 0xff };
  const bytes = new Uint8Array(256);
  addAll(bytes, member.members, member.isNegated);
  return { end, ranges: countRanges(bytes), isWide: member.isNegated, isUnknown: false };
}

/** Anchors and boundaries of words. */
const PLACES = 'AzbB';

interface Members {
  readonly members: string;
  readonly isNegated: boolean;
}

/** A byte, a class, or undefined for a property; and where the text goes on. */
function memberAt(pattern: string, at: number): [member: number | Members | undefined, end: number] {
  if (pattern[at] !== '\\') return [pattern.charCodeAt(at), at + 1];
  const next = pattern[at + 1] ?? '';
  const property = atPlace(PROPERTY, pattern, at);
  if (property !== null) return [undefined, at + property[0].length];
  const code = atPlace(CODE, pattern, at);
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
    // Small letters stand for capitals as well.
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

/** What a sticky expression finds exactly there. */
function atPlace(expression: RegExp, text: string, at: number): RegExpExecArray | null {
  expression.lastIndex = at;
  return expression.exec(text);
}
