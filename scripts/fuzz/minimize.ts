// Makes inputs that bring a defect to light fewer.

/** How often it is asked at most: each time a server is started. */
const MAX_TRIALS = 60;

/**
 * The fewest of the inputs, in their order, that still fail: halves, quarters and smaller parts are left out as long as that is so.
 * Undefined when not even all of them fail again.
 */
export async function smallest<T>(
  inputs: readonly T[],
  fails: (inputs: readonly T[]) => Promise<boolean>,
): Promise<readonly T[] | undefined> {
  if (!(await fails(inputs))) return undefined;
  let left = inputs;
  let trials = 1;
  for (let size = Math.ceil(left.length / 2); size >= 1 && left.length > 1; ) {
    let isSmaller = false;
    for (let at = 0; at < left.length && trials < MAX_TRIALS; trials++) {
      const rest = [...left.slice(0, at), ...left.slice(at + size)];
      if (rest.length > 0 && (await fails(rest))) {
        left = rest;
        isSmaller = true;
      } else at += size;
    }
    if (trials >= MAX_TRIALS || (size === 1 && !isSmaller)) break;
    size = Math.min(Math.ceil(size / 2), Math.ceil(left.length / 2));
  }
  return left;
}
