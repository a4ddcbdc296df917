// "Did you mean": the known name that is nearest to a mistyped one.

/**
 * The candidate that differs from `name` by the fewest typing mistakes (a letter missing, added, changed, or two
 * swapped), when few enough to be one; case, `-` and `_` do not count.
 */
export function nearest(name: string, candidates: Iterable<string>): string | undefined {
  const wanted = plain(name).slice(0, MAX_LENGTH);
  let best: string | undefined;
  let least = Math.max(1, Math.floor(wanted.length / 3)) + 1;
  for (const candidate of candidates) {
    const found = distance(wanted, plain(candidate), least);
    if (found < least) {
      least = found;
      best = candidate;
    }
  }
  return best;
}

/** `; did you mean 'x'?`, or nothing when no candidate is near. */
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

/** Edit distance with swaps (optimal string alignment); anything at or above `limit` is given as `limit`. */
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
