// Minimizes a list of inputs that reveals a defect.

/** Maximum number of attempts; each one starts a server. */
const MAX_TRIALS = 60;

/**
 * Returns the smallest sublist of the inputs that still fails: halves, quarters and smaller parts are removed as long as it does.
 * Returns undefined when the complete list does not fail again.
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
