// "Did you mean": finds the known name that is nearest to a mistyped one.

/**
 * Returns the candidate with the fewest typing mistakes (a letter missing, added or changed, or two swapped); undefined if
 * none is near enough. Ignores case, `-` and `_`.
 */
export function nearest(name: string, candidates: Iterable<string>): string | undefined {
  const normalized = plain(name.slice(0, 2 * MAX_LENGTH)).slice(0, MAX_LENGTH);
  const letters = lettersOf(normalized);
  let best: string | undefined;
  let least = Math.max(1, Math.floor(normalized.length / 3)) + 1;
  for (const candidate of candidates) {
    const known = plainOf(candidate);
    const surplus = normalized.length - known.length;
    if (Math.abs(surplus) >= least || lettersMissing(letters, known) + Math.max(0, surplus) >= least) continue;
    const found = distance(normalized, known, least);
    if (found < least) {
      least = found;
      best = candidate;
    }
  }
  return best;
}

/** Returns `; did you mean 'x'?`, or '' if no candidate is near. */
export function didYouMean(name: string, candidates: Iterable<string>): string {
  const found = nearest(name, candidates);
  return found === undefined ? '' : suggestion(found);
}

export function suggestion(found: string): string {
  return `; did you mean '${found}'?`;
}

const MAX_LENGTH = 128;

function plain(name: string): string {
  return name.toLowerCase().replace(/[-_]/g, '');
}

/** Returns plain(candidate), cached: candidates are mostly names of the API, which are compared often. */
function plainOf(candidate: string): string {
  let found = plainNames.get(candidate);
  if (found === undefined) {
    found = plain(candidate);
    if (plainNames.size >= MAX_KNOWN) plainNames.clear();
    if (candidate.length <= MAX_LENGTH) plainNames.set(candidate, found);
  }
  return found;
}

const plainNames = new Map<string, string>();
const MAX_KNOWN = 2000;

/**
 * Returns how often a text has each letter. Letters with the same low bits count as one, which only makes texts seem nearer.
 */
function lettersOf(text: string): Int16Array {
  const letters = new Int16Array(LETTERS);
  for (let at = 0; at < text.length; at++) letters[text.charCodeAt(at) % LETTERS]!++;
  return letters;
}

const LETTERS = 64;

/**
 * Returns how many letters of `text` are not among `letters`. This is a lower bound of the number of mistakes: each mistake
 * adds, removes or changes one letter, or swaps two and changes none.
 */
function lettersMissing(letters: Int16Array, text: string): number {
  let missing = 0;
  for (let at = 0; at < text.length; at++) if (--letters[text.charCodeAt(at) % LETTERS]! < 0) missing++;
  for (let at = 0; at < text.length; at++) letters[text.charCodeAt(at) % LETTERS]!++;
  return missing;
}

/** Returns the edit distance with swaps (optimal string alignment), or `limit` if it is not below that. */
function distance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit) return limit;
  let before: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_zero, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      let cost = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + same);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) cost = Math.min(cost, before[j - 2]! + 1);
      row.push(cost);
    }
    before = last;
    last = row;
  }
  return Math.min(last[b.length]!, limit);
}
